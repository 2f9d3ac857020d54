"""The coverage stage: measures which symbols each test executes.

Where the first run of the baseline has noted that (:func:`excise.pipeline.stages.baseline_stage.first_run`), it is one
of the passes over the tests.

Comes after :mod:`excise.pipeline.stages.baseline_stage`; :mod:`excise.pipeline.stages.find_stage` is next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from excise.config import Settings
from excise.errors import EnvironmentFailure
from excise.extractors.coverage_passes import (
    affected_tests,
    combined,
    hits_by_symbol,
    varying_symbols,
    with_tests_of_callers,
)
from excise.pipeline.stages.baseline_stage import first_run
from excise.pipeline.stages.environment_stage import open_workbench
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, stage
from excise.pipeline.stages.stage_cache import StageCache, measurement_fingerprint, stage_key
from excise.protocols import CoveragePass, CoverageRequest
from excise.system.deadline import deadline
from excise.types import CoverageMap, Status
from excise.verifiers.workbench import Prepared, Workbench

COVERAGE_SLOWDOWN = 5.0
"""Expected factor by which coverage slows tests; the time limits of tests are multiplied by it."""
FORK_S = 0.06
"""Maximum seconds that the fork of a process is expected to add to a test."""
CHEAP_FORK_S = 0.012
"""Seconds that it usually adds. Suites whose tests take less on average are measured in two orders instead."""
MAX_UNSTABLE_SHARE = 0.1
"""Share of tests with another status in reverse order above which a suite does not bear that order."""
ALONE_S, START_S = 0.025, 0.3
"""Seconds that a test is expected to take in a process of its own, where nothing is in any cache, and that it takes
until the first of them begins."""
MAX_UNCOUNTED_S = 120.0
"""Seconds that a pass over the tests that do not count may be expected to take."""
MAX_ALONE_SHARE = 0.25
"""Maximum share of the suite's duration that it may take to run tests once more, each in a process of its own."""


@stage("coverage")
def coverage_stage(settings: Settings, prepared: Prepared) -> Prepared:
    """Map every test to the symbols it executes; as if each had a process of its own, if the time limit allows it."""
    key = stage_key("coverage", prepared.environment.env_id, measurement_fingerprint(settings))
    cache = StageCache(settings.cache)
    coverage = cache.get(CoverageMap, "coverage", key)
    if not isinstance(coverage, CoverageMap):
        limit_s = settings.verdict.suite_timeout_s * 3 + STAGE_GRACE_S
        with deadline(limit_s, f"The coverage of {prepared.repo.repo}"):
            bench = open_workbench(settings, prepared)
            coverage = _map_coverage(settings, bench)
            coverage = replace(coverage, uncounted=_uncounted(bench, coverage))
        cache.put("coverage", key, coverage)
    return replace(prepared, coverage=coverage)


def _map_coverage(settings: Settings, bench: Workbench) -> CoverageMap:
    num_tests, suite_s = len(bench.baseline.durations), bench.baseline.suite_s()
    made = _made_already(settings, bench)
    ways: list[Callable[[], CoverageMap]] = [lambda: _together(bench, made)]
    if COVERAGE_SLOWDOWN * suite_s + FORK_S * num_tests < settings.verdict.suite_timeout_s:
        ways.insert(0, lambda: _alone(bench, made.warm_up if made else ""))
        if CHEAP_FORK_S * num_tests > suite_s:
            ways.insert(0, lambda: _in_two_orders(bench, made))
    for way in ways[:-1]:
        try:
            return way()
        except EnvironmentFailure as failure:  # too slow, or a test ends the process that others share
            if failure.reason == "infra":
                raise
    return ways[-1]()


def _uncounted(bench: Workbench, coverage: CoverageMap) -> dict[str, tuple[str, ...]]:
    """See :attr:`CoverageMap.uncounted`: the result of one more pass, over these tests alone."""
    expected = (test for test, status in bench.baseline.statuses.items() if status is Status.XFAIL)
    tests = sorted({*bench.baseline.flaky, *coverage.unstable, *expected} & bench.baseline.durations.keys())
    if not tests or COVERAGE_SLOWDOWN * bench.expected_s(tests) > MAX_UNCOUNTED_S:
        return {}
    try:
        (made,) = _measure(bench, fork=False, ids=tests)
    except EnvironmentFailure as failure:  # one of them ends the process that the others share
        if failure.reason == "infra":
            raise
        return {}
    return {symbol: tuple(sorted(own)) for symbol, own in hits_by_symbol(made.coverage).items()}


def _made_already(settings: Settings, bench: Workbench) -> CoveragePass | None:
    """The first run of the baseline as a pass over the tests that pass, if it has noted what each of them executes."""
    executed, tests = first_run(settings, bench.prepared), frozenset(bench.baseline.passing())
    if executed is None or not tests <= executed.by_test.keys():
        return None
    return bench.language.map_executed(bench.codebase, bench.prepared.environment.env_id, executed, tests)


def _alone(bench: Workbench, warm_up: str) -> CoverageMap:
    """Measure each test in a process of its own."""
    return _with_unstable(bench, *_measure(bench, fork=True, warm_up=warm_up))


def _together(bench: Workbench, made: CoveragePass | None) -> CoverageMap:
    """Measure all tests in one process, for suites that are too long for anything else.

    If all tests of the baseline pass, nothing else than these has run in its first run either.
    """
    every_test_passes = not bench.baseline.flaky and set(bench.baseline.statuses.values()) == {Status.PASSED}
    if made is not None and every_test_passes and not bench.baseline.uncollected:
        return _with_unstable(bench, made)
    return _with_unstable(bench, *_measure(bench, fork=False))


def _in_two_orders(bench: Workbench, made: CoveragePass | None) -> CoverageMap:
    """Measure all tests in one process, and in reverse in another, so that it is as if each had a process of its own.

    Of two tests, each comes first once, and misses what the other leaves behind. Tests whose status depends on the
    order are unstable; if there are many, each test is measured alone. So are those whose coverage depends on the
    order, if that is cheap. The tests that do not pass run in the baseline only; tests that need one of them do not
    pass in reverse order.
    """
    if made is None:
        first, second = _measure(bench, fork=False, both_orders=True)
    else:
        (second,) = _measure(bench, fork=False, reverse=True)
        at_import = second.coverage.at_import  # of the files with tests that pass
        first = made._replace(coverage=replace(made.coverage, at_import=at_import))
    tests = first.statuses.keys() | second.statuses.keys()
    unstable = {test for test in tests if first.statuses.get(test) is not second.statuses.get(test)}
    if len(unstable) > MAX_UNSTABLE_SHARE * len(tests):
        return _alone(bench, second.warm_up)
    both = combined([first.coverage, second.coverage])
    varying = varying_symbols(first.coverage, second.coverage)
    reaching = affected_tests(bench.codebase, both, varying)
    statuses = {test: status for test, status in first.statuses.items() if test not in unstable}
    if not reaching:
        return _with_unstable(bench, CoveragePass(both, statuses))
    if START_S + ALONE_S * len(reaching) > MAX_ALONE_SHARE * bench.baseline.suite_s():
        return _with_unstable(bench, CoveragePass(with_tests_of_callers(bench.codebase, both, varying), statuses))
    (alone,) = _measure(bench, fork=True, ids=sorted(reaching), warm_up=second.warm_up)
    agreed = {t: alone.statuses.get(t, Status.MISSING) if t in reaching else s for t, s in statuses.items()}
    return _with_unstable(bench, CoveragePass(combined([both], alone.coverage), agreed))


def _measure(
    bench: Workbench,
    *,
    fork: bool,
    ids: Sequence[str] | None = None,
    both_orders: bool = False,
    reverse: bool = False,
    warm_up: str = "",
) -> Sequence[CoveragePass]:
    """Make one pass (in ``reverse`` order), or one in each order, over the tests that pass, or those with ``ids``."""
    baseline = bench.baseline
    request = CoverageRequest(
        env_id=bench.prepared.environment.env_id,
        timeout_s=bench.settings.suite_timeout_s,
        test_timeout_s=COVERAGE_SLOWDOWN * bench.test_timeout_s(None),
        fork=fork,
        ids=sorted(baseline.passing()) if ids is None else ids,
        both_orders=both_orders,
        reverse=reverse,
        warm_up=warm_up,
    )
    with bench.open({}) as session:
        return bench.language.map_coverage(session, bench.recipe, bench.codebase, request)


def _with_unstable(bench: Workbench, made: CoveragePass) -> CoverageMap:
    unstable = (test for test in bench.baseline.passing() if made.statuses.get(test) != Status.PASSED)
    return replace(made.coverage, unstable=tuple(sorted(unstable)))
