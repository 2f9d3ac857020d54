"""The code that a function lost, if a part of it stays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from excise.protocols import Codebase

EXPRESSION_SUFFIX = "#expression"
"""Suffix of a symbol's id if only an expression of it was deleted."""
_PART = re.compile(r"#part\d+$")
_IN_COMMENT = re.compile(r"\s*#(?!\[)")
"""A line that is a comment, and no attribute of Rust."""
_CONDITION = re.compile(r"\s*(?:if|elif|case)\b")
"""How the condition of a path begins, which is asked where the path is not taken, too."""

_RETURN = re.compile(rb"\s*return\s+[^\s;]")
"""How a line begins that returns a value."""


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
    """Symbols that lost parts to the number of lines that they lost, without blank ones and without parts that are
    comments of Python; ``texts`` as in a deletion."""
    found: dict[str, int] = {}
    for text_id, text in texts:
        if (symbol := symbol_of_part(text_id)) != text_id:
            lines = [line for line in text.splitlines() if line.strip()]
            found[symbol] = found.get(symbol, 0) + (0 if all(map(_IN_COMMENT.match, lines)) else len(lines))
    return found


def places_of_parts(texts: Iterable[tuple[str, str]], codebase: Codebase) -> dict[str, frozenset[str]]:
    """Symbols that lost parts to ``path:line`` of the lines of these, without the conditions of paths."""
    symbols = codebase.symbols()
    found: dict[str, frozenset[str]] = {}
    after: dict[str, int] = {}
    for text_id, text in texts:
        symbol = symbols.get(symbol_of_part(text_id))
        if symbol is None or symbol.symbol_id == text_id:
            continue
        source, part = codebase.modules[symbol.path].source, text.encode()
        begin = source.find(part, after.get(symbol.symbol_id, source.rfind(b"\n", 0, symbol.start) + 1), symbol.end + 1)
        if begin < 0:
            continue
        after[symbol.symbol_id] = begin + len(part)
        first, lines = source.count(b"\n", 0, begin) + 1, text.splitlines()
        places = {
            f"{symbol.path}:{number}" for number in range(first + _length_of_condition(lines), first + len(lines))
        }
        found[symbol.symbol_id] = found.get(symbol.symbol_id, frozenset()) | places
    return found


def returns_among(places: Iterable[str], codebase: Codebase) -> frozenset[str]:
    """Those of some ``path:line`` that return a value."""
    found = set()
    for place in places:
        path, _, number = place.rpartition(":")
        if _RETURN.match(codebase.modules[path].source.splitlines()[int(number) - 1]):
            found.add(place)
    return frozenset(found)


def _length_of_condition(lines: Sequence[str]) -> int:
    """Number of lines of the condition with which a part begins; 0 if it begins with none, or is no more than that."""
    first = next((number for number, line in enumerate(lines) if line.strip() and line.lstrip()[0] != "#"), 0)
    if not lines or not _CONDITION.match(lines[first]):
        return 0
    codes = ((number, re.split(r"\s#", lines[number])[0].rstrip()) for number in range(first, len(lines) - 1))
    return next((number + 1 for number, code in codes if code.endswith(":")), 0)
