"""The order of jobs, and the progress that a run prints."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from excise.config import Settings
from excise.pipeline.run import progress
from excise.pipeline.run.graph import Run, StageJob
from excise.pipeline.run.job_queue import JobQueue
from excise.pipeline.run.priorities import SLOW_SUITE_S, max_active_sources, priority
from excise.pipeline.run.source_state import SourceState
from excise.pipeline.run.worker_pool import InProcessPool
from excise.types import Rejection, SourceSpec, WorkerOutcome
from excise.verifiers.prove import Proof

SLOW, QUICK = 5 * SLOW_SUITE_S, SLOW_SUITE_S / 5


def test_the_cost_of_repositories_is_measured_first() -> None:
    unknown = [priority("fetch"), priority("environment", num_bytes=1), priority("baseline", num_bytes=10**12)]
    known = [priority(stage, wall_s=1e9) for stage in ("coverage", "find", "prove")]
    assert unknown == sorted(unknown, reverse=True)
    assert min(unknown) > max(known)
    assert priority("baseline", num_bytes=2 << 20) > priority("baseline", num_bytes=1 << 20)


def test_a_long_suites_chain_goes_before_everything_that_can_fill_gaps() -> None:
    assert priority("coverage", wall_s=SLOW) > priority("find", wall_s=QUICK) > priority("prove", wall_s=QUICK)
    assert priority("coverage", wall_s=2 * SLOW) > priority("coverage", wall_s=SLOW)


def test_a_short_repository_comes_to_its_end_before_the_next_is_mapped() -> None:
    assert priority("prove", wall_s=0.1) > priority("coverage", wall_s=QUICK) > priority("prove", wall_s=SLOW)


class IdlePool(InProcessPool):
    """Takes jobs and runs none."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.workers = workers

    def num_slots(self) -> int:
        return self.workers


def run_of(num_sources: int, workers: int) -> Run:
    sources = tuple(SourceSpec(spec=f"pypi:p{number}") for number in range(num_sources))
    writer = SimpleNamespace(names=tuple)
    return Run(Settings(sources=sources), IdlePool(workers), writer, lambda _: None)  # type: ignore[arg-type]


def test_workers_get_the_most_urgent_job_that_they_can_begin() -> None:
    pool = IdlePool(2)
    jobs: JobQueue[str] = JobQueue(pool)
    for tag, priority_of_it in (("short", 1.0), ("old", 3.0), ("new", 3.0), ("urgent", 9.0)):
        jobs.put(tag, priority_of_it, print)
    jobs.dispatch()
    assert list(jobs.running.values()) == ["urgent", "old"]
    jobs.dispatch()
    assert len(jobs.running) == 2, "both slots are taken"
    pool.workers = 3
    jobs.dispatch()
    assert list(jobs.running.values()) == ["urgent", "old", "new"], "a worker that came is used"


def test_a_known_cost_decides_the_priority() -> None:
    run = run_of(2, workers=1)
    for state, wall_s in zip(run.states, (QUICK, SLOW), strict=True):
        state.prepared = SimpleNamespace(baseline=SimpleNamespace(suite_s=lambda wall_s=wall_s: wall_s))  # type: ignore[assignment]
        run.submit(StageJob(state, "coverage"), print)
    run.jobs.dispatch()
    assert [job.state for job in run.jobs.running.values()] == [run.states[1]]


def test_sources_are_admitted_as_others_end() -> None:
    run = run_of(40, workers=2)
    room = max_active_sources(2)
    run.admit_sources()
    run.admit_sources()
    assert [state.stage for state in run.states] == ["fetch"] * room + ["waiting"] * (40 - room)
    run.states[3].fail(Rejection(repo="p3", stage="fetch", subject="p3", reason="gone", detail="gone"))
    run.admit_sources()
    assert [state.stage for state in run.states].count("waiting") == 40 - room - 1
    assert run.states[room].stage == "fetch"


def test_a_run_reports_regularly_even_if_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.05)
    out = io.StringIO()
    state = SourceState(SourceSpec(spec="pypi:slow"), limit=None, stage="baseline")
    state.job_started("baseline")
    with progress.Progress(Console(file=out, width=200)) as listener:
        listener([state])
        seen = out.getvalue().count("0/1 sources done")
        assert listener._ended.wait(0.3) is False
    lines = out.getvalue().splitlines()
    assert sum("0/1 sources done" in line for line in lines) > seen
    assert "pypi:slow at baseline for 0 s" in lines[-1]


def test_a_quiet_run_prints_nothing(tmp_path: Path) -> None:
    out = io.StringIO()
    with progress.Progress(Console(file=out), quiet=True) as listener:
        listener([SourceState(SourceSpec(spec="pypi:slow"), limit=None, stage="baseline")])
    assert not out.getvalue()


def unlucky(number: int, worker: WorkerOutcome) -> Proof:
    row = Rejection(repo="p", stage="gate", subject=str(number), reason="infra_error", detail="No space left.")
    return Proof(rejection=replace(row, worker_outcome=worker))


def test_a_machine_that_cannot_try_candidates_ends_its_source() -> None:
    state = SourceState(SourceSpec(spec="pypi:p"), limit=None, stage="prove", num_shards_running=4)
    outcomes = [
        WorkerOutcome.INFRA_ERROR,
        WorkerOutcome.INFRA_ERROR,
        WorkerOutcome.OK,
        WorkerOutcome.INFRA_ERROR,
        WorkerOutcome.KILLED,
    ]
    for number, worker in enumerate(outcomes):
        state.record_proofs(number, [unlucky(number, worker)])
    assert state.failure is None, "never three in a row"
    state.record_proofs(
        5,
        [
            unlucky(5, WorkerOutcome.INFRA_ERROR),
            unlucky(6, WorkerOutcome.INFRA_ERROR),
            unlucky(7, WorkerOutcome.INFRA_ERROR),
        ],
    )
    assert state.done
    assert state.report().status == "infra_error"
    assert state.report().detail.startswith("3 candidates in a row could not be tried on this machine: No space left.")
