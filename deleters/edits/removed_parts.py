"""The code that a function lost, if a part of it stays."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

EXPRESSION_SUFFIX = "#expression"
"""Suffix of a symbol's id if only an expression of it was deleted."""
_PART = re.compile(r"#part\d+$")


def removed_parts(before: str, after: str) -> list[str]:
    """The runs of lines of ``before`` that ``after`` lacks, exactly as they stand there; without blank ones."""
    old = before.splitlines(keepends=True)
    blocks = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()
    parts = ("".join(old[start:end]) for tag, start, end, _, _ in blocks if tag in {"delete", "replace"})
    return [part for part in parts if part.strip()]


def texts_of_parts(symbol_id: str, before: str, after: str) -> list[tuple[str, str]]:
    """(id, text) of each part that a symbol lost; the ids are ``SYMBOL#part1`` and so on."""
    return [(f"{symbol_id}#part{number}", part) for number, part in enumerate(removed_parts(before, after), 1)]


def symbol_of_part(text_id: str) -> str:
    """The symbol that a deleted text belongs to: the id itself, or for a part the id of its function."""
    return _PART.sub("", text_id)


def lines_of_parts(texts: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Symbols that lost parts to the number of lines that they lost, without blank ones; ``texts`` as in a deletion."""
    found: dict[str, int] = {}
    for text_id, text in texts:
        if (symbol := symbol_of_part(text_id)) != text_id:
            found[symbol] = found.get(symbol, 0) + sum(1 for line in text.splitlines() if line.strip())
    return found
