"""From executed lines to symbols, by bisection over a precomputed table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from excise.extractors.python.analysis.parsed_file import PythonModule
from excise.types import Symbol, SymbolKind


class LineTable:
    """Which symbols of one file a line belongs to.

    A function owns the lines from ``body_line`` to its end: its ``def`` line and decorators run at
    import and belong to what surrounds it. A class owns its whole span, so it is hit by its methods
    and by its body-level code; the module owns every line.
    """

    def __init__(self, module: PythonModule) -> None:
        ranges = [(_first_line(s), s.end_line, s.symbol_id) for s in module.symbols]
        self._starts = sorted({1, *(r[0] for r in ranges if r[0]), *(r[1] + 1 for r in ranges if r[0])})
        owners: list[set[str]] = [set() for _ in self._starts]
        for first, last, symbol_id in ranges:
            if first:
                for i in range(bisect_right(self._starts, first) - 1, bisect_right(self._starts, last)):
                    owners[i].add(symbol_id)
        self._owners = [frozenset(o) for o in owners]

    def symbols_of(self, lines: Iterable[int]) -> frozenset[str]:
        """Ids of all symbols that own one of the lines."""
        segments = {bisect_right(self._starts, line) - 1 for line in lines if line > 0}
        return frozenset().union(*(self._owners[i] for i in segments))


def _first_line(symbol: Symbol) -> int:
    """First owned line; 0 if none is."""
    if symbol.kind is SymbolKind.MODULE:
        return 1
    if symbol.kind is SymbolKind.CLASS:
        return symbol.start_line
    return symbol.body_line
