"""Removes declarations of functions from the ``.d.ts`` files beside the code."""

from __future__ import annotations

import re
from collections.abc import Iterable

from excise.deleters.deletion_record import Changed
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.types import Symbol

_HEAD = rb"^[ \t]*(?:export[ \t]+)?(?:declare[ \t]+)?(?:default[ \t]+)?function[ \t]+"
_OPENING, _CLOSING = b"([{<", b")]}>"


def without_declarations(codebase: JavaScriptCodebase, removed: Iterable[Symbol]) -> Changed:
    """Path to (content before, content after) of the type declarations that lose functions of these names.

    Only plain declarations are removed (``export function name(…): type;``), with the comment above them.
    """
    names = {symbol.name.partition("#")[0] for symbol in removed if "." not in symbol.qualname}
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    for path, before in codebase.others.items():
        if not path.endswith(".d.ts"):
            continue
        after = before
        for name in sorted(names):
            after = _without(after, name)
        if after != before:
            changed[path] = (before, after)
    return changed


def _without(source: bytes, name: str) -> bytes:
    head = re.compile(_HEAD + re.escape(name.encode()) + rb"\b", re.MULTILINE)
    while (found := head.search(source)) is not None:
        start, end = _with_comment(source, found.start()), _end_of(source, found.end())
        source = source[:start] + source[end:]
    return source


def _with_comment(source: bytes, start: int) -> int:
    """The start of the comment that ends on the line above, or ``start``."""
    above = source[:start].rstrip(b" \t\r\n")
    if not above.endswith(b"*/") or source[len(above) : start].count(b"\n") > 1:
        return start
    opening = above.rfind(b"/*")
    return above.rfind(b"\n", 0, opening) + 1 if opening >= 0 else start


def _end_of(source: bytes, position: int) -> int:
    """The end of the line on which a declaration ends: by a semicolon, or a line break outside brackets."""
    depth = 0
    for place in range(position, len(source)):
        byte = source[place : place + 1]
        if byte in _OPENING:
            depth += 1
        elif byte in _CLOSING and source[place - 1 : place + 1] != b"=>":
            depth -= 1
        elif depth <= 0 and byte in {b";", b"\n"}:
            line_end = source.find(b"\n", place)
            return len(source) if line_end < 0 else line_end + 1
    return len(source)
