"""How scripts call pytest: the words after its name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_CALL = re.compile(
    r"(?:^|[\s;&|(])(?:coverage\s+run\s+(?:-[\w-]+(?:=\S+)?\s+)*-m\s+pytest|(?:python3?\s+)?-m\s+pytest|pytest|py\.test)"
    r"(?=[\s;&|)]|$)([^;&|\n]*)"
)
_NOT_CALLED = re.compile(r"pip3?\s+install|apt(-get)?\s+install|conda\s+install|poetry\s+add|\becho\b")


def pytest_commands(script: str) -> Iterator[tuple[str, ...]]:
    """Arguments of every call of pytest in a shell script; what a shell would have to fill in is left out."""
    for part in re.split(r"\n|;|&&|\|\|?", re.sub(r"\$\{\{.*?\}\}", " ", script)):
        match = _CALL.search(part)
        if match and not _NOT_CALLED.search(part):
            yield tuple(word for word in _split(match[1]) if not re.search(r"[${}<>`*]", word))


def _split(text: str) -> list[str]:
    plain = re.sub(r"\$\{\{.*?\}\}|\{posargs:?[^}]*\}|\{[^}]*\}|\[\]", " ", text)
    try:
        return shlex.split(plain, comments=True)
    except ValueError:
        return plain.split()
