"""A refresh keeps nothing in memory of sources that have ended, and shows readers nothing before its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from excise.config import Settings
from excise.datasets.storage.store import Store
from excise.datasets.storage.writer import Writer
from excise.datasets.taskset import TaskSet
from excise.pipeline.cluster.worker_pool import InProcessPool
from excise.pipeline.run.graph import Run
from excise.pipeline.stages.fetch_stage import FetchedSources
from excise.types import Rejection, SourceSpec, WorkerOutcome

A, B = SourceSpec(spec="pypi:a"), SourceSpec(spec="pypi:b")


@pytest.fixture
def known(stored) -> TaskSet:
    """A set with eight tasks."""
    return stored.taskset


class Refresh:
    """A refresh of two sources with tasks of a stored set."""

    def __init__(self, known: TaskSet, writer: Writer) -> None:
        self.known = known
        self.run = Run(Settings(sources=(A, B)), InProcessPool(), writer, lambda _: None, atomic=True)
        self.states = dict(zip("ab", self.run.states, strict=True))

    def end(self, name: str, numbers: Sequence[int]) -> None:
        """Let a source end with the tasks of these numbers."""
        state = self.states[name]
        for instance_id in [self.known.ids()[number] for number in numbers]:
            task = self.known.task(instance_id)
            state.sources = FetchedSources(repo=self.known.repo(task.repo), layer="")
            state.tasks[instance_id] = task
            state.certificates[instance_id] = self.known.certificate(instance_id)
        state.stage = "done"
        self._job_ended(name)

    def fail(self, name: str, outcome: WorkerOutcome) -> None:
        """Let a source end because its environment does not work."""
        row = Rejection(repo=name, stage="environment", subject=name, reason="build_failed", detail="x")
        self.states[name].fail(replace(row, worker_outcome=outcome))
        self._job_ended(name)

    def _job_ended(self, name: str) -> None:
        self.run.dirty.add(self.states[name].name)
        self.run.write_or_publish(self.states[name])

    def publish(self) -> None:
        """End the run."""
        self.run.dirty.update(state.name for state in self.run.states)
        self.run.publish()


def refreshed(root: Path, known: TaskSet, a: Sequence[int], b: Sequence[int], first: str = "a") -> list[set[str]]:
    """Refresh a set; return the ids of each source's tasks in it."""
    with Store(root).writer() as writer:
        refresh = Refresh(known, writer)
        for name in [first, *({"a", "b"} - {first})]:
            refresh.end(name, a if name == "a" else b)
        refresh.publish()
    current = Store(root).current()
    assert current is not None
    return [set(current.index.tasks(state.entry)) for state in refresh.run.states]


def test_rows_of_an_ended_source_are_on_disk_and_invisible(known: TaskSet, tmp_path: Path) -> None:
    ids = known.ids()
    refreshed(tmp_path, known, [0, 1], [2])
    before = (tmp_path / "current").resolve()
    with Store(tmp_path).writer() as writer:
        refresh = Refresh(known, writer)
        refresh.end("a", [0, 3])
        state = refresh.states["a"]
        assert (state.tasks, state.certificates, state.sources, state.num_tasks) == ({}, {}, None, 2)
        assert any(file.is_file() for file in (tmp_path / "snapshots").glob(".staging-*/tasks/*"))
        assert (tmp_path / "current").resolve() == before
        assert set(TaskSet.open(tmp_path).ids()) == set(ids[:3])
        refresh.end("b", [2])
        refresh.publish()
    assert set(TaskSet.open(tmp_path).ids()) == {ids[0], ids[3], ids[2]}


def test_a_refresh_that_does_not_end_leaves_the_set_as_it_was(known: TaskSet, tmp_path: Path) -> None:
    refreshed(tmp_path, known, [0], [1])
    before = sorted((tmp_path / "snapshots").iterdir())
    with Store(tmp_path).writer() as writer:
        Refresh(known, writer).end("a", [2])
        assert sorted((tmp_path / "snapshots").iterdir()) != before
    assert sorted((tmp_path / "snapshots").iterdir()) == before
    assert set(TaskSet.open(tmp_path).ids()) == {known.ids()[0], known.ids()[1]}


@pytest.mark.parametrize(("outcome", "kept"), [(WorkerOutcome.INFRA_ERROR, True), (WorkerOutcome.OK, False)])
def test_a_source_that_fails_keeps_its_tasks_if_the_machine_is_to_blame(
    known: TaskSet, tmp_path: Path, outcome: WorkerOutcome, kept: bool
) -> None:
    refreshed(tmp_path, known, [0], [1])
    with Store(tmp_path).writer() as writer:
        refresh = Refresh(known, writer)
        refresh.fail("a", outcome)
        refresh.end("b", [1])
        refresh.publish()
    assert (known.ids()[0] in TaskSet.open(tmp_path).ids()) == kept


def test_a_task_may_pass_from_one_source_to_another_that_ends_before_it(known: TaskSet, tmp_path: Path) -> None:
    ids = known.ids()
    assert refreshed(tmp_path, known, [0, 1], [2]) == [{ids[0], ids[1]}, {ids[2]}]
    assert refreshed(tmp_path, known, [0], [1, 2], first="b") == [{ids[0]}, {ids[1], ids[2]}]


def test_of_two_sources_with_one_task_one_is_refused(known: TaskSet, tmp_path: Path) -> None:
    ids = known.ids()
    assert refreshed(tmp_path, known, [0], [0, 1]) == [{ids[0]}, set()]
    assert refreshed(tmp_path, known, [0], [0, 1], first="b") == [{ids[0]}, set()]
