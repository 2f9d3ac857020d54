"""Finds the calls of pytest in shell scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from excise.system.shell_syntax import parse_shell

_PLACEHOLDER = re.compile(r"\$\{\{.*?\}\}|\{posargs:?[^}]*\}|(?<!\$)\{[^}]*\}|\[\]")
"""Placeholders that a CI system or tox replaces before a shell runs the script."""
_INSTALLS = re.compile(r"\b(?:pip3?|apt|apt-get|conda) install\b|\bpoetry add\b|^echo\b")
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z)?sh")


def pytest_commands(script: str) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of every call of pytest in a shell script, without words that a shell would expand."""
    for command in parse_shell(_PLACEHOLDER.sub(" ", script)):
        texts = [word.text for word in command.words]
        if texts and _SHELL.fullmatch(texts[0]) and any(re.fullmatch(r"-[a-z]*c", option) for option in texts[1:-1]):
            yield from pytest_commands(texts[-1])
        elif not _INSTALLS.search(" ".join(texts)):
            place = next((n for n, text in enumerate(texts) if text.rpartition("/")[2] in {"pytest", "py.test"}), None)
            if place is not None:
                yield tuple(word.text for word in command.words[place + 1 :] if not word.is_expanded)
