"""``excise verify``: prove tasks again, from the files of the set alone, in a new work directory."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.deleters.assemble import stub_patches
from excise.errors import ExciseError
from excise.extractors.python.codebase import PythonCodebase
from excise.extractors.trees import git_tree_hash, unpack
from excise.pipeline.stages import baseline_stage, install_recipe, keep_sources, new_folder, workbench
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


def verify_tasks(
    settings: Settings, taskset: TaskSet, ids: Sequence[str], listener: Callable[[Verified], None]
) -> list[Verified]:
    """Prove the tasks again; ``settings.cache`` is the work directory, empty for a proof from nothing.

    One environment and one baseline a repository serve all its tasks. ``listener`` hears of each task as it ends.
    """
    tasks = sorted((taskset.task(instance_id) for instance_id in ids), key=lambda t: (t.repo, t.tree, t.env_id))
    done: list[Verified] = []
    bench: Workbench | Verified | None = None
    last: tuple[str, str] | None = None
    for task in tasks:
        if not taskset.is_intact(task.instance_id):
            done.append(_failed(task, "files", "row_differs", "The row is not the one that was published."))
            listener(done[-1])
            continue
        if (task.tree, task.env_id) != last:
            last = (task.tree, task.env_id)
            bench = _rebuild(settings, taskset, task)
        assert bench is not None
        result = replace(bench, instance_id=task.instance_id) if isinstance(bench, Verified) else _verify(bench, task)
        done.append(result)
        listener(result)
    return done


def _rebuild(settings: Settings, taskset: TaskSet, task: Task) -> Workbench | Verified:
    """Sources from the archive, environment from the recipe, baseline anew."""
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
        environment, _ = taskset.environment(task.env_id)
        sourced = keep_sources(settings, repo, scratch / "files", keep_blob=False)
        recipe = replace(environment.recipe, requirements=environment.lock)
        prepared = install_recipe(settings, recipe, sourced)
    except ExciseError as error:
        return _failed(task, "environment", error.reason, str(error))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    prepared = replace(prepared, environment=replace(prepared.environment, env_id=task.env_id))
    measured: Prepared | Rejection = baseline_stage(settings, repo.repo, prepared)
    if isinstance(measured, Rejection):
        return _failed(task, "baseline", measured.reason, measured.detail)
    return workbench(settings, measured)


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
    except ExciseError as error:
        return replace(_failed(task, "patch", error.reason, str(error)), verdicts=tuple(verdicts))
    return Verified(instance_id=task.instance_id, ok=True, verdicts=tuple(verdicts))


def _checked(candidate: Candidate) -> Iterator[list[Verdict]]:
    for gate in GATES:
        yield gate.check(candidate).verdicts


def work_directory(settings: Settings, work: Path | None) -> Settings:
    """Settings whose cache is the work directory (``None``: the usual cache, so environments are shared)."""
    return settings if work is None else settings.model_copy(update={"cache": work})
