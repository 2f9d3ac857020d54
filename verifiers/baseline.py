"""Gate 1's ground: the untouched project, run N times, once shuffled; flaky tests are found and used for nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from excise.errors import EnvironmentFailure
from excise.types import Baseline, Status, TestRun, Worker
from excise.verifiers.enough import require_enough, too_slow, uncollectable
from excise.verifiers.workbench import Workbench

SHUFFLE_SEED = 20250518
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")


def run_baseline(bench: Workbench, warm: Path | None = None) -> Baseline:
    """Run the untouched project ``baseline_runs`` times.

    The byte code that the first run compiles becomes the layer ``warm``, from which later runs start.
    Raises :class:`EnvironmentFailure` with a class: ``no_tests, collect_error, timeout, oom, low_pass, flaky,
    import_error, unreproducible, infra``, or what the failing tests want (:mod:`excise.envs.causes`).
    """
    runs: list[TestRun] = []
    for number in range(bench.settings.baseline_runs):
        last = number == bench.settings.baseline_runs - 1
        run = bench.run({}, shuffle_seed=SHUFFLE_SEED if last else None, keep_pyc=warm if number == 0 else None)
        _require_run(bench, run)
        runs.append(run)
    baseline = agree(bench.prepared.environment.env_id, runs)
    require_enough(bench.settings, baseline, runs[0])
    return baseline


def missing_modules(bench: Workbench) -> tuple[str, ...]:
    """Import names that collecting the tests does not find; asked once, before the first real run."""
    run = collect_only(bench)
    messages = [message for _, message in run.collect_errors] or [run.detail]  # a conftest that fails has only output
    found = (_NO_MODULE.search(message) for message in messages)
    return tuple(dict.fromkeys(match[1] for match in found if match))


def collect_only(bench: Workbench) -> TestRun:
    """Collect the tests and run none: ``collect_errors`` says what cannot be collected."""
    with bench.open({}) as session:
        recipe = replace(bench.recipe, test_args=(*bench.recipe.test_args, "--collect-only"))
        return bench.language.run_tests(session, recipe, timeout_s=min(300.0, bench.suite_timeout_s(None)))


def agree(env_id: str, runs: Sequence[TestRun]) -> Baseline:
    """What several runs say together."""
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


def _require_run(bench: Workbench, run: TestRun) -> None:
    if run.worker is Worker.TIMEOUT:
        raise too_slow(run, bench.suite_timeout_s(None))
    if run.worker is Worker.OOM:
        raise EnvironmentFailure(
            f"The tests need more than {bench.settings.memory_mb} MB. Raise verdict.memory_mb.", reason="oom"
        )
    if run.worker is not Worker.OK:
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
