"""A run over all sources: submits one job per stage and source to the workers; each result leads to the next job.

    fetch -> environment -> baseline -> coverage -> find -> prove (shards of a repository) -> publish

If the environment or baseline stage rejects a repository for a reason that a model may fix, and a model is configured,
the model stage builds the environment, and the baseline stage follows. If the settings ask for it, the propose stage
comes between find and prove. :mod:`excise.pipeline.run.priorities` orders the
jobs. Workers cache the results of stages before they return them, so that a worker that dies loses only the jobs that
it was running; these become rejections.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from excise.config import Settings
from excise.datasets.storage import near_duplicates
from excise.datasets.storage.manifest import SnapshotReport
from excise.datasets.storage.near_duplicates import NearDuplicate
from excise.datasets.storage.store import Store
from excise.datasets.storage.writer import Writer
from excise.deleters.code_editors import editor_of
from excise.errors import StoreError
from excise.pipeline.cluster.local_cluster import open_worker_pool
from excise.pipeline.cluster.worker_pool import InProcessPool, JobResult, WorkerPool
from excise.pipeline.run.job_queue import JobQueue
from excise.pipeline.run.priorities import ProofTimes, StageName, max_active_sources, rank
from excise.pipeline.run.selection import REQUEST_MARK, CandidateSelection, CandidateSpec
from excise.pipeline.run.source_check import missing_sources
from excise.pipeline.run.source_state import SourceState
from excise.pipeline.stages.baseline_stage import baseline_stage
from excise.pipeline.stages.coverage_stage import coverage_stage
from excise.pipeline.stages.environment_stage import environment_stage
from excise.pipeline.stages.error_boundary import rejection_of
from excise.pipeline.stages.fetch_stage import fetch_stage
from excise.pipeline.stages.find_stage import find_stage
from excise.pipeline.stages.model_stage import may_mend, model_stage
from excise.pipeline.stages.propose_stage import ProposedFeatures, propose_stage
from excise.pipeline.stages.prove_stage import prove_shard, save_prepared
from excise.pipeline.stages.surface_stage import surface_stage
from excise.types import Rejection, SourceSpec, WorkerOutcome
from excise.verifiers.prove import Proof
from excise.verifiers.workbench import Prepared

logger = logging.getLogger(__name__)

PUBLISH_EVERY_S = 60.0
"""Minimum number of seconds between two snapshots during a run; a snapshot is also published when a source ends, and
with the first task."""

Listener = Callable[[Sequence[SourceState]], None]
"""Called with the states of all sources after every change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run."""

    states: tuple[SourceState, ...]
    """Every source."""
    report: SnapshotReport
    """The tasks that were added, changed and removed in the task set."""
    interrupted: bool
    """Whether Ctrl-C ended the run; finished work is published, the rest is missing."""
    near_duplicates: tuple[NearDuplicate, ...] = ()
    """New tasks that are almost the same as a task of this or an earlier run."""


@dataclass(slots=True)
class StageJob:
    """One stage of one source, or one shard of its candidates, on a worker."""

    state: SourceState
    """The source."""
    stage: StageName
    """The stage."""
    first: int = 0
    """Number of the shard's first candidate; only for ``prove``."""
    shard: Sequence[CandidateSpec] = ()
    """The candidates; only for ``prove``."""
    began: float = 0.0
    """Time of :func:`time.monotonic` at which a worker started it."""


class Run:
    """One run of the graph over all sources."""

    def __init__(
        self,
        settings: Settings,
        pool: WorkerPool,
        writer: Writer,
        listener: Listener,
        *,
        atomic: bool = False,
        selection: CandidateSelection | None = None,
    ) -> None:
        """``atomic``: publish once, at the end; otherwise when sources end, and every minute. Rows of sources that have
        ended are with the writer until then, on disk, where no reader sees them."""
        self.settings = settings
        self.atomic = atomic
        self.writer = writer
        self.listener = listener
        self.selection = selection or CandidateSelection()
        self.states = [SourceState(spec, self.cap(spec), self.selection) for spec in unique(settings.sources)]
        self.total = None if atomic else settings.total
        """Number of tasks after which the run ends."""
        self.jobs: JobQueue[StageJob] = JobQueue(pool, self.job_started, cheapest_only=self.total is not None)
        self.dirty: set[str] = set()
        """Names of sources with rows that are not published yet."""
        self.known_before = frozenset(name for name in writer.names() if writer.num_tasks(name))
        """Entries that had tasks before the run."""
        self.published = time.monotonic()
        """When the last snapshot was published."""
        self.indexed: set[tuple[str, tuple[str, ...]]] = set()
        """Interpreter and system packages for which a surface was indexed."""
        self.has_tasks = False
        """Whether a task of this run existed when the last snapshot was published."""

    def cap(self, spec: SourceSpec) -> int | None:
        """Return the maximum number of tasks of a source; ``None`` without a limit.

        Only an atomic run may reduce the number of tasks that are already published.
        """
        limit = spec.limit or self.settings.limit
        if limit is None or self.atomic:
            return limit
        return max(limit, self.writer.num_tasks(self.selection.entry_name(spec)))

    def submit(self, job: StageJob, function: Callable[..., Any], *args: Any) -> None:
        """Put a job into the queue."""
        state = job.state
        baseline = state.prepared.baseline if state.prepared else None
        rank_of_job = rank(
            job.stage,
            num_bytes=state.repo.num_bytes if state.repo else 0,
            suite_s=baseline.suite_s() if baseline else None,
            tasks=state.num_wanted if state.limit is not None or state.proposed else None,
            proofs=ProofTimes(state.proof_s, len(state.tasks)),
        )
        self.jobs.put(job, rank_of_job, function, self.settings, state.name, *args, group=state.name)
        if job.stage != "surface":
            state.stage = job.stage

    def job_started(self, job: StageJob) -> None:
        """Record that a worker was given a job."""
        job.began = time.monotonic()
        if job.stage != "surface":
            job.state.job_started(job.stage)
        logger.info("stage begun", extra={"source": job.state.name, "stage": job.stage})
        self.listener(self.states)

    def admit_sources(self) -> None:
        """Submit the first jobs of waiting sources, up to :func:`max_active_sources`."""
        active = sum(state.stage != "waiting" and not state.done for state in self.states)
        free = max_active_sources(self.jobs.slots) - active
        for state in [state for state in self.states if state.stage == "waiting"][: max(0, free)]:
            self.submit(StageJob(state, "fetch"), fetch_stage, state.spec)

    def drop_removed_sources(self) -> None:
        """Remove what is in the set of sources that are no longer in the settings."""
        kept = {state.name for state in self.states}
        for name in self.writer.names():
            if name.partition(REQUEST_MARK)[0] not in kept:
                self.writer.drop_repo(name)

    def refuse(self, missing: Mapping[str, Rejection]) -> None:
        """End the sources that do not exist; ``missing`` has their names."""
        for state in self.states:
            if state.name in missing:
                state.fail(missing[state.name])
                self.log_end(StageJob(state, "fetch", began=time.monotonic()), missing[state.name])
                self.dirty.add(state.name)
        self.listener(self.states)

    def run_to_end(self) -> bool:
        """Run until no job is left, or there are enough tasks; return whether the run was not interrupted."""
        self.admit_sources()
        self.listener(self.states)
        try:
            for job, result in self.jobs:
                answer = self.answer(result, job)
                self.log_end(job, answer)
                if job.stage == "surface":
                    continue
                job.state.num_running -= 1
                self.advance(job, answer)
                if all(state.done for state in self.states):
                    self.jobs.drop_queued()  # indexes that nobody needs
                self.admit_sources()
                self.dirty.add(job.state.name)
                self.listener(self.states)
                self.write_or_publish(job.state)
                if self.total is not None and sum(state.num_tasks for state in self.states) >= self.total:
                    self.jobs.cancel()
                    return True
        except KeyboardInterrupt:
            self.jobs.cancel()
            return False
        return True

    def write_or_publish(self, state: SourceState) -> None:
        """Publish, if it is time to, now that a job of this source has ended; an atomic run only writes its rows."""
        if self.atomic:
            if state.done:
                self.write_rows(state, may_wait=True)
        elif self.is_time_to_publish(state):
            self.publish()

    def is_time_to_publish(self, state: SourceState) -> bool:
        """Whether to publish now that a job of this source has ended."""
        is_first = state.num_tasks > 0 and not self.has_tasks
        return is_first or state.done or time.monotonic() - self.published > PUBLISH_EVERY_S

    def answer(self, result: JobResult, job: StageJob) -> Any:
        """Return the result of a stage; a rejection if its worker died or the stage raised."""
        failure = result.failure("the next run tries again")
        if failure is None:
            return result.value
        reason, detail = failure
        if reason == "worker_died":
            logger.warning("worker lost", extra={"source": job.state.name, "stage": job.stage, "detail": detail})
        return Rejection(
            repo=job.state.name,
            stage=job.stage,
            subject=job.state.name,
            reason=reason,
            detail=detail,
            worker_outcome=WorkerOutcome.KILLED if reason == "worker_died" else WorkerOutcome.INFRA_ERROR,
        )

    def log_end(self, job: StageJob, answer: Any) -> None:
        """Log how a job ended: its seconds, and the reason of a rejection."""
        facts = {
            "source": job.state.name,
            "stage": job.stage,
            "seconds": round(time.monotonic() - job.began, 3),
        }
        if isinstance(answer, Rejection):
            facts |= {"reason": answer.reason, "detail": answer.detail, "worker_outcome": str(answer.worker_outcome)}
            logger.info("stage refused", extra=facts)
        else:
            logger.info("stage ended", extra=facts)

    def advance(self, job: StageJob, answer: Any) -> None:
        """Submit the job that follows from a stage's result."""
        state = job.state
        if job.stage == "prove":
            proofs = _lost(answer, job.shard) if isinstance(answer, Rejection) else answer
            state.record_proofs(job.first, proofs, time.monotonic() - job.began)
            self.submit_shards(state)
            return
        if job.stage == "propose":
            lost = isinstance(answer, Rejection)  # what was found is tried all the same
            state.add_proposals(ProposedFeatures(rejections=(answer,)) if lost else answer)
            self.submit_shards(state)
            return
        if isinstance(answer, Rejection):
            if may_mend(self.settings, job.stage, answer):
                logger.info("stage retried with a model", extra={"source": state.name, "stage": job.stage})
                self.submit(StageJob(state, "model"), model_stage, state.spec, state.sources, answer)
            else:
                state.fail(answer)
            return
        match job.stage:
            case "fetch":
                state.sources = answer
                self.submit(StageJob(state, "environment"), environment_stage, state.spec, answer)
            case "environment" | "model":
                state.prepared = answer
                self.submit(StageJob(state, "baseline"), baseline_stage, answer)
                self.index_surface(state, answer)
            case "baseline":
                state.prepared = answer
                self.submit(StageJob(state, "coverage"), coverage_stage, answer)
            case "coverage":
                state.prepared = answer
                self.submit(StageJob(state, "find"), find_stage, answer, self.selection.min_loc)
            case "find":
                state.add_features(answer)
                if self.proposes(state):
                    self.submit(StageJob(state, "propose"), propose_stage, state.prepared, answer)
                else:
                    self.submit_shards(state)

    def proposes(self, state: SourceState) -> bool:
        """Whether a model is to propose features of a source."""
        asked = self.settings.model.propose_features and self.selection.publishes_features
        language = state.prepared.repo.language if state.prepared is not None else ""
        return bool(asked) and "proposed" in editor_of(language).deleters

    def index_surface(self, state: SourceState, prepared: Prepared) -> None:
        """Have another worker index what agents can read, once for all environments with the same system."""
        recipe = prepared.environment.recipe
        system = recipe.python, recipe.system_packages
        if self.jobs.slots > 1 and system not in self.indexed:
            self.indexed.add(system)
            self.submit(StageJob(state, "surface"), surface_stage, prepared)

    def submit_shards(self, state: SourceState) -> None:
        """Submit prove jobs for the next shards of a source's candidates."""
        if state.failure is not None:
            return
        assert state.prepared is not None
        try:
            state.prepared_path = state.prepared_path or save_prepared(self.settings, state.prepared)
        except OSError as error:
            state.fail(rejection_of("prove", state.name, error))
            return
        for first, shard in state.next_shards(self.jobs.slots):
            self.submit(StageJob(state, "prove", first, shard), prove_shard, state.prepared_path, shard)

    def is_publishable(self, state: SourceState) -> bool:
        """Whether a source's rows may replace those of the set.

        Rows of a source that had tasks before the run are replaced only when the source has ended, and not after a
        failed fetch or a failure of the infrastructure; or as soon as it has all of these tasks again.
        """
        if state.name not in self.dirty or state.final_report or (state.sources is None and state.failure is None):
            return False
        if state.entry not in self.known_before:
            return True
        lost = state.failure is not None and state.failure.worker_outcome is not WorkerOutcome.OK
        unavailable = state.failure is not None and state.failure.stage == "fetch"
        if not self.atomic and state.failure is None and self.writer.task_ids(state.entry) <= state.tasks.keys():
            return True
        return state.done and not lost and not unavailable

    def write_rows(self, state: SourceState, *, may_wait: bool = False) -> None:
        """Write the rows of a source, for the next snapshot. Of a source that has ended, only the counts stay here.

        ``may_wait``: rows with a task that another source has in the set are kept, since that source may lose it.
        """
        if self.is_publishable(state):
            try:
                self.writer.put_repo(state.entry, state.rows())
            except StoreError as error:
                if error.reason != "duplicate_task":
                    raise
                if may_wait:
                    return
                state.tasks.clear()
                state.certificates.clear()
                state.fail(rejection_of("publish", state.name, error))
                self.writer.put_repo(state.entry, state.rows())
        self.dirty.discard(state.name)
        if state.done:
            state.release()

    def publish(self) -> None:
        """Write all unpublished rows and switch the task set to a new snapshot."""
        for state in self.states:
            self.write_rows(state)
        self.published = time.monotonic()
        self.has_tasks = any(state.num_tasks for state in self.states)
        self.writer.publish()


def _lost(answer: Rejection, shard: Sequence[CandidateSpec]) -> list[Proof]:
    """Return a rejection for each candidate of a shard whose job failed."""
    rows = (replace(answer, subject=f.feature_id, kind=f.kind, symbols=f.symbols) for f, _ in shard)
    return [Proof(rejection=row) for row in rows]


def unique(specs: Sequence[SourceSpec]) -> list[SourceSpec]:
    """Return the sources without duplicates; of equal ones, the first is kept."""
    return list({spec.name: spec for spec in reversed(specs)}.values())[::-1]


def _pool(settings: Settings, notify: Callable[[str], None]) -> AbstractContextManager[WorkerPool]:
    """The workers of a run; those of a scheduler share no folders with this machine unless the settings say so."""
    if not settings.scheduler or settings.artifacts == "shared":
        return open_worker_pool(settings.scheduler, settings.workers)
    from excise.pipeline.cluster.cluster_pool import open_cluster  # here: most runs need no Dask

    return open_cluster(settings, notify)


def run(
    settings: Settings,
    listener: Listener,
    *,
    refresh: bool = False,
    selection: CandidateSelection | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> RunResult:
    """Make tasks from all sources and publish them during the run; ``selection`` chooses the candidates.

    ``notify`` gets messages for the user, such as that a worker is not used. A ``refresh`` publishes once, at the end,
    and removes repositories that are no longer among the sources.
    Raises :class:`excise.errors.ConfigError` and :class:`excise.errors.StoreError`.
    """
    began = time.monotonic()
    logger.info("run begun", extra={"sources": len(settings.sources), "workers": settings.workers, "refresh": refresh})
    sources = unique(settings.sources)
    missing = {} if settings.scheduler else missing_sources(settings, sources)
    in_process = len(missing) == len(sources)
    pool_of_run = nullcontext(InProcessPool()) if in_process else _pool(settings, notify)
    with Store(settings.out).writer() as writer, pool_of_run as pool:
        graph = Run(settings, pool, writer, listener, atomic=refresh, selection=selection)
        if refresh:
            graph.drop_removed_sources()
        graph.refuse(missing)
        finished = graph.run_to_end()
        tasks = sum(state.num_tasks for state in graph.states)
        facts = {
            "seconds": round(time.monotonic() - began, 3),
            "cpu_s": round(time.process_time(), 3),
            "tasks": tasks,
            "interrupted": not finished,
        }
        logger.info("run ended", extra=facts)
        graph.dirty.update(state.name for state in graph.states)
        if refresh and not finished:
            return RunResult(states=tuple(graph.states), report=SnapshotReport(), interrupted=True)
        graph.publish()
        return RunResult(
            states=tuple(graph.states),
            report=writer.changes(),
            interrupted=not finished,
            near_duplicates=near_duplicates.update(settings.out),
        )
