"""The run: one Dask graph of pure stages, which grows where the answers say so.

    fetch -> environment -> baseline -> coverage -> find -> prove (shards of a repository) -> publish

Where environment or baseline refuse a repository for a reason that a model could mend, and one is configured, its
environment is made once more by that model, and the chain goes on from there.
Which job goes first is :mod:`excise.pipeline.run.priorities`'s business. Answers are kept by the stages themselves,
on the worker, before they travel: a worker that dies costs the tasks it had in hand, and these become rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from excise.config import Settings
from excise.datasets.snapshot import SnapshotReport
from excise.datasets.store import Store, Writer
from excise.errors import StoreError
from excise.pipeline.run import priorities as order
from excise.pipeline.run.cluster import cluster_client
from excise.pipeline.run.job_queue import Jobs, failure_of
from excise.pipeline.run.selection import MARK, Plan
from excise.pipeline.run.source_state import SourceState
from excise.pipeline.stages import environment_stage as stages
from excise.pipeline.stages import model_stage as model_environment
from excise.pipeline.stages import prove_stage as proving
from excise.pipeline.stages.error_boundary import rejection_of
from excise.types import Feature, Rejection, SourceSpec, Worker
from excise.verifiers.prove import Proof

PUBLISH_EVERY_S = 60.0

Listener = Callable[[Sequence[SourceState]], None]
"""Called whenever something changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run ended."""

    states: tuple[SourceState, ...]
    """Every source."""
    report: SnapshotReport
    """What came, changed and went in the task set."""
    interrupted: bool
    """Ctrl-C: what was done is published, the rest is not there yet."""


@dataclass(slots=True)
class _Job:
    state: SourceState
    stage: order.Stage
    first: int = 0
    shard: Sequence[tuple[Feature, str]] = ()


class Run:
    """One run of the graph over all sources."""

    def __init__(
        self,
        settings: Settings,
        client: Any,
        writer: Writer,
        listener: Listener,
        *,
        atomic: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self.settings = settings
        self.atomic = atomic
        self.writer = writer
        self.listener = listener
        self.plan = plan or Plan()
        self.states = [SourceState(spec, self.cap(spec), self.plan) for spec in unique(settings.sources)]
        self.jobs: Jobs[_Job] = Jobs(client, self.begun)
        self.dirty: set[str] = set()
        self.known_before = frozenset(name for name in writer.names() if writer.num_tasks(name))
        self.published = time.monotonic()

    def cap(self, spec: SourceSpec) -> int | None:
        """At most so many tasks. A run that asks for fewer than are published takes none away; a refresh does."""
        limit = spec.limit or self.settings.limit
        return limit if limit is None or self.atomic else max(limit, self.writer.num_tasks(self.plan.entry(spec)))

    def submit(self, job: _Job, function: Callable[..., Any], *args: Any) -> None:
        """Put a stage into the graph."""
        state = job.state
        baseline = state.prepared.baseline if state.prepared else None
        rank = order.priority(
            job.stage,
            num_bytes=state.repo.num_bytes if state.repo else 0,
            wall_s=baseline.suite_s() if baseline else 0.0,
        )
        self.jobs.put(job, rank, function, self.settings, state.name, *args)
        state.stage = job.stage

    def begun(self, job: _Job) -> None:
        """A worker has a job now."""
        job.state.begin(job.stage)
        self.listener(self.states)

    def admit(self) -> None:
        """Let the next sources in, as far as there is room."""
        under_way = sum(state.stage != "waiting" and not state.done for state in self.states)
        room = order.window(self.jobs.slots) - under_way
        for state in [state for state in self.states if state.stage == "waiting"][: max(0, room)]:
            self.submit(_Job(state, "fetch"), stages.fetch_stage, state.spec)

    def go(self) -> bool:
        """Run to the end; False if interrupted."""
        self.admit()
        self.listener(self.states)
        try:
            for job, future in self.jobs:
                job.state.running -= 1
                self.advance(job, self.answer(future, job))
                self.admit()
                self.dirty.add(job.state.name)
                if not self.atomic and (job.state.done or time.monotonic() - self.published > PUBLISH_EVERY_S):
                    self.publish()
                self.listener(self.states)
        except KeyboardInterrupt:
            self.jobs.cancel()
            return False
        return True

    def answer(self, future: Any, job: _Job) -> Any:
        """The stage's answer; a worker that died, or a bug, is a row like any other."""
        if future.status == "finished":
            return future.result()
        reason, detail = failure_of(future, "the next run tries again")
        return Rejection(
            repo=job.state.name,
            stage=job.stage,
            subject=job.state.name,
            reason=reason,
            detail=detail,
            worker_outcome=Worker.KILLED if reason == "worker_died" else Worker.INFRA_ERROR,
        )

    def advance(self, job: _Job, answer: Any) -> None:
        """From one stage to the next."""
        state = job.state
        if job.stage == "prove":
            state.take(job.first, _lost(answer, job.shard) if isinstance(answer, Rejection) else answer)
            self.feed(state)
            return
        if isinstance(answer, Rejection):
            if model_environment.may_mend(self.settings, job.stage, answer):
                self.submit(_Job(state, "model"), model_environment.model_stage, state.spec, state.sourced, answer)
            else:
                state.fail(answer)
        elif job.stage == "fetch":
            state.sourced = answer
            self.submit(_Job(state, "environment"), stages.environment_stage, state.spec, answer)
        elif job.stage in {"environment", "model"}:
            state.prepared = answer
            self.submit(_Job(state, "baseline"), stages.baseline_stage, answer)
        elif job.stage == "baseline":
            state.prepared = answer
            self.submit(_Job(state, "coverage"), stages.coverage_stage, answer)
        elif job.stage == "coverage":
            state.prepared = answer
            self.submit(_Job(state, "find"), stages.find_stage, answer, self.plan.min_loc)
        elif job.stage == "find":
            state.propose(answer)
            self.feed(state)

    def feed(self, state: SourceState) -> None:
        """Give the workers the next shards of a repository."""
        if state.failure is not None:
            return
        assert state.prepared is not None
        try:
            state.saved = state.saved or proving.save_prepared(self.settings, state.prepared)
        except OSError as error:
            state.fail(rejection_of("prove", state.name, error))
            return
        for first, shard in state.shards(self.jobs.slots):
            self.submit(_Job(state, "prove", first, shard), proving.prove_shard, state.saved, shard)

    def publishable(self, state: SourceState) -> bool:
        """Whether a source's rows may replace what the set has: never half for whole, never a failure for tasks."""
        if state.name not in self.dirty or (state.sourced is None and state.failure is None):
            return False
        if state.entry not in self.known_before:
            return True
        lost = state.failure is not None and state.failure.worker_outcome is not Worker.OK
        unavailable = state.failure is not None and state.failure.stage == "fetch"
        return state.done and not lost and not unavailable

    def publish(self) -> None:
        """Make everything so far the current snapshot."""
        for state in self.states:
            if self.publishable(state):
                try:
                    self.writer.put_repo(state.entry, state.rows())
                except StoreError as error:
                    if error.reason != "duplicate_task":
                        raise
                    state.tasks.clear()
                    state.certificates.clear()
                    state.fail(rejection_of("publish", state.name, error))
                    self.writer.put_repo(state.entry, state.rows())
        self.dirty.clear()
        self.published = time.monotonic()
        self.writer.publish()


def _lost(answer: Rejection, shard: Sequence[tuple[Feature, str]]) -> list[Proof]:
    """A row for each candidate of a shard that never answered."""
    rows = (replace(answer, subject=f.feature_id, kind=f.kind, symbols=f.symbols) for f, _ in shard)
    return [Proof(rejection=row) for row in rows]


def unique(specs: Sequence[SourceSpec]) -> list[SourceSpec]:
    """The first of several equal sources."""
    return list({spec.name: spec for spec in reversed(specs)}.values())[::-1]


def run(settings: Settings, listener: Listener, *, refresh: bool = False, plan: Plan | None = None) -> RunResult:
    """Make tasks from all sources and publish them as they come; ``plan`` says which ones.

    A ``refresh`` publishes once, at the end, and takes repositories out that are no longer among the sources.
    Raises :class:`excise.errors.ConfigError` and :class:`excise.errors.StoreError`.
    """
    with Store(settings.out).writer() as writer, cluster_client(settings.scheduler, settings.workers) as client:
        graph = Run(settings, client, writer, listener, atomic=refresh, plan=plan)
        finished = graph.go()
        graph.dirty.update(state.name for state in graph.states)
        if refresh and finished:
            kept = {state.name for state in graph.states}
            for name in writer.names():
                if name.partition(MARK)[0] not in kept:
                    writer.drop_repo(name)
        if refresh and not finished:
            return RunResult(states=tuple(graph.states), report=SnapshotReport(), interrupted=True)
        graph.publish()
        return RunResult(states=tuple(graph.states), report=writer.changes(), interrupted=not finished)
