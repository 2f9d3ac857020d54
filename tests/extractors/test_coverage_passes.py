"""Coverage of passes in different orders: what differs, whom it concerns, and how maps are combined."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

from excise.extractors.coverage_passes import (
    affected_tests,
    combined,
    hits_by_symbol,
    varying_symbols,
    with_tests_of_callers,
)
from excise.protocols import Codebase
from excise.types import CoverageMap


def map_of(hits: Mapping[str, str]) -> CoverageMap:
    """A map; tests have names of one letter."""
    tests = tuple(sorted(set("".join(hits.values()))))
    by_symbol = {symbol: tuple(sorted(tests.index(test) for test in found)) for symbol, found in hits.items()}
    return CoverageMap(env_id="env", tests=tests, by_symbol=by_symbol, at_import=(), cpu_s=1.0)


def hits_of(coverage: CoverageMap) -> dict[str, str]:
    return {symbol: "".join(sorted(tests)) for symbol, tests in hits_by_symbol(coverage).items()}


def codebase_of(callers: Mapping[str, str]) -> Codebase:
    found = SimpleNamespace(callers=lambda symbol: frozenset(callers.get(symbol, "").split()))
    return cast(Codebase, found)


ORDERED = map_of({"m.py::get": "abc", "m.py::slow": "a", "m.py::inner": "a", "m.py::other": "cd"})
SHUFFLED = map_of({"m.py::get": "abc", "m.py::slow": "c", "m.py::inner": "c", "m.py::other": "cd"})
CODE = codebase_of({"m.py::slow": "m.py::get", "m.py::inner": "m.py::slow"})


def test_what_other_tests_execute_in_another_order_varies() -> None:
    assert varying_symbols(ORDERED, SHUFFLED) == {"m.py::slow", "m.py::inner"}
    assert varying_symbols(ORDERED, ORDERED) == frozenset()
    assert varying_symbols(ORDERED, map_of({})) == ORDERED.by_symbol.keys()


def test_tests_of_callers_may_reach_a_symbol() -> None:
    assert affected_tests(CODE, ORDERED, ["m.py::slow"]) == set("abc")
    assert affected_tests(CODE, ORDERED, ["m.py::inner"]) == set("a")
    assert affected_tests(CODE, ORDERED, []) == frozenset()


def test_a_fixture_stands_for_all_tests_of_its_file_or_folder() -> None:
    tests = ("tests/a/test_x.py::one", "tests/a/test_x.py::two", "tests/b/test_y.py::three")
    coverage = CoverageMap(env_id="env", tests=tests, by_symbol={"m.py::load": (0,)}, at_import=(), cpu_s=1.0)
    for caller, expected in (
        ("tests/a/test_x.py::loaded", tests[:2]),
        ("tests/a/test_x.py::two", tests[:2]),
        ("tests/a/test_x.py::one", tests[:1]),
        ("tests/b/conftest.py::loaded", (tests[0], tests[2])),
        ("tests/conftest.py::loaded", tests),
        ("conftest.py", tests),
        ("m.py::unused", tests[:1]),
    ):
        code = codebase_of({"m.py::load": caller})
        assert affected_tests(code, coverage, ["m.py::load"]) == set(expected), caller


def test_varying_symbols_get_the_tests_of_their_callers_through_each_other() -> None:
    found = hits_of(with_tests_of_callers(CODE, combined([ORDERED, SHUFFLED]), ["m.py::slow", "m.py::inner"]))
    assert found == {"m.py::get": "abc", "m.py::slow": "abc", "m.py::inner": "abc", "m.py::other": "cd"}


def test_a_constructor_is_called_by_the_name_of_its_class() -> None:
    coverage = map_of({"m.py::make": "ab", "m.py::Box.__init__": "a"})
    code = codebase_of({"m.py::Box": "m.py::make"})
    assert hits_of(with_tests_of_callers(code, coverage, ["m.py::Box.__init__"]))["m.py::Box.__init__"] == "ab"


def test_what_was_measured_alone_replaces_what_a_test_executed_among_others() -> None:
    alone = map_of({"m.py::get": "a", "m.py::inner": "ab"})
    both = combined([ORDERED, SHUFFLED], alone)
    assert hits_of(both) == {"m.py::get": "ac", "m.py::slow": "c", "m.py::inner": "abc", "m.py::other": "cd"}
    assert (both.tests, both.cpu_s) == (("a", "b", "c", "d"), 3.0)
    assert hits_of(combined([ORDERED])) == hits_of(ORDERED)
