"""The ways to measure coverage: which is tried first, and what follows when it does not work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from excise.config import Settings
from excise.pipeline.stages import coverage_stage as module
from excise.pipeline.stages.environment_stage import open_workbench
from excise.protocols import CoveragePass
from excise.types import Baseline, ExecutedCode, Feature, FeatureKind, Status
from excise.verifiers.plan_deletion import plan_deletion
from excise.verifiers.workbench import Prepared, Workbench

TESTS = ("tests/test_shared.py::test_a", "tests/test_shared.py::test_z")


def prepared_with(bench: Workbench, suite_s: float) -> Prepared:
    """A repository whose two tests pass, and take this long together."""
    baseline = Baseline(
        env_id="env",
        statuses=dict.fromkeys(TESTS, Status.PASSED),
        durations=dict.fromkeys(TESTS, suite_s / 2),
        flaky={},
        num_runs=2,
        cpu_s=suite_s,
        wall_s=suite_s,
    )
    return replace(bench.prepared, baseline=baseline)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passes that are made, as words."""
    made: list[str] = []
    measure = module._measure

    def recorded(bench: Workbench, *, fork: bool, **options: Any) -> Sequence[CoveragePass]:
        made.append(" ".join([*(["alone"] if fork else ["together"]), *(name for name, on in options.items() if on)]))
        return measure(bench, fork=fork, **options)

    monkeypatch.setattr(module, "_measure", recorded)
    return made


def mapped(bench: Workbench, suite_s: float, executed: ExecutedCode | None = None, **settings: Any) -> Any:
    """The map; ``executed`` is what the tests of the baseline's first run executed."""
    changed = Settings(verdict=bench.settings.model_copy(update=settings))
    prepared = prepared_with(bench, suite_s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "first_run", lambda *_: executed)
        return module._map_coverage(changed, open_workbench(changed, prepared))


def executed_by(bench: Workbench) -> ExecutedCode:
    """What the tests execute in an ordinary run; the test is skipped if the project's interpreter does not tell."""
    executed = bench.run({}, ids=TESTS, executed=True).executed
    assert executed is not None
    return executed if executed.by_test else pytest.skip("needs Python 3.12")


QUIET = """
import shapes

def test_a():
    assert shapes.spiral

def test_z():
    assert list(shapes.spiral(3))
"""
ENDING = """
import os

seen = []

def test_a():
    seen.append(1)

def test_z():
    if not seen:
        os._exit(1)
"""


@pytest.mark.parametrize(
    ("suite_s", "settings", "made"),
    [
        (0.01, {}, ["together both_orders"]),
        (5.0, {}, ["alone"]),
        (5.0, {"suite_timeout_s": 20.0}, ["together"]),
    ],
)
def test_the_cheapest_exact_way_is_taken(
    vary, passes: list[str], suite_s: float, settings: dict[str, Any], made: list[str]
) -> None:
    coverage = mapped(vary({"tests/test_shared.py": QUIET}), suite_s, **settings)
    assert passes == made
    walkers = {coverage.tests[n] for n in coverage.by_symbol["src/shapes/walk.py::spiral"]}
    assert (walkers, coverage.unstable) == ({TESTS[1]}, ())


def test_a_test_that_ends_the_process_of_the_others_is_measured_alone(vary, passes: list[str]) -> None:
    coverage = mapped(vary({"tests/test_shared.py": ENDING}), 0.01)
    assert passes == ["together both_orders", "alone"]
    assert coverage.unstable == (TESTS[1],)


MEMOISED = """
import functools
import shapes

@functools.cache
def walk():
    return list(shapes.spiral(3))

def test_a():
    assert walk()

def test_z():
    assert walk()
"""


@pytest.mark.parametrize(
    ("suite_s", "settings", "made"),
    [(0.01, {}, ["together reverse"]), (5.0, {}, ["alone warm_up"]), (5.0, {"suite_timeout_s": 20.0}, [])],
)
def test_the_first_run_of_the_baseline_is_a_pass(
    vary, passes: list[str], suite_s: float, settings: dict[str, Any], made: list[str]
) -> None:
    bench = vary({"tests/test_shared.py": QUIET})
    coverage = mapped(bench, suite_s, executed_by(bench), **settings)
    assert passes == made
    usual = mapped(bench, suite_s, **settings)
    assert (coverage.tests, coverage.by_symbol, coverage.unstable) == (usual.tests, usual.by_symbol, ())
    assert coverage.at_import == usual.at_import


def test_what_the_first_run_hides_behind_a_cache_is_found_in_the_other_order(vary, passes: list[str]) -> None:
    bench = vary({"tests/test_shared.py": MEMOISED})
    coverage = mapped(bench, 0.01, executed_by(bench))
    assert passes == ["together reverse"]
    assert [coverage.tests[n] for n in coverage.by_symbol["src/shapes/walk.py::spiral"]] == list(TESTS)


def test_a_test_that_needs_one_before_it_is_unstable(vary) -> None:
    bench = vary(
        {"tests/test_shared.py": "seen = []\n\ndef test_a():\n    seen.append(1)\n\ndef test_z():\n    assert seen\n"}
    )
    assert mapped(bench, 0.01, executed_by(bench)).unstable == (TESTS[1],)


def test_a_first_run_that_has_not_noted_every_test_is_no_pass(vary, passes: list[str]) -> None:
    bench = vary({"tests/test_shared.py": QUIET})
    mapped(bench, 0.01, ExecutedCode(places=(), at_import=(), by_test={TESTS[0]: ()}))
    assert passes == ["together both_orders"]


FAILING = """import pytest
from shapes.walk import spiral


@pytest.mark.xfail(raises=ZeroDivisionError)
def test_expected():
    len(list(spiral(3))) / 0


def test_not_expected():
    assert list(spiral(3)) == 1
"""


def test_what_expected_failures_execute_is_measured_and_hidden(vary) -> None:
    path = "tests/test_failing.py"
    bench = vary({path: FAILING}, baseline=True)
    statuses = {f"{path}::test_expected": Status.XFAIL, f"{path}::test_not_expected": Status.FAILED}
    durations = dict.fromkeys(statuses, 0.01)
    baseline = bench.baseline
    baseline = replace(baseline, statuses=baseline.statuses | statuses, durations=baseline.durations | durations)
    prepared = replace(bench.prepared, baseline=baseline)
    settings = Settings(verdict=bench.settings)
    found = module._uncounted(open_workbench(settings, prepared), bench.prepared.coverage)
    assert found["src/shapes/walk.py::spiral"] == (f"{path}::test_expected",)
    symbol = bench.codebase.symbols()["src/shapes/walk.py::spiral"]
    feature = Feature(
        feature_id="feature",
        kind=FeatureKind.FUNCTION,
        tier=1,
        entry=(symbol.symbol_id,),
        symbols=(symbol.symbol_id,),
        tests=tuple(sorted(bench.prepared.coverage.executing([symbol.symbol_id]))),
        loc=symbol.loc,
    )
    known = open_workbench(settings, replace(prepared, coverage=replace(bench.prepared.coverage, uncounted=found)))
    plan = plan_deletion(known, feature, "stub")
    assert f"{path}::test_expected" in plan.hidden
    assert "test_not_expected" in (plan.edits("shipped")[path] or b"").decode()
    assert "test_expected" not in (plan.edits("shipped")[path] or b"").decode()


COMPILING = """
import re

def test_a():
    re.compile("first of many")
    for number in range(600):
        re.compile(f"no {number}")

def test_z():
    re.compile("last")
"""
LOOKING = """
import re

def test_a():
    assert any(key[1] == "first of many" for key in re._cache)

def test_z():
    assert any(key[1] == "last" for key in re._cache)
"""


def test_what_tests_compiled_in_the_first_run_is_compiled_before_each_gets_a_process(vary) -> None:
    executed = executed_by(vary({"tests/test_shared.py": COMPILING}))
    assert "first of many" in executed.warm_up
    bench = vary({"tests/test_shared.py": LOOKING})
    assert mapped(bench, 5.0, executed).unstable == ()
    assert mapped(bench, 5.0, replace(executed, warm_up="")).unstable == TESTS


WARNING = """
import re
import pytest

def test_a():
    with pytest.warns(FutureWarning):
        re.compile("[[a]b")

def test_z():
    assert True
"""


def test_a_regular_expression_of_which_python_warns_is_left_to_each_test(vary) -> None:
    bench = vary({"tests/test_shared.py": WARNING})
    executed = executed_by(bench)
    assert "[[a]b" in executed.warm_up
    assert mapped(bench, 5.0, executed).unstable == ()
