"""Work on the tasks of a set, from its files alone: their environments are made first, then the tasks are spread."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError
from excise.extractors.fetch.trees import git_tree_hash, unpack
from excise.pipeline.run.cluster import cluster_client
from excise.pipeline.run.job_queue import Jobs, failure_of
from excise.pipeline.run.source_state import SHARD
from excise.pipeline.stages.environment_stage import baseline_stage, install_recipe, keep_sources, new_folder
from excise.pipeline.stages.error_boundary import rejection_of
from excise.pipeline.stages.prove_stage import bench_of, save_prepared
from excise.types import Certificate, Rejection, Task
from excise.verifiers.certificate import why_not_sealed
from excise.verifiers.workbench import Prepared, Workbench


class Answer(Protocol):
    """What the work on one task comes to."""

    @property
    def instance_id(self) -> str:
        """The task."""
        ...


SEALED_SINCE = 3
"""Certificates of sets with this schema version or a later one have a digest."""

R = TypeVar("R", bound=Answer)
Work = Callable[[Settings, Workbench, Task], R]
"""What is done with a task, on a worker: a function of a module, so that it can travel."""
Lost = Callable[[Task, str, str, str], R]
"""The answer for a task that could not be tried: task, where (``files``, ``sources``, ``environment``, ``baseline``,
``worker``), reason, a sentence for people."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Tasks of one snapshot in one environment: its environment is to be made, or they are a shard to work on."""

    tasks: tuple[Task, ...]
    shard: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why an environment could not be made."""

    where: str
    reason: str
    detail: str


def over_tasks(
    settings: Settings,
    taskset: TaskSet,
    ids: Sequence[str],
    work: Work[R],
    lost: Lost[R],
    listener: Callable[[R], None] = lambda _: None,
    *,
    measure: bool = True,
) -> list[R]:
    """Do ``work`` on each task; ``settings.cache`` holds what is made on the way, empty for a start from nothing.

    Settings that can change a verdict are those of the certificate, unless ``settings`` give them expressly.
    One environment a repository serves all its tasks, which are spread over ``settings.workers`` processes.
    ``measure``: the baseline is run anew; otherwise the set's is believed. ``listener`` hears of each task as it ends;
    the answer is in the order of ``ids``. Raises :class:`excise.errors.ConfigError`.
    """
    results: dict[str, R] = {}

    def end(*answers: R) -> None:
        for answer in answers:
            results[answer.instance_id] = answer
            listener(answer)

    by_env: dict[tuple[str, str, str], list[Task]] = {}
    proven_with: dict[str, Settings] = {}
    for instance_id in dict.fromkeys(ids):
        task, certificate = taskset.task(instance_id), taskset.certificate(instance_id)
        if not taskset.is_intact(instance_id):
            end(lost(task, "files", "row_differs", "The row is not the one that was published."))
        elif problem := _broken_seal(taskset, task, certificate):
            end(lost(task, "files", "certificate_differs", problem))
        else:
            verdict = settings.verdict.of(certificate.settings)
            by_env.setdefault((task.tree, task.env_id, verdict.model_dump_json()), []).append(task)
            proven_with[instance_id] = settings.model_copy(update={"verdict": verdict})
    if not by_env:
        return [results[instance_id] for instance_id in dict.fromkeys(ids)]
    workers = min(settings.workers, sum(len(tasks) for tasks in by_env.values()))
    with cluster_client(settings.scheduler, workers) as client:
        jobs: Jobs[_Group] = Jobs(client)
        for tasks in by_env.values():
            same = proven_with[tasks[0].instance_id]
            jobs.put(_Group(tuple(tasks)), 1.0 + len(tasks), rebuild, same, tasks[0], measure)
        for group, future in jobs:
            if future.status != "finished":  # a worker died, or met a bug: not a word about the task
                why = failure_of(future, "work on the task again")
                end(*(lost(task, "worker", *why) for task in group.tasks))
            elif group.shard:
                end(*future.result())
            elif isinstance(answer := future.result(), Trouble):
                end(*(lost(task, answer.where, answer.reason, answer.detail) for task in group.tasks))
            else:
                same = proven_with[group.tasks[0].instance_id]
                for first in range(0, len(group.tasks), SHARD):
                    shard = group.tasks[first : first + SHARD]
                    jobs.put(_Group(shard, shard=True), 0.0, work_on_shard, same, answer, work, shard)
    return [results[instance_id] for instance_id in dict.fromkeys(ids)]


def _broken_seal(taskset: TaskSet, task: Task, certificate: Certificate) -> str:
    """What is wrong with a certificate's digest; sets from before there was one have none."""
    if not certificate.digest and taskset.manifest.schema_version < SEALED_SINCE:
        return ""
    return why_not_sealed(certificate, task)


def work_on_shard(settings: Settings, prepared: Path, work: Work[R], tasks: Sequence[Task]) -> list[R]:
    """The work on some tasks of one environment."""
    bench = bench_of(settings, prepared)
    return [work(settings, bench, task) for task in tasks]


def rebuild(settings: Settings, task: Task, measure: bool = True) -> Path | Trouble:
    """Sources from the archive, environment from its lock: the path where all of it is written down."""
    try:
        prepared = prepared_of(settings, TaskSet.open(settings.out), task, measure=measure)
        return prepared if isinstance(prepared, Trouble) else save_prepared(settings, prepared)
    except Exception as error:
        row = rejection_of("environment", task.repo, error)
        return Trouble("environment", row.reason, row.detail)


def prepared_of(settings: Settings, taskset: TaskSet, task: Task, *, measure: bool) -> Prepared | Trouble:
    """A task's repository, ready to be worked on."""
    repo = next((r for r in taskset.repos() if r.tree == task.tree), None)
    if repo is None:
        return Trouble("sources", "unknown_repository", f"The set has no snapshot of {task.repo} with this tree.")
    scratch = new_folder(settings.cache / "trees")
    try:
        try:
            unpack(taskset.blob(repo.blob), scratch / "files")
        except ExciseError as error:
            return Trouble("sources", error.reason, str(error))
        if git_tree_hash(scratch / "files") != task.tree:
            return Trouble("sources", "tree_differs", "The source archive does not hold the tree of the task.")
        sourced = keep_sources(settings, repo, scratch / "files", keep_blob=False)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    environment, baseline = taskset.environment(task.env_id)
    prepared = install_recipe(settings, environment.recipe, sourced, made=environment)
    prepared = replace(prepared, environment=replace(prepared.environment, env_id=task.env_id))
    if not measure:
        return replace(prepared, baseline=baseline)
    measured: Prepared | Rejection = baseline_stage(settings, repo.repo, prepared)
    if isinstance(measured, Rejection):
        return Trouble("baseline", measured.reason, measured.detail)
    return measured
