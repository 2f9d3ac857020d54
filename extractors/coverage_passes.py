"""Combines coverage maps of passes in different orders: where they agree, no test needs a process of its own.

If all tests share a process, code whose result an earlier test left in a cache is not executed by later tests. Which
test comes first depends on the order. So a symbol that the same tests execute in two different orders is not hidden by
a cache. Tests that may reach the others are measured again, each in a process of its own, or taken from their callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from excise.protocols import Codebase
from excise.types import CoverageMap, TestId, name_in_file, path_of, without_parameter


def hits_by_symbol(coverage: CoverageMap) -> dict[str, frozenset[str]]:
    """Symbol id to the ids of the tests that execute it."""
    tests = coverage.tests
    return {symbol: frozenset(tests[n] for n in numbers) for symbol, numbers in coverage.by_symbol.items()}


def varying_symbols(one: CoverageMap, other: CoverageMap) -> frozenset[str]:
    """Symbols that other tests execute in the one order than in the other: caches may hide tests that need them."""
    first, second = hits_by_symbol(one), hits_by_symbol(other)
    symbols = first.keys() | second.keys()
    return frozenset(s for s in symbols if first.get(s, frozenset()) != second.get(s, frozenset()))


def _callers(codebase: Codebase, symbol: str) -> frozenset[str]:
    """Symbols that refer to a symbol, or to the class that it is the constructor of."""
    owner, _, name = symbol.rpartition(".")
    found = frozenset(codebase.callers(symbol))
    return found | codebase.callers(owner) if name in {"__init__", "__new__"} else found


def affected_tests(codebase: Codebase, coverage: CoverageMap, varying: Iterable[str]) -> frozenset[str]:
    """Tests that execute one of the symbols or a caller of one."""
    hits, varying = hits_by_symbol(coverage), frozenset(varying)
    reached = varying.union(*(_callers(codebase, symbol) for symbol in varying))
    return frozenset().union(*(_tests_of(symbol, hits, coverage.tests) for symbol in reached))


def _tests_of(caller: str, hits: Mapping[str, frozenset[str]], tests: Iterable[str]) -> frozenset[str]:
    """Tests that execute a caller. In a file of tests, whose code is not measured, it is a test itself, or it may be a
    fixture of all tests of the file, or of the folder."""
    if caller in hits:
        return hits[caller]
    path, name = path_of(caller), name_in_file(caller)
    folder, _, file = path.rpartition("/")
    if file == "conftest.py":
        return frozenset(test for test in tests if not folder or test.startswith(f"{folder}/"))
    in_file = {test: _name_in_code(test) for test in tests if path_of(test) == path}
    named = (test for test, known in in_file.items() if name and (known == name or known.startswith(f"{name}.")))
    return frozenset(named) or frozenset(in_file)


def _name_in_code(test: str) -> str:
    """The qualified name of a test's function: ``TestBox.test_it`` of ``tests/test_box.py::TestBox::test_it[3]``."""
    return TestId.parse(without_parameter(test)).qualname


def with_tests_of_callers(codebase: Codebase, coverage: CoverageMap, varying: Iterable[str]) -> CoverageMap:
    """The map in which the symbols are also executed by all tests that execute a caller of theirs, directly or through
    others of the symbols. This may be too many: which tests need a symbol is found by running them without it."""
    hits = hits_by_symbol(coverage)
    waiting = set(varying)
    callers = {symbol: _callers(codebase, symbol) for symbol in waiting}
    while waiting:
        symbol = waiting.pop()
        found = (_tests_of(caller, hits, coverage.tests) for caller in callers[symbol])
        more = hits.get(symbol, frozenset()).union(*found)
        if more != hits.get(symbol, frozenset()):
            hits[symbol] = more
            waiting |= {other for other, named in callers.items() if symbol in named}
    return with_hits(coverage, hits)


def with_hits(coverage: CoverageMap, hits: Mapping[str, Iterable[str]]) -> CoverageMap:
    """The map with these tests of each symbol."""
    number = {test: place for place, test in enumerate(coverage.tests)}
    by_symbol = {symbol: tuple(sorted(number[test] for test in tests)) for symbol, tests in sorted(hits.items())}
    return replace(coverage, by_symbol={symbol: numbers for symbol, numbers in by_symbol.items() if numbers})


def combined(passes: Iterable[CoverageMap], isolated: CoverageMap | None = None) -> CoverageMap:
    """One map of several: the tests of ``isolated`` have its symbols, all others those of any pass."""
    maps = list(passes)
    own = frozenset(isolated.tests) if isolated is not None else frozenset()
    hits: dict[str, set[str]] = {}
    for coverage in maps:
        for symbol, tests in hits_by_symbol(coverage).items():
            hits.setdefault(symbol, set()).update(tests - own)
    for symbol, tests in hits_by_symbol(isolated).items() if isolated is not None else ():
        hits.setdefault(symbol, set()).update(tests)
    everything = [*maps, *([isolated] if isolated is not None else [])]
    every_test = tuple(sorted(set().union(*(coverage.tests for coverage in everything))))
    cpu_s = round(sum(coverage.cpu_s for coverage in everything), 3)
    return with_hits(replace(maps[0], tests=every_test, cpu_s=cpu_s), hits)
