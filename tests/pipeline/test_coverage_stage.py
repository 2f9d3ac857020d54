"""The ways to measure coverage: which is tried first, and what follows when it does not work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from excise.config import Settings
from excise.pipeline.stages import coverage_stage as module
from excise.protocols import CoveragePass
from excise.types import Baseline, Status
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


def mapped(bench: Workbench, suite_s: float, **settings: Any) -> Any:
    verdict = bench.settings.model_copy(update=settings)
    return module._map_coverage(Settings(verdict=verdict), prepared_with(bench, suite_s))


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
