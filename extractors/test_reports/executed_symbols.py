"""Maps places in code that tests executed to the symbols that they executed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from excise.protocols import CoveragePass, Module
from excise.types import CoverageMap, ExecutedCode, Status


class LineLookup(Protocol):
    """The methods of a codebase that map lines to symbols."""

    @property
    def modules(self) -> Mapping[str, Module]:
        """Path to parsed file."""
        ...

    def symbols_of_lines(self, path: str, lines: Iterable[int]) -> frozenset[str]:
        """Ids of the symbols that one of the lines belongs to."""
        ...

    def is_one_liner(self, symbol_id: str) -> bool:
        """Whether the function's body begins on the line of its ``def``, which importing the module executes."""
        ...

    def is_test(self, path: str) -> bool:
        """Whether the file belongs to the tests."""
        ...


def to_map(
    codebase: LineLookup, env_id: str, executed: ExecutedCode, tests: Iterable[str], cpu_s: float
) -> CoverageMap:
    """The map of one pass over ``tests``."""
    ordered = tuple(sorted(tests))
    symbols = [_symbols(codebase, path, line) for path, line in executed.places]
    by_symbol: dict[str, list[int]] = defaultdict(list)
    for number, test in enumerate(ordered):
        places = (symbols[place] for place in executed.by_test.get(test, ()))
        for symbol in frozenset().union(*places):
            by_symbol[symbol].append(number)
    at_import = frozenset().union(*(symbols[place] for place in executed.at_import))
    return CoverageMap(
        env_id=env_id,
        tests=ordered,
        by_symbol={symbol: tuple(numbers) for symbol, numbers in sorted(by_symbol.items())},
        at_import=tuple(sorted(symbol for symbol in at_import if not codebase.is_one_liner(symbol))),
        cpu_s=cpu_s,
    )


def map_executed(codebase: LineLookup, env_id: str, executed: ExecutedCode, tests: Iterable[str]) -> CoveragePass:
    """See :meth:`excise.protocols.Language.map_executed`."""
    made = to_map(codebase, env_id, executed, tests, 0.0)
    return CoveragePass(made, dict.fromkeys(made.tests, Status.PASSED), executed.warm_up)


def _symbols(codebase: LineLookup, path: str, line: int) -> frozenset[str]:
    """The symbols of a place, unless it is in a file of tests."""
    return frozenset() if codebase.is_test(path) else codebase.symbols_of_lines(path, [line])
