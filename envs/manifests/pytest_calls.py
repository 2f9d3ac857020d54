"""How scripts call pytest: the words after its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from excise.system.shell_syntax import parse_shell

_PLACEHOLDER = re.compile(r"\$\{\{.*?\}\}|\{posargs:?[^}]*\}|(?<!\$)\{[^}]*\}|\[\]")
"""What continuous integration and tox fill in before a shell reads the script."""
_INSTALLS = re.compile(r"\b(?:pip3?|apt|apt-get|conda) install\b|\bpoetry add\b|^echo\b")
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z)?sh")


def pytest_commands(script: str) -> Iterator[tuple[str, ...]]:
    """Arguments of every call of pytest in a shell script; words that a shell would have to expand are left out."""
    for command in parse_shell(_PLACEHOLDER.sub(" ", script)):
        texts = [word.text for word in command.words]
        if texts and _SHELL.fullmatch(texts[0]) and any(re.fullmatch(r"-[a-z]*c", option) for option in texts[1:-1]):
            yield from pytest_commands(texts[-1])
        elif not _INSTALLS.search(" ".join(texts)):
            place = next((n for n, text in enumerate(texts) if text.rpartition("/")[2] in {"pytest", "py.test"}), None)
            if place is not None:
                yield tuple(word.text for word in command.words[place + 1 :] if not word.is_expanded)
