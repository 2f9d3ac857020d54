"""How much a deletion spans, as a tier from 1 to 5; what leaves a part of a body is tier 0.

====  =====================================================================
tier  what is gone
====  =====================================================================
1     one function or method
2     one class, or several definitions with fewer than :data:`LARGE` lines
3     several definitions of one file
4     a file, or definitions of several files with fewer than :data:`SUBSYSTEM` lines
5     definitions of several files
====  =====================================================================
"""

from __future__ import annotations

from collections.abc import Iterable

from excise.types import Symbol, SymbolKind

LARGE = 50
"""Lines of code from which several definitions of one file are tier 3."""
SUBSYSTEM = 100
"""Lines of code from which definitions of several files are tier 5."""


def tier_of(symbols: Iterable[Symbol]) -> int:
    """The tier of a deletion of these symbols; those inside others do not count again."""
    outer = _outermost(sorted(symbols, key=lambda s: (s.path, s.start, -s.end)))
    loc = sum(symbol.loc for symbol in outer)
    if len({symbol.path for symbol in outer}) > 1:
        return 5 if loc >= SUBSYSTEM else 4
    if any(symbol.kind is SymbolKind.MODULE for symbol in outer):
        return 4
    if len(outer) == 1:
        return 2 if outer[0].kind is SymbolKind.CLASS else 1
    return 3 if loc >= LARGE else 2


def _outermost(ordered: list[Symbol]) -> list[Symbol]:
    found: list[Symbol] = []
    for symbol in ordered:
        if not found or symbol.path != found[-1].path or symbol.start >= found[-1].end:
            found.append(symbol)
    return found
