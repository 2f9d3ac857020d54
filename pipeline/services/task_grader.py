"""Grading solutions of stored tasks: one call for trainers, one command for people."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError, StoreError
from excise.pipeline.services.stored_tasks import Trouble, prepared_of
from excise.pipeline.stages.environment_stage import workbench
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.types import Grade, GradingKit, Task
from excise.verifiers.grading.grader import (
    GradeRequest,
    GradingConditions,
    find_conditions,
    grade,
    supports_fail_fast,
    ungraded,
)
from excise.verifiers.grading.kit import KIT_FORMAT, make_kit
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brief:
    """Whether a task bears brief grades."""

    holds: bool


class Grader:
    """Grades diffs against the tasks of a set; safe for many threads at once.

    The first grade of an environment makes it (from the set's files and its lock) and tries its untouched tests under
    the grader's conditions; both are kept in ``settings.cache``. ``brief`` is for training and evaluation, where most
    answers are wrong: these cost one run of the tests that must come to pass, see
    :func:`excise.verifiers.grading.grader.grade`, and grades are kept, so that an equal answer is graded once.

    >>> Grader(TaskSet.open("demo-out"), Settings()).grade("attrs__1a2b3c", diff).reward  # doctest: +SKIP
    """

    def __init__(self, taskset: TaskSet, settings: Settings, *, brief: bool = False) -> None:
        self.taskset = taskset
        self.brief = brief
        self.settings = settings.model_copy(update={"out": taskset.root})
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._ready: dict[str, tuple[Workbench, GradingConditions] | Trouble] = {}
        self._kits: dict[str, GradingKit] = {}

    def grade(self, instance_id: str, diff: str) -> Grade:
        """The grade of a diff against the shipped tree.

        A failure of the infrastructure is a grade that is not ``decided``; nothing that a solution does raises.
        Raises :class:`StoreError` for an unknown task.
        """
        try:
            return self._graded(instance_id, diff)
        except StoreError as error:
            if error.reason != "snapshot_gone":
                raise
        self.taskset = TaskSet.open(self.taskset.root)  # others were published since
        return self._graded(instance_id, diff)

    def _graded(self, instance_id: str, diff: str) -> Grade:
        task = self.taskset.task(instance_id)
        try:
            ready = self.ready(task)
            if isinstance(ready, Trouble):
                return ungraded(task, ready.reason, ready.detail)
            return self._brief(*ready, task, diff) if self.brief else self._grade(*ready, task, diff)
        except (ExciseError, OSError, MemoryError) as error:
            if getattr(error, "reason", "") == "snapshot_gone":
                raise
            return ungraded(task, getattr(error, "reason", "infra_error"), str(error))

    def solution(self, instance_id: str, name: str) -> str:
        """The diff of a known solution: ``gold``, or ``noop``."""
        return self.taskset.task(instance_id).patch if name == "gold" else ""

    def ready(self, task: Task) -> tuple[Workbench, GradingConditions] | Trouble:
        """The task's environment, made if need be; one thread makes it, the others wait."""
        with self._lock_of(task.env_id):
            if task.env_id not in self._ready:
                found = self._make(task)
                if isinstance(found, Trouble):
                    return found
                self._ready[task.env_id] = found
            return self._ready[task.env_id]

    def kit(self, bench: Workbench, task: Task) -> GradingKit:
        """What the task's grader needs: the set's, or if that is of another format or missing, made now and kept in the
        cache."""
        with self._lock_of(task.instance_id):
            if task.instance_id not in self._kits:

                def made() -> GradingKit:
                    return make_kit(bench, task, candidate_of(bench, task).edits("none"))

                kit = self.taskset.kit(task.instance_id)
                if kit is None or kit.format != KIT_FORMAT:
                    kit = self._kept(GradingKit, "kit", (task.instance_id,), made)
                self._kits[task.instance_id] = kit
            return self._kits[task.instance_id]

    def _grade(
        self, bench: Workbench, conditions: GradingConditions, task: Task, diff: str, *, brief: bool = False
    ) -> Grade:
        kit = self.kit(bench, task)
        return grade(bench, GradeRequest(task=task, kit=kit, diff=diff, conditions=conditions, fail_fast=brief))

    def _brief(self, bench: Workbench, conditions: GradingConditions, task: Task, diff: str) -> Grade:
        with self._lock_of(task.instance_id):
            bears = self._kept(
                _Brief, "brief", (task.instance_id,), lambda: _Brief(holds=supports_fail_fast(bench, task, conditions))
            )
        subject = task.instance_id, hashlib.sha256(diff.encode("utf-8", "surrogateescape")).hexdigest()
        return self._kept(
            Grade,
            "grade",
            subject,
            lambda: self._grade(bench, conditions, task, diff, brief=bears.holds),
            worth=lambda found: found.decided,
        )

    def _lock_of(self, name: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(name, threading.Lock())

    def _make(self, task: Task) -> tuple[Workbench, GradingConditions] | Trouble:
        verdict = self.settings.verdict.of(self.taskset.certificate(task.instance_id).settings)
        settings = self.settings.model_copy(update={"verdict": verdict})
        prepared = prepared_of(settings, self.taskset, task, measure=False)
        if isinstance(prepared, Trouble):
            return prepared
        bench = workbench(settings, prepared)
        conditions = self._kept(
            GradingConditions, "conditions", (task.env_id,), lambda: find_conditions(bench, bench.baseline.passing())
        )
        return bench, conditions

    def _kept(
        self,
        cls: type[T],
        stage: str,
        subject: tuple[str, ...],
        make: Callable[[], T],
        worth: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """From the cache, or made now and, if it is ``worth`` it, kept there."""
        cache, key = StageCache(self.settings.cache), stage_key(stage, *subject, self.settings.sandbox)
        known = cache.get(cls, stage, key)
        if isinstance(known, cls):
            return known
        made = make()
        if worth(made):
            cache.put(stage, key, made)
        return made


def sentence(found: Grade) -> str:
    """A grade in a few lines, for people."""
    if not found.decided:
        why = found.evidence.get("error", ", ".join(found.reasons))
        return f"{found.instance_id}: not graded, the infrastructure failed: {why}"
    calls = "too few recorded calls" if found.reward_calls is None else f"calls {found.reward_calls:.0f}"
    lines = [
        f"{found.instance_id}: reward {found.reward:.0f} (tests {found.reward_tests:.0f}, {calls}), "
        f"partial {found.partial:.2f}, {found.wall_s:.1f} s",
        f"  tests: {found.num_passed} of {found.num_tests} passed; {len(found.canaries)} canaries; "
        f"{found.num_mirrored} mirrored, {len(found.mirror_passed)} of them passed; "
        f"calls: {found.num_calls_equal} of {found.num_calls} equal",
    ]
    if found.reasons:
        lines.append(f"  reasons: {', '.join(found.reasons)}")
    lines += [f"  {name}: {text}" for name, text in found.evidence.items()]
    lines += [f"  ignored {path}: {reason}" for path, reason in found.ignored.items()]
    return "\n".join(lines)
