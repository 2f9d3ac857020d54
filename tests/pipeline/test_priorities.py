"""The order of jobs, and the progress that a run prints."""

from __future__ import annotations

import gc
import io
import itertools
import random
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from excise.config import Settings
from excise.extractors.features.find_features import FoundFeatures
from excise.pipeline.cluster.worker_pool import InProcessPool
from excise.pipeline.run import progress
from excise.pipeline.run.graph import Run, StageJob
from excise.pipeline.run.job_queue import JobQueue, Rank
from excise.pipeline.run.priorities import ProofTimes, max_active_sources, rank
from excise.pipeline.run.source_state import SourceState
from excise.types import Feature, FeatureKind, Rejection, SourceSpec, WorkerOutcome
from excise.verifiers.prove import Proof

SLOW, QUICK = 100.0, 4.0
"""Seconds of a run of the tests."""


def test_cheap_sources_lead_to_tasks_before_dear_ones() -> None:
    """By expected seconds per task: the next candidate of a cheap source, then its preparation, then dear sources."""
    in_order = [
        rank("prove", suite_s=0.1, tasks=3),
        rank("find", suite_s=0.1, tasks=3),
        rank("environment", num_bytes=10_000, tasks=4),
        rank("environment", num_bytes=10_000, tasks=1),
        rank("prove", suite_s=SLOW, tasks=4),
        rank("baseline", num_bytes=100 << 20, tasks=4),
    ]
    assert [each.task_s for each in in_order] == sorted(each.task_s for each in in_order)


def test_a_source_whose_proofs_took_long_is_dearer_than_expected() -> None:
    expected = rank("prove", suite_s=QUICK)
    sleeping = rank("prove", suite_s=QUICK, proofs=ProofTimes(300.0, 2))
    assert sleeping.task_s > 5 * expected.task_s
    assert rank("prove", suite_s=QUICK, proofs=ProofTimes(expected.task_s, 1)) == expected


def test_proofs_of_an_earlier_run_say_what_the_next_ones_cost() -> None:
    state = SourceState(SourceSpec(spec="pypi:sleeping"), limit=None, stage="prove", num_shards_running=2)
    refused = Rejection(repo="p", stage="gate", subject="f", reason="undescribed", detail="")
    state.record_proofs(0, [Proof(rejection=refused, wall_s=300.0)], 0.1)
    state.record_proofs(1, [Proof(rejection=refused, wall_s=5.0)], 20.0)
    assert state.proof_s == 320.0


def test_the_index_that_all_proofs_need_goes_with_the_first_baseline() -> None:
    """Even where no worker takes the longest chain: its first proofs would make the index themselves, and all wait."""
    surface, baseline = rank("surface", num_bytes=10_000, tasks=4), rank("baseline", num_bytes=10_000, tasks=4)
    assert surface.task_s == baseline.task_s
    assert surface.chain_s > rank("prove", suite_s=SLOW).chain_s


def test_the_longest_chain_of_jobs_heads_the_other_order() -> None:
    in_order = [
        rank("fetch"),
        rank("environment", num_bytes=100 << 20),
        rank("baseline", num_bytes=100 << 20),
        rank("coverage", suite_s=SLOW),
        rank("prove", suite_s=SLOW),
        rank("environment", num_bytes=10_000),
        rank("prove", suite_s=QUICK),
    ]
    assert [each.chain_s for each in in_order] == sorted((each.chain_s for each in in_order), reverse=True)
    assert rank("prove", suite_s=SLOW, tasks=50).chain_s == rank("prove", suite_s=SLOW, tasks=1).chain_s


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


def test_workers_get_a_job_as_soon_as_they_can_begin_it() -> None:
    pool = IdlePool(1)
    jobs: JobQueue[str] = JobQueue(pool)
    for tag, task_s in (("dear", 9.0), ("old", 3.0), ("new", 3.0), ("cheap", 1.0)):
        jobs.put(tag, Rank(task_s, task_s), print)
    jobs.dispatch()
    assert list(jobs.running.values()) == ["cheap"]
    jobs.dispatch()
    assert len(jobs.running) == 1, "the slot is taken"
    pool.workers = 3
    jobs.dispatch()
    assert list(jobs.running.values()) == ["cheap", "dear", "old"], "workers that came are used; one by length of chain"


def test_half_of_the_workers_begin_the_longest_chains() -> None:
    pool = IdlePool(5)
    jobs: JobQueue[int] = JobQueue(pool)
    for length in range(1, 10):
        jobs.put(length, Rank(float(length), float(length)), pow, length, 2)
    jobs.dispatch()
    assert sorted(jobs.running.values()) == [1, 2, 3, 8, 9]
    ended = [length for length, _ in jobs]
    assert sorted(ended) == list(range(1, 10))
    assert not jobs.running


def test_no_worker_begins_a_long_chain_where_only_the_number_of_tasks_counts() -> None:
    jobs: JobQueue[int] = JobQueue(IdlePool(5), cheapest_only=True)
    for length in range(1, 10):
        jobs.put(length, Rank(float(length), float(length)), pow, length, 2)
    jobs.dispatch()
    assert sorted(jobs.running.values()) == [1, 2, 3, 4, 5]


class NearPool(IdlePool):
    """A machine that has the files of some groups."""

    has_machines = True
    near = frozenset({"b"})

    def prefer(self, groups: Sequence[Hashable]) -> int:
        return next((number for number, group in enumerate(groups) if group in self.near), 0)


def test_a_machine_gets_jobs_whose_files_it_has_in_their_order() -> None:
    pool = NearPool(4)
    jobs: JobQueue[str] = JobQueue(pool, cheapest_only=True)
    for tag, task_s in (("a1", 1.0), ("b4", 4.0), ("a2", 2.0), ("b3", 3.0), ("c5", 5.0)):
        jobs.put(tag, Rank(task_s, task_s), print, group=tag[0])
    jobs.dispatch()
    assert list(jobs.running.values()) == ["b3", "b4", "a1", "a2"]
    jobs.put("b0", Rank(0.0, 0.0), print, group="b")
    pool.workers = 6
    jobs.dispatch()
    assert list(jobs.running.values())[4:] == ["b0", "c5"]


def test_a_long_queue_gives_jobs_in_order() -> None:
    """As taking the smallest of all would, with either order, in groups or not."""
    chance = random.Random(3)
    ranks = [Rank(float(chance.randrange(50)), float(chance.randrange(50))) for _ in range(500)]
    jobs: JobQueue[int] = JobQueue(IdlePool(2))
    for number, each in enumerate(ranks):
        jobs.put(number, each, print, group=chance.choice([None, number % 7, number % 3]))
    left, expected = dict(enumerate(ranks)), []
    for for_chain in itertools.cycle((True, False)):
        if not left:
            break
        expected.append(min(left, key=lambda n: (-left[n].chain_s if for_chain else left[n].task_s, n)))
        del left[expected[-1]]
    taken = []
    while jobs._queued:
        jobs.dispatch()
        taken += jobs.running.values()
        jobs.running.clear()
        jobs._chains.clear()
    assert taken == expected


def test_a_measured_suite_decides_which_source_goes_first() -> None:
    run = run_of(2, workers=1)
    for state, wall_s in zip(run.states, (SLOW, QUICK), strict=True):
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


def test_a_full_disk_ends_its_source_at_once() -> None:
    state = SourceState(SourceSpec(spec="pypi:p"), limit=None, stage="prove", num_shards_running=2)
    row = unlucky(0, WorkerOutcome.INFRA_ERROR).rejection
    assert row is not None
    state.record_proofs(0, [Proof(rejection=replace(row, detail="git failed: 'No space left on device' is no path"))])
    assert not state.done
    state.record_proofs(1, [Proof(rejection=replace(row, detail="[Errno 28] No space left on device"))])
    assert state.done
    assert state.report().detail.startswith("The disk is full: [Errno 28]")


@pytest.mark.parametrize("is_late", [False, True])
def test_what_a_removal_was_refused_as_is_not_tried_or_counted_again(is_late: bool) -> None:
    """Or not counted, if it was under way when the removal was refused."""
    features = tuple(
        Feature(feature_id=str(number), kind=FeatureKind.FUNCTION, tier=1, entry=(), symbols=(), tests=())
        for number in range(5)
    )
    state = SourceState(SourceSpec(spec="pypi:p"), limit=None)
    state.add_features(FoundFeatures(features=features, symbols=()))
    refused = Rejection(repo="p", stage="delete", subject="f", reason="used_elsewhere", detail="x")
    as_stub = replace(refused, evidence={"stub": "no_fail_to_pass: y"})
    shards = dict(state.next_shards(9 if is_late else 4))
    assert len(shards) == (6 if is_late else 5)
    for first, ((each, _),) in reversed(shards.items()):
        state.record_proofs(first, [Proof(rejection=as_stub if each.feature_id == "1" else refused)])
    assert dict(state.next_shards(9)) == {}
    assert state.done
    assert state.report().rejected == {"used_elsewhere": 5}


MARKER = 31415.25
"""CPU seconds of proofs that no other test makes."""


def num_marked_proofs() -> int:
    return sum(isinstance(found, Proof) and found.cpu_s == MARKER for found in gc.get_objects())


def test_a_source_that_has_ended_keeps_only_its_counts() -> None:
    features = tuple(
        Feature(feature_id=f"{number}", kind=FeatureKind.CLASS, tier=1, entry=(), symbols=(), tests=())
        for number in range(2)
    )
    state = SourceState(SourceSpec(spec="pypi:p"), limit=None)
    state.add_features(FoundFeatures(features=features, symbols=()))
    shards = list(state.next_shards(2))
    refused = Rejection(repo="p", stage="gate", subject="f", reason="leak", detail="x")
    for first, _ in shards:
        state.record_proofs(first, [Proof(rejection=refused, cpu_s=MARKER)])
    assert list(state.next_shards(2)) == []
    before = state.report()
    assert (state.done, before.rejected, before.cpu_s, before.num_features) == (True, {"leak": 2}, 2 * MARKER, 2)
    assert num_marked_proofs() == 2
    state.release()
    assert num_marked_proofs() == 0
    assert state.report() == before
    assert (state.num_tasks, state.tried) == (0, 2)
