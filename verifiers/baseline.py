"""The baseline: the tests of the untouched project, run several times, once shuffled, to find flaky tests.

Tests that depend on timing fail on a busy machine, and would make sound tasks fail there. Load-stress runs find them:
the test process is paused repeatedly, and gets half a CPU core if the sandbox can limit that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median

from excise.config import VerdictSettings
from excise.errors import EnvironmentFailure
from excise.protocols import Policy, TestRunRequest
from excise.system.deadline import with_context_of_caller
from excise.types import Baseline, Status, TestRun, WorkerOutcome
from excise.verifiers.baseline_acceptance import require_enough, too_slow, uncollectable
from excise.verifiers.workbench import Workbench

SHUFFLE_SEED = 20250518
"""Seed of the shuffled run; an arbitrary constant."""
LOAD_STRESS_CPUS = 0.5
"""CPU cores of a load-stress run, if the sandbox can limit them."""
LOAD_STRESS_SUITE_S = 30.0
"""Load-stress runs are made only for suites of at most this many CPU and wall seconds; others would take too long."""
LOAD_STRESS_FACTOR = 10.0
"""The time limit of a load-stress run, and of each test in it, is raised by this multiple of the normal duration."""
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")


def run_baseline(bench: Workbench, warm: Path | None = None) -> Baseline:
    """Run the untouched project's tests ``baseline_runs`` times, and ``starved_runs`` times as on a busy machine.

    The byte code that the first run compiles is saved as the layer ``warm`` for later runs.
    Raises :class:`EnvironmentFailure` with a reason: ``no_tests, collect_error, timeout, oom, low_pass, flaky,
    import_error, unreproducible, infra``, or one of :mod:`excise.envs.install.failure_classes` if most tests share it.
    """
    runs: list[TestRun] = []
    for number in range(bench.settings.baseline_runs):
        last = number == bench.settings.baseline_runs - 1
        run = bench.run({}, shuffle_seed=SHUFFLE_SEED if last else None, keep_pyc=warm if number == 0 else None)
        _require_run(bench, run)
        runs.append(run)
    idle = agree(bench.prepared.environment.env_id, runs)
    require_enough(bench.settings, idle, runs[0])
    baseline = with_load_stress(bench, idle)
    require_enough(bench.settings, baseline, runs[0])
    return baseline


def missing_modules(bench: Workbench) -> tuple[str, ...]:
    """Names of modules that are not found when the tests are collected; called once, before the first run."""
    run = collect_only(bench)
    messages = [message for _, message in run.collect_errors] or [run.detail]  # a failing conftest leaves only output
    found = (_NO_MODULE.search(message) for message in messages)
    return tuple(dict.fromkeys(match[1] for match in found if match))


def collect_only(bench: Workbench) -> TestRun:
    """Collect the tests without running them; ``collect_errors`` of the result says what cannot be collected."""
    with bench.open({}) as session:
        recipe = replace(bench.recipe, test_args=(*bench.recipe.test_args, "--collect-only"))
        request = TestRunRequest(timeout_s=min(300.0, bench.suite_timeout_s(None)))
        return bench.language.run_tests(session, recipe, request)


def agree(env_id: str, runs: Sequence[TestRun]) -> Baseline:
    """The baseline from several runs: tests whose status differs between runs are flaky."""
    statuses = [run.statuses() for run in runs]
    every = sorted(set().union(*statuses))
    flaky: dict[str, str] = {}
    stable: dict[str, Status] = {}
    for test in every:
        seen = [s.get(test, Status.MISSING) for s in statuses]
        if len(set(seen)) == 1:
            stable[test] = seen[0]
        else:
            flaky[test] = " then ".join(seen)
    by_test: dict[str, list[float]] = {}
    for run in runs:
        for result in run.results:
            by_test.setdefault(result.test_id, []).append(result.duration_s)
    durations = {test: round(median(values), 4) for test, values in sorted(by_test.items())}
    return Baseline(
        env_id=env_id,
        statuses=stable,
        durations=durations,
        flaky=flaky,
        uncollected=dict(runs[0].collect_errors),
        num_runs=len(runs),
        cpu_s=round(median(run.cpu_s for run in runs), 3),
        wall_s=round(median(run.wall_s for run in runs), 3),
    )


def with_load_stress(bench: Workbench, baseline: Baseline) -> Baseline:
    """Make the load-stress runs and return the baseline in which tests that fail in them are flaky.

    The runs are made in parallel, since they mostly wait. Runs that do not finish are ignored.
    """
    wanted = bench.settings.starved_runs
    if not wanted or max(baseline.cpu_s, baseline.wall_s) > LOAD_STRESS_SUITE_S:
        return baseline
    policy = bench.policy
    if limited := "cpus" in bench.sandbox.capabilities().how:
        policy = replace(policy, cpus=min(policy.cpus or LOAD_STRESS_CPUS, LOAD_STRESS_CPUS))
    run_once = with_context_of_caller(_load_stress_run)
    with ThreadPoolExecutor(wanted) as pool:
        made = list(pool.map(lambda _: run_once(bench, baseline, policy), range(wanted)))
    runs = [run.statuses() for run in made if run.worker is WorkerOutcome.OK and run.finished]
    statuses, flaky = dict(baseline.statuses), dict(baseline.flaky)
    for test in baseline.passing():
        failed = [found for run in runs if (found := run.get(test, Status.MISSING)) is not Status.PASSED]
        if failed:
            flaky[test] = f"{Status.PASSED} {baseline.num_runs} times, then {failed[0]} when starved"
            del statuses[test]
    bench.spent = bench.spent.plus(sum(run.cpu_s for run in made), max(run.wall_s for run in made))
    how = f"{len(runs)} runs with pauses" + (f" on {policy.cpus:g} CPUs" if limited else "")
    return replace(baseline, statuses=statuses, flaky=flaky, starved=how if runs else "")


def max_baseline_s(settings: VerdictSettings) -> float:
    """Maximum wall seconds of all baseline runs together."""
    return (settings.baseline_runs + 1) * settings.suite_timeout_s + LOAD_STRESS_FACTOR * LOAD_STRESS_SUITE_S


def _load_stress_run(bench: Workbench, baseline: Baseline, policy: Policy) -> TestRun:
    slowest = max((baseline.durations[test] for test in baseline.passing()), default=0.0)
    request = TestRunRequest(
        shuffle_seed=SHUFFLE_SEED,
        load_stress=True,
        timeout_s=bench.settings.suite_timeout_s + LOAD_STRESS_FACTOR * baseline.wall_s,
        test_timeout_s=bench.settings.test_timeout_s + LOAD_STRESS_FACTOR * slowest,
    )
    with bench.open({}, policy) as session:
        return bench.language.run_tests(session, bench.recipe, request)


def _require_run(bench: Workbench, run: TestRun) -> None:
    if run.worker is WorkerOutcome.TIMEOUT:
        raise too_slow(run, bench.suite_timeout_s(None))
    if run.worker is WorkerOutcome.OOM:
        raise EnvironmentFailure(
            f"The tests need more than {bench.settings.memory_mb} MB. Raise verdict.memory_mb.", reason="oom"
        )
    if run.worker is not WorkerOutcome.OK:
        raise EnvironmentFailure(
            f"The run of the tests was killed, by one of them or from outside. Last output: {run.detail[-300:]}",
            reason="infra",
        )
    outside = [f"{name} from {path}" for name, path in run.imported if not path.lstrip("['").startswith("/testbed")]
    if outside:
        raise EnvironmentFailure(
            f"The tests import {', '.join(outside)} instead of the checkout.", reason="import_error"
        )
    if not run.results:
        if run.collect_errors:
            raise uncollectable(dict(run.collect_errors))
        if run.finished:
            raise EnvironmentFailure(f"No test was found. {run.detail[-600:]}".strip(), reason="no_tests")
        raise uncollectable({"": run.detail[-1500:].strip()})
    if not run.finished:
        last = run.results[-1].test_id
        raise EnvironmentFailure(
            f"The runner ended after {len(run.results)} tests, the last of them {last}. {run.detail[-300:]}".strip(),
            reason="unreproducible",
        )
