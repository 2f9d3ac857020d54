"""The coverage stage: measures which symbols each test executes.

Comes after :mod:`excise.pipeline.stages.baseline_stage`; :mod:`excise.pipeline.stages.find_stage` is next.
"""

from __future__ import annotations

from dataclasses import replace

from excise.config import Settings
from excise.errors import EnvironmentFailure
from excise.pipeline.stages.environment_stage import open_workbench
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, stage
from excise.pipeline.stages.stage_cache import StageCache, measurement_fingerprint, stage_key
from excise.protocols import CoverageRequest
from excise.system.deadline import deadline
from excise.types import CoverageMap
from excise.verifiers.workbench import Prepared

SLOW_TEST_S = 0.05
"""Seconds above which a test is measured by a collector that takes longer to start but has less overhead per line."""
COVERAGE_SLOWDOWN = 5.0
"""Expected factor by which coverage slows tests; the time limits of tests are multiplied by it."""
FORK_S = 0.06
"""Expected seconds that the fork of a process adds to each test."""


@stage("coverage")
def coverage_stage(settings: Settings, prepared: Prepared) -> Prepared:
    """Map every test to the symbols it executes; each test runs in a forked process if the time limit allows it."""
    key = stage_key("coverage", prepared.environment.env_id, measurement_fingerprint(settings))
    cache = StageCache(settings.cache)
    coverage = cache.get(CoverageMap, "coverage", key)
    if not isinstance(coverage, CoverageMap):
        limit_s = settings.verdict.suite_timeout_s * 3 + STAGE_GRACE_S
        with deadline(limit_s, f"The coverage of {prepared.repo.repo}"):
            coverage = _map_coverage(settings, prepared)
        cache.put("coverage", key, coverage)
    return replace(prepared, coverage=coverage)


def _map_coverage(settings: Settings, prepared: Prepared) -> CoverageMap:
    bench = open_workbench(settings, prepared)
    baseline = bench.baseline
    timeout_s = settings.verdict.suite_timeout_s
    expected_s = COVERAGE_SLOWDOWN * baseline.suite_s() + FORK_S * len(baseline.durations)
    for fork in (True, False) if expected_s < timeout_s else (False,):
        request = CoverageRequest(
            env_id=prepared.environment.env_id,
            timeout_s=timeout_s,
            test_timeout_s=COVERAGE_SLOWDOWN * bench.test_timeout_s(None),
            fork=fork,
            ids=sorted(baseline.passing()),
            slow=[test for test, seconds in baseline.durations.items() if seconds > SLOW_TEST_S],
        )
        try:
            with bench.open({}) as session:
                coverage, statuses = bench.language.map_coverage(session, bench.recipe, bench.codebase, request)
        except EnvironmentFailure as failure:
            if fork and failure.reason == "timeout":
                continue
            raise
        unstable = sorted(test for test in baseline.passing() if statuses.get(test) != "PASSED")
        return replace(coverage, unstable=tuple(unstable))
    raise EnvironmentFailure("The coverage run took too long; raise verdict.suite_timeout_s.", reason="timeout")
