"""Runs an operation on stored tasks: builds their environments from the set's files, then distributes the tasks."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError
from excise.pipeline.cluster.local_cluster import open_worker_pool
from excise.pipeline.run.job_queue import JobQueue, Rank
from excise.pipeline.run.source_state import SHARD_SIZE
from excise.pipeline.stages.baseline_stage import baseline_stage
from excise.pipeline.stages.environment_stage import install_recipe
from excise.pipeline.stages.error_boundary import is_conclusive, rejection_of
from excise.pipeline.stages.fetch_stage import unpacked_sources
from excise.pipeline.stages.prove_stage import save_prepared, workbench_of
from excise.types import Certificate, Rejection, Task
from excise.verifiers.certificate import seal_problem
from excise.verifiers.workbench import Prepared, Workbench

logger = logging.getLogger(__name__)


class TaskResult(Protocol):
    """The result of the work on one task."""

    @property
    def instance_id(self) -> str:
        """Id of the task."""
        ...


SEALED_SINCE = 3
"""Schema version from which on certificates have a digest."""

R = TypeVar("R", bound=TaskResult)
Work = Callable[[Settings, Workbench, Task], R]
"""The work on one task, on a worker; a function that can be pickled."""
FailedResult = Callable[[Task, str, str, str], R]
"""Makes the result of a task that could not be worked on, from the task, the step that failed (``files``, ``sources``,
``environment``, ``baseline``, ``worker``), a reason, and a sentence for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOperation(Generic[R]):
    """What :func:`map_tasks` does with each task."""

    work: Work[R]
    """The function to call for each task."""
    failed: FailedResult[R]
    """Makes the result of a task for which ``work`` could not be called."""
    measure_baseline: bool = True
    """Whether to run the tests of the untouched project again; otherwise the set's baseline is used."""
    begin_until: float = math.inf
    """Time of :func:`time.monotonic` after which no job is begun; tasks that are left then have no result."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Tasks with the same sources, environment and settings; the tag of a job."""

    tasks: tuple[Task, ...]
    shard: bool = False


@dataclass(frozen=True, slots=True)
class EnvironmentProblem:
    """Why a task's environment could not be made."""

    step: str
    """``sources``, ``environment`` or ``baseline``; ``worker`` if the infrastructure failed in the baseline."""
    reason: str
    """Machine-readable code."""
    detail: str
    """A sentence for users."""


def map_tasks(
    settings: Settings,
    taskset: TaskSet,
    ids: Sequence[str],
    operation: TaskOperation[R],
    listener: Callable[[R], None] = lambda _: None,
) -> list[R]:
    """Run the operation on each of the tasks ``ids``; return the results in this order, without tasks that are left.

    ``listener`` gets each result when it is known. Settings that can change a verdict are those of the task's
    certificate, unless ``settings`` set them explicitly. Tasks of one repository share an environment, and are spread
    over ``settings.workers`` processes. ``settings.cache`` is the work directory: if it is empty, everything is built
    from the set's files.

    Raises :class:`excise.errors.ConfigError`.
    """
    results: dict[str, R] = {}

    def end(*answers: R) -> None:
        for answer in answers:
            results[answer.instance_id] = answer
            listener(answer)

    groups: dict[tuple[str, str, str], list[Task]] = {}
    settings_of: dict[str, Settings] = {}
    for instance_id in dict.fromkeys(ids):
        task, certificate = taskset.task(instance_id), taskset.certificate(instance_id)
        if not taskset.is_intact(instance_id):
            end(operation.failed(task, "files", "row_differs", "The row is not the one that was published."))
        elif problem := _broken_seal(taskset, task, certificate):
            end(operation.failed(task, "files", "certificate_differs", problem))
        else:
            verdict = settings.verdict.merged_with(certificate.settings)
            groups.setdefault((task.tree, task.env_id, verdict.model_dump_json()), []).append(task)
            settings_of[instance_id] = settings.model_copy(update={"verdict": verdict})
    if not groups:
        return [results[instance_id] for instance_id in dict.fromkeys(ids)]
    workers = min(settings.workers, sum(len(tasks) for tasks in groups.values()))
    with open_worker_pool(settings.scheduler, workers) as pool:
        jobs: JobQueue[_Group] = JobQueue(pool)
        for tasks in groups.values():
            same = settings_of[tasks[0].instance_id]
            jobs.put(_Group(tuple(tasks)), Rank(0.0, len(tasks)), rebuild, same, tasks[0], operation.measure_baseline)
        for group, result in jobs:
            if why := result.failure("work on the task again"):  # nothing is known about the task
                event = "worker lost" if why[0] == "worker_died" else "job failed"
                logger.warning(event, extra={"repo": group.tasks[0].repo, "reason": why[0], "detail": why[1]})
                end(*(operation.failed(task, "worker", *why) for task in group.tasks))
            elif group.shard:
                end(*result.value)
            elif isinstance(answer := result.value, EnvironmentProblem):
                end(*(operation.failed(task, answer.step, answer.reason, answer.detail) for task in group.tasks))
            else:
                same = settings_of[group.tasks[0].instance_id]
                _put_shards(jobs, group.tasks, same, answer, operation.work)
            if time.monotonic() >= operation.begin_until:
                jobs.drop_queued()
    return [results[instance_id] for instance_id in dict.fromkeys(ids) if instance_id in results]


def _put_shards(
    jobs: JobQueue[_Group], tasks: tuple[Task, ...], settings: Settings, prepared: Path, work: Work[R]
) -> None:
    """Put jobs for all tasks of a group into the queue."""
    for first in range(0, len(tasks), SHARD_SIZE):
        shard = tasks[first : first + SHARD_SIZE]
        jobs.put(_Group(shard, shard=True), Rank(0.0, 0.0), work_on_shard, settings, prepared, work, shard)


def _broken_seal(taskset: TaskSet, task: Task, certificate: Certificate) -> str:
    """Return what is wrong with a certificate's digest; empty if it is right, or the set is older than digests."""
    if not certificate.digest and taskset.manifest.schema_version < SEALED_SINCE:
        return ""
    return seal_problem(certificate, task)


def work_on_shard(settings: Settings, prepared: Path, work: Work[R], tasks: Sequence[Task]) -> list[R]:
    """Call ``work`` for some tasks of one environment; runs on a worker."""
    bench = workbench_of(settings, prepared)
    return [work(settings, bench, task) for task in tasks]


def rebuild(settings: Settings, task: Task, measure_baseline: bool = True) -> Path | EnvironmentProblem:
    """Restore a task's sources from the set's archive and its environment from the lock; runs on a worker.

    Returns the path of the stored :class:`Prepared` record.
    """
    try:
        prepared = prepared_of(settings, TaskSet.open(settings.out), task, measure_baseline=measure_baseline)
        return prepared if isinstance(prepared, EnvironmentProblem) else save_prepared(settings, prepared)
    except Exception as error:
        row = rejection_of("environment", task.repo, error)
        return EnvironmentProblem("environment", row.reason, row.detail)


def prepared_of(
    settings: Settings, taskset: TaskSet, task: Task, *, measure_baseline: bool
) -> Prepared | EnvironmentProblem:
    """Return a task's repository with environment and baseline. Raises :class:`excise.errors.EnvironmentFailure`."""
    repo = next((r for r in taskset.repos() if r.tree == task.tree), None)
    if repo is None:
        return EnvironmentProblem(
            "sources", "unknown_repository", f"The set has no snapshot of {task.repo} with this tree."
        )
    try:
        sources = unpacked_sources(settings, repo, taskset.blob(repo.blob))
    except ExciseError as error:
        return EnvironmentProblem("sources", error.reason, str(error))
    environment, baseline = taskset.environment(task.env_id)
    prepared = install_recipe(settings, environment.recipe, sources, previous=environment)
    prepared = replace(prepared, environment=replace(prepared.environment, env_id=task.env_id))
    if not measure_baseline:
        return replace(prepared, baseline=baseline)
    measured: Prepared | Rejection = baseline_stage(settings, repo.repo, prepared)
    if isinstance(measured, Rejection):
        return EnvironmentProblem("baseline" if is_conclusive(measured) else "worker", measured.reason, measured.detail)
    return measured
