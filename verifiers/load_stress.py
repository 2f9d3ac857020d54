"""Load-stress runs: the tests of the untouched project as on a busy machine.

Tests that depend on timing fail on a busy machine, and would make sound tasks fail there. These runs find them: the
test process is paused repeatedly, and gets half a CPU core if the sandbox can limit that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from excise.config import VerdictSettings
from excise.protocols import Policy, TestRunRequest
from excise.system.deadline import with_context_of_caller
from excise.types import Baseline, Status, TestRun, WorkerOutcome
from excise.verifiers.workbench import Workbench

LOAD_STRESS_CPUS = 0.5
"""CPU cores of a load-stress run, if the sandbox can limit them."""
LOAD_STRESS_S = 20.0
"""CPU seconds of all load-stress runs of a project together, if each takes as long as the suite."""
BUSY_LOAD = 1.5
"""Load average per core from which load-stress runs are made one after the other, instead of all at once."""
STARVED_LOAD = 4.0
"""Load average per core from which only one is made: the ordinary runs meet the load already."""
LOAD_STRESS_FACTOR = 10.0
"""The time limit of a load-stress run, and of each test in it, is raised by this multiple of the normal duration."""


class LoadStressRuns:
    """The load-stress runs of a project; :meth:`judge` may be called when all have ended."""

    def __init__(self, bench: Workbench, runs: Sequence[Future[TestRun]], how: str) -> None:
        self.bench, self.how = bench, how
        self._runs = runs

    def judge(self, baseline: Baseline) -> Baseline:
        """Return the baseline in which tests that fail in these runs are flaky. Runs that do not finish are ignored."""
        made = [run.result() for run in self._runs]
        if not made:
            return baseline
        runs = [run.statuses() for run in made if run.worker is WorkerOutcome.OK and run.finished]
        statuses, flaky = dict(baseline.statuses), dict(baseline.flaky)
        for test in baseline.passing():
            failed = [found for run in runs if (found := run.get(test, Status.MISSING)) is not Status.PASSED]
            if failed:
                flaky[test] = f"{Status.PASSED} {baseline.num_runs} times, then {failed[0]} when starved"
                del statuses[test]
        self.bench.spent = self.bench.spent.plus(sum(run.cpu_s for run in made), max(run.wall_s for run in made))
        return replace(baseline, statuses=statuses, flaky=flaky, starved=f"{len(runs)} {self.how}" if runs else "")


@contextmanager
def load_stress_runs(bench: Workbench, once: Baseline, shuffle_seed: int) -> Iterator[LoadStressRuns]:
    """Make load-stress runs while the block runs; leave it when they have ended.

    They mostly wait: four of them at once need about one core. On a busy machine, they are made one after the other.
    ``once`` is the baseline of the first ordinary run; ``shuffle_seed`` gives the order of the tests.
    """
    wanted, load = num_load_stress_runs(bench.settings, once), load_per_core()
    if not wanted:
        yield LoadStressRuns(bench, [], "")
        return
    wanted = 1 if load >= STARVED_LOAD else wanted
    policy = bench.policy
    if limited := "cpus" in bench.sandbox.capabilities().how:
        policy = replace(policy, cpus=min(policy.cpus or LOAD_STRESS_CPUS, LOAD_STRESS_CPUS))
    run_once = with_context_of_caller(_load_stress_run)
    with ThreadPoolExecutor(wanted if load < BUSY_LOAD else 1) as pool:
        runs = [pool.submit(run_once, bench, once, policy, shuffle_seed) for _ in range(wanted)]
        try:
            yield LoadStressRuns(bench, runs, "runs with pauses" + (f" on {policy.cpus:g} CPUs" if limited else ""))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def num_load_stress_runs(settings: VerdictSettings, baseline: Baseline) -> int:
    """How many load-stress runs to make: all that are wanted, if they take at most :data:`LOAD_STRESS_S` together."""
    return min(settings.starved_runs, int(LOAD_STRESS_S / max(baseline.cpu_s, baseline.wall_s, 0.1)))


def load_per_core() -> float:
    """The machine's load average of the last minute, divided by its number of cores."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def _load_stress_run(bench: Workbench, baseline: Baseline, policy: Policy, shuffle_seed: int) -> TestRun:
    slowest = max((baseline.durations[test] for test in baseline.passing()), default=0.0)
    request = TestRunRequest(
        shuffle_seed=shuffle_seed,
        load_stress=True,
        timeout_s=bench.settings.suite_timeout_s + LOAD_STRESS_FACTOR * baseline.wall_s,
        test_timeout_s=bench.settings.test_timeout_s + LOAD_STRESS_FACTOR * slowest,
    )
    with bench.open({}, policy) as session:
        return bench.language.run_tests(session, bench.recipe, request)
