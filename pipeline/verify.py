"""``excise verify``: prove tasks again, from the files of the set alone, in a new work directory."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.deleters.assemble import stub_patches
from excise.errors import ExciseError
from excise.extractors.python.codebase import PythonCodebase
from excise.extractors.trees import git_tree_hash, unpack
from excise.pipeline.cluster import cluster_client
from excise.pipeline.jobs import Jobs, failure_of
from excise.pipeline.proving import bench_of, save_prepared
from excise.pipeline.stage import decided, rejection_of
from excise.pipeline.stages import baseline_stage, install_recipe, keep_sources, new_folder
from excise.pipeline.state import SHARD
from excise.types import Deletion, Feature, Outcome, Rejection, Task, Verdict
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates import GATES
from excise.verifiers.workbench import Prepared, Workbench


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What verifying one task said."""

    instance_id: str
    """Task."""
    ok: bool
    """Every gate passed again."""
    gate: str = ""
    """The first gate that did not, or ``files``, ``sources``, ``environment``, ``baseline``, ``patch``."""
    reason: str = ""
    """Machine-readable code."""
    detail: str = ""
    """A sentence for people."""
    verdicts: tuple[Verdict, ...] = ()
    """All verdict rows."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Tasks of one snapshot in one environment: its environment is to be made, or they are a shard to prove."""

    tasks: tuple[Task, ...]
    shard: bool = False


def verify_tasks(
    settings: Settings, taskset: TaskSet, ids: Sequence[str], listener: Callable[[Verified], None]
) -> list[Verified]:
    """Prove the tasks again; ``settings.cache`` is the work directory, empty for a proof from nothing.

    Settings that can change a verdict are those of the certificate, unless ``settings`` give them expressly.
    One environment and one baseline a repository serve all its tasks, which are spread over ``settings.workers``
    processes. ``listener`` hears of each task as it ends; the answer is in the order of ``ids``.
    Raises :class:`excise.errors.ConfigError`.
    """
    results: dict[str, Verified] = {}

    def end(*verified: Verified) -> None:
        for result in verified:
            results[result.instance_id] = result
            listener(result)

    by_env: dict[tuple[str, str, str], list[Task]] = {}
    proven_with: dict[str, Settings] = {}
    for instance_id in dict.fromkeys(ids):
        task = taskset.task(instance_id)
        if taskset.is_intact(instance_id):
            verdict = settings.verdict.of(taskset.certificate(instance_id).settings)
            by_env.setdefault((task.tree, task.env_id, verdict.model_dump_json()), []).append(task)
            proven_with[instance_id] = settings.model_copy(update={"verdict": verdict})
        else:
            end(_failed(task, "files", "row_differs", "The row is not the one that was published."))
    if not by_env:
        return [results[instance_id] for instance_id in dict.fromkeys(ids)]
    workers = min(settings.workers, sum(len(tasks) for tasks in by_env.values()))
    with cluster_client(settings.scheduler, workers) as client:
        jobs: Jobs[_Group] = Jobs(client)
        for tasks in by_env.values():
            jobs.put(_Group(tuple(tasks)), 1.0 + len(tasks), rebuild, proven_with[tasks[0].instance_id], tasks[0])
        for group, future in jobs:
            if future.status != "finished":
                end(*(_lost(task, future) for task in group.tasks))
            elif group.shard:
                end(*future.result())
            elif isinstance(answer := future.result(), Verified):
                end(*(replace(answer, instance_id=task.instance_id) for task in group.tasks))
            else:
                same = proven_with[group.tasks[0].instance_id]
                for first in range(0, len(group.tasks), SHARD):
                    shard = group.tasks[first : first + SHARD]
                    jobs.put(_Group(shard, shard=True), 0.0, verify_shard, same, answer, shard)
    return [results[instance_id] for instance_id in dict.fromkeys(ids)]


def _lost(task: Task, future: Any) -> Verified:
    """A task whose worker died, or met a bug: not a verdict about the task."""
    return _failed(task, "worker", *failure_of(future, "verify the task again"))


def rebuild(settings: Settings, task: Task) -> Path | Verified:
    """Sources from the archive, environment from the recipe, baseline anew: the path where all of it is written."""
    try:
        prepared = _rebuild(settings, TaskSet.open(settings.out), task)
        return prepared if isinstance(prepared, Verified) else save_prepared(settings, prepared)
    except (ExciseError, OSError) as error:
        row = rejection_of("environment", task.repo, error)
        return _failed(task, "environment", row.reason, row.detail)


def _rebuild(settings: Settings, taskset: TaskSet, task: Task) -> Prepared | Verified:
    repo = next((r for r in taskset.repos() if r.tree == task.tree), None)
    if repo is None:
        return _failed(task, "sources", "unknown_repository", f"The set has no snapshot of {task.repo} with this tree.")
    scratch = new_folder(settings.cache / "trees")
    try:
        try:
            unpack(taskset.blob(repo.blob), scratch / "files")
        except ExciseError as error:
            return _failed(task, "sources", error.reason, str(error))
        if git_tree_hash(scratch / "files") != task.tree:
            return _failed(task, "sources", "tree_differs", "The source archive does not hold the tree of the task.")
        sourced = keep_sources(settings, repo, scratch / "files", keep_blob=False)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    environment, _ = taskset.environment(task.env_id)
    prepared = install_recipe(settings, environment.recipe, sourced, made=environment)
    prepared = replace(prepared, environment=replace(prepared.environment, env_id=task.env_id))
    measured: Prepared | Rejection = baseline_stage(settings, repo.repo, prepared)
    if isinstance(measured, Rejection):
        return _failed(task, "baseline", measured.reason, measured.detail)
    return measured


def verify_shard(settings: Settings, prepared: Path, tasks: Sequence[Task]) -> list[Verified]:
    """All gates for some tasks of one environment."""
    bench = bench_of(settings, prepared)
    return [_verify(bench, task) for task in tasks]


def _failed(task: Task, gate: str, reason: str, detail: str) -> Verified:
    return Verified(instance_id=task.instance_id, ok=False, gate=gate, reason=reason, detail=detail)


def candidate_of(bench: Workbench, task: Task) -> Candidate:
    """A candidate with nothing but what the task's files say. Raises :class:`ExciseError`."""
    removed = task.removed
    feature = Feature(
        feature_id=task.feature_id,
        kind=task.difficulty.kind,
        tier=task.difficulty.tier,
        entry=removed,
        symbols=removed,
        tests=task.fail_to_pass,
    )
    source_patch, hide_patch = _split_patch(bench, task.deletion_patch)
    symbols = bench.codebase.symbols()
    text = []
    for symbol_id in removed:
        if symbol_id in symbols:
            symbol = symbols[symbol_id]
            text.append((symbol_id, bench.codebase.modules[symbol.path].source[symbol.start : symbol.end].decode()))
    deletion = Deletion(
        deletion_id=task.instance_id,
        feature=feature,
        deleter=task.deleter,
        deleter_version=0,
        source_patch=source_patch,
        hide_patch=hide_patch,
        removed=removed,
        hidden=task.hidden,
        text=tuple(text),
        stub_patches=stub_patches(cast(PythonCodebase, bench.codebase), [s for s in removed if s in symbols]),
    )
    return Candidate(
        bench=bench,
        trusted=frozenset(task.fail_to_pass) | frozenset(task.pass_to_pass),
        deletion=deletion,
        instance_id=task.instance_id,
        fail_to_pass=task.fail_to_pass,
        pass_to_pass=task.pass_to_pass,
        statement=task.problem_statement,
        interface=task.interface,
        task=task,
    )


def _split_patch(bench: Workbench, patch: str) -> tuple[str, str]:
    """The part that changes sources and the part that changes tests."""
    parts = [part for part in re.split(r"(?m)^(?=diff --git )", patch) if part]  # lines of content begin otherwise
    tests = [bench.codebase.is_test(next(iter(bench.edits_of(part)))) for part in parts]
    return (
        "".join(part for part, test in zip(parts, tests, strict=True) if not test),
        "".join(part for part, test in zip(parts, tests, strict=True) if test),
    )


def _verify(bench: Workbench, task: Task) -> Verified:
    verdicts: list[Verdict] = []
    try:
        candidate = candidate_of(bench, task)
        for report in _checked(candidate):
            verdicts += report
            failed = next((v for v in report if v.outcome is not Outcome.PASSED), None)
            if failed is not None:
                return Verified(
                    instance_id=task.instance_id,
                    ok=False,
                    gate=failed.gate,
                    reason=failed.reason,
                    detail=failed.detail,
                    verdicts=tuple(verdicts),
                )
    except (ExciseError, OSError, RecursionError, MemoryError) as error:
        row = rejection_of("verify", task.repo, error)
        gate = "patch" if decided(row) else "worker"
        return replace(_failed(task, gate, row.reason, row.detail), verdicts=tuple(verdicts))
    return Verified(instance_id=task.instance_id, ok=True, verdicts=tuple(verdicts))


def _checked(candidate: Candidate) -> Iterator[list[Verdict]]:
    for gate in GATES:
        yield gate.check(candidate).verdicts
