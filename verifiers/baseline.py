"""The baseline: the tests of the untouched project, run several times, once shuffled, to find flaky tests.

Tests that depend on timing are found by runs under load at the same time (:mod:`verifiers.load_stress`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

from excise.config import VerdictSettings
from excise.errors import EnvironmentFailure
from excise.protocols import TestRunRequest
from excise.types import Baseline, ExecutedCode, Status, TestRun, WorkerOutcome
from excise.verifiers.baseline_acceptance import require_enough, too_slow, uncollectable
from excise.verifiers.load_stress import LOAD_STRESS_FACTOR, LOAD_STRESS_S, load_stress_runs
from excise.verifiers.workbench import Workbench

SHUFFLE_SEED = 20250518
"""Seed of the shuffled run; an arbitrary constant."""
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")


def run_baseline(
    bench: Workbench,
    warm: Path | None = None,
    keep_executed: Callable[[ExecutedCode], None] | None = None,
    finished: Callable[[int, Callable[[], TestRun]], TestRun] = lambda _, make: make(),
) -> Baseline:
    """Run the untouched project's tests ``baseline_runs`` times, and ``starved_runs`` times as on a busy machine.

    The build outputs of the first run are saved as the layer ``warm`` for later runs. ``keep_executed`` is called
    with what its tests executed, if it could be noted. ``finished`` gives the run of a number that an interrupted
    baseline has made, or makes it.
    Raises :class:`EnvironmentFailure` with a reason: ``no_tests, collect_error, timeout, oom, low_pass, flaky,
    import_error, unreproducible, infra``, or one of :mod:`excise.envs.install.failure_classes` if most tests share it.
    """
    env_id, settings = bench.prepared.environment.env_id, bench.settings
    runs = [finished(0, lambda: _ordinary_run(bench, 0, warm, executed=keep_executed is not None))]
    if keep_executed is not None and runs[0].executed is not None:
        keep_executed(runs[0].executed)
    with load_stress_runs(bench, agree(env_id, runs), SHUFFLE_SEED) as stressed:
        for number in range(1, settings.baseline_runs):
            runs.append(finished(number, partial(_ordinary_run, bench, number)))
        idle = agree(env_id, runs)
        require_enough(settings, idle, runs[0])
    baseline = stressed.judge(idle)
    require_enough(settings, baseline, runs[0])
    return baseline


def _ordinary_run(bench: Workbench, number: int, warm: Path | None = None, *, executed: bool = False) -> TestRun:
    """Run number ``number`` of the untouched project; the last one is shuffled."""
    last = number == bench.settings.baseline_runs - 1
    run = bench.run({}, shuffle_seed=SHUFFLE_SEED if last else None, keep_outputs=warm, executed=executed)
    _require_run(bench, run)
    return run


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
        cpu_s=round(min(run.cpu_s for run in runs), 3),
        wall_s=round(min(run.wall_s for run in runs), 3),
    )


def max_baseline_s(settings: VerdictSettings) -> float:
    """Maximum wall seconds of all baseline runs together."""
    return (settings.baseline_runs + 1) * settings.suite_timeout_s + 2 * LOAD_STRESS_FACTOR * LOAD_STRESS_S


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
