"""Grades solutions of stored tasks: :class:`Grader` for trainers, and the text that ``excise grade`` prints."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError, StoreError
from excise.pipeline.services.map_tasks import EnvironmentProblem, prepared_of
from excise.pipeline.stages.environment_stage import open_workbench
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.types import Grade, GradingKit, Status, Task, content_id
from excise.verifiers.gates.all_gates import CALLS_RECORDED
from excise.verifiers.grading.grader import (
    GradeRequest,
    GradingConditions,
    failing_untouched,
    find_conditions,
    grade,
    supports_fail_fast,
    ungraded,
)
from excise.verifiers.grading.kit import KIT_FORMAT
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

T = TypeVar("T")
MAX_FAILING = 5
"""Number of failing tests that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FailFastSupport:
    """Cached answer to the question whether a task supports grades that end early."""

    holds: bool


class GradingEnvironment(NamedTuple):
    """The workbench and the conditions with which tasks of one environment are graded."""

    bench: Workbench
    """The workbench, with the set's baseline."""
    conditions: GradingConditions
    """The grader's conditions under which the untouched tests pass."""


class Grader:
    """Grades diffs against the tasks of a set; thread-safe.

    The first grade of an environment builds it (from the set's files and its lock) and runs its untouched tests under
    the grader's conditions; both results are cached in ``settings.cache``. With ``fail_fast``, for training and
    evaluation, where most solutions are wrong, grading ends after the first run of FAIL_TO_PASS tests that shows this
    (:func:`excise.verifiers.grading.grader.grade`), and equal solutions are graded once. At most
    ``2 * settings.workers`` solutions run at once, however many threads ask: starved tests would run into their time
    limits. Fewer would leave cores idle, since some tests wait.

    >>> Grader(TaskSet.open("demo-out"), Settings()).grade("attrs__1a2b3c", diff).reward  # doctest: +SKIP
    """

    def __init__(self, taskset: TaskSet, settings: Settings, *, fail_fast: bool = False) -> None:
        self.taskset = taskset
        self.fail_fast = fail_fast
        self.settings = settings.model_copy(update={"out": taskset.root})
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._slots = threading.BoundedSemaphore(2 * settings.workers)
        self._environments: dict[str, GradingEnvironment] = {}
        self._kits: dict[str, GradingKit] = {}

    def grade(self, instance_id: str, diff: str) -> Grade:
        """Grade a diff against the shipped tree.

        After a failure of the infrastructure, the grade is not ``decided``; no solution can make this method raise.
        Raises :class:`StoreError` for an unknown task.
        """
        try:
            return self._graded(instance_id, diff)
        except StoreError as error:
            if error.reason != "snapshot_gone":
                raise
        self.taskset = TaskSet.open(self.taskset.root)  # a newer snapshot was published
        return self._graded(instance_id, diff)

    def _graded(self, instance_id: str, diff: str) -> Grade:
        task = self.taskset.task(instance_id)
        try:
            environment = self.environment_of(task)
            if isinstance(environment, EnvironmentProblem):
                return ungraded(task, environment.reason, environment.detail)
            if self.fail_fast:
                return self._grade_fail_fast(environment, task, diff)
            return self._grade(environment, task, diff)
        except (ExciseError, OSError, MemoryError) as error:
            if getattr(error, "reason", "") == "snapshot_gone":
                raise
            return ungraded(task, getattr(error, "reason", "infra_error"), str(error))

    def solution(self, instance_id: str, name: str) -> str:
        """Return the diff of a known solution: ``gold`` or ``noop``."""
        return self.taskset.task(instance_id).patch if name == "gold" else ""

    def environment_of(self, task: Task) -> GradingEnvironment | EnvironmentProblem:
        """Return the task's workbench and grading conditions; the first thread builds the environment, others wait."""
        with self._lock_of(task.env_id):
            if task.env_id not in self._environments:
                environment = self._build_environment(task)
                if isinstance(environment, EnvironmentProblem):
                    return environment
                self._environments[task.env_id] = environment
            return self._environments[task.env_id]

    def kit(self, bench: Workbench, task: Task) -> GradingKit:
        """Return the task's grading kit; if the set's is missing or of another format, a new one is made and cached."""
        with self._lock_of(task.instance_id):
            if task.instance_id not in self._kits:

                def new_kit() -> GradingKit:
                    with self._slots:
                        return CALLS_RECORDED.kit(candidate_of(bench, task))

                kit = self.taskset.kit(task.instance_id)
                if kit is None or kit.format != KIT_FORMAT:
                    kit = self._cached(GradingKit, "kit", (task.instance_id,), new_kit)
                self._kits[task.instance_id] = kit
            return self._kits[task.instance_id]

    def _grade(self, environment: GradingEnvironment, task: Task, diff: str, *, fail_fast: bool = False) -> Grade:
        bench, conditions = environment

        def untouched(ids: Sequence[str]) -> tuple[str, ...]:
            mode = conditions.mode
            found = self._cached(
                GradingConditions,
                "conditions",
                (task.env_id, content_id("tests", *sorted(ids))),
                lambda: GradingConditions(mode=mode, unfit=failing_untouched(bench, ids, mode)),
            )
            return found.unfit

        request = GradeRequest(
            task=task,
            kit=self.kit(bench, task),
            diff=diff,
            conditions=conditions,
            fail_fast=fail_fast,
            untouched=untouched,
        )
        with self._slots:
            return grade(bench, request)

    def _grade_fail_fast(self, environment: GradingEnvironment, task: Task, diff: str) -> Grade:
        """Grade with fail-fast if the task supports it; the grade of an equal diff is taken from the cache."""

        def allowed() -> _FailFastSupport:
            with self._slots:
                return _FailFastSupport(holds=supports_fail_fast(environment.bench, task, environment.conditions))

        with self._lock_of(task.instance_id):
            support = self._cached(_FailFastSupport, "brief", (task.instance_id,), allowed)
        subject = task.instance_id, hashlib.sha256(diff.encode("utf-8", "surrogateescape")).hexdigest()
        return self._cached(
            Grade,
            "grade",
            subject,
            lambda: self._grade(environment, task, diff, fail_fast=support.holds),
            keep_if=lambda found: found.decided,
        )

    def _lock_of(self, name: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(name, threading.Lock())

    def _build_environment(self, task: Task) -> GradingEnvironment | EnvironmentProblem:
        verdict = self.settings.verdict.merged_with(self.taskset.certificate(task.instance_id).settings)
        settings = self.settings.model_copy(update={"verdict": verdict})
        prepared = prepared_of(settings, self.taskset, task, measure_baseline=False)
        if isinstance(prepared, EnvironmentProblem):
            return prepared
        bench = open_workbench(settings, prepared)

        def measure() -> GradingConditions:
            return find_conditions(bench, bench.baseline.passing())

        return GradingEnvironment(bench, self._cached(GradingConditions, "conditions", (task.env_id,), measure))

    def _cached(
        self,
        cls: type[T],
        stage: str,
        subject: tuple[str, ...],
        make: Callable[[], T],
        keep_if: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """Return a value from the stage cache; otherwise make it, and cache it if ``keep_if`` is true for it."""
        key = stage_key(stage, *subject, self.settings.sandbox)
        return StageCache(self.settings.cache).get_or_make(cls, stage, key, make, keep_if)


def grade_text(found: Grade) -> str:
    """Format a grade as a few lines of text."""
    if not found.decided:
        why = found.evidence.get("error", ", ".join(found.reasons))
        return f"{found.instance_id}: not graded, the infrastructure failed: {why}"
    few = "too few recorded calls" if found.num_calls else "no recorded calls"
    calls = few if found.reward_calls is None else f"calls {found.reward_calls:.0f}"
    lines = [
        f"{found.instance_id}: reward {found.reward:.0f} (tests {found.reward_tests:.0f}, {calls}), "
        f"partial {found.partial:.2f}, {found.wall_s:.1f} s",
        f"  tests: {found.num_passed} of {found.num_tests} passed; {len(found.canaries)} canaries; "
        f"{found.num_lifted} lifted, {len(found.lifted_failed)} of them wrong; "
        f"{found.num_mirrored} mirrored, {len(found.mirror_passed)} of them passed; "
        f"calls: {found.num_calls_equal} of {found.num_calls} equal",
    ]
    if found.num_held_out:
        equal = f"{found.num_held_out_equal} of {found.num_held_out} equal"
        lines.append(f"  new calls, which no test makes (reported only): {equal}")
    if found.reward_uncounted is not None:
        passed_all = "all passed" if found.reward_uncounted else "some failed"
        lines.append(f"  tests whose checks are decided outside, too (reported only): {passed_all}")
    if found.reasons:
        lines.append(f"  reasons: {', '.join(found.reasons)}")
        passed = {test for test, status in found.statuses.items() if status is Status.PASSED}
        failing = [*(test for test in found.statuses if test not in passed), *sorted(passed & set(found.lifted_failed))]
        more = f" and {len(failing) - MAX_FAILING} more" if len(failing) > MAX_FAILING else ""
        lines += [f"  did not pass: {', '.join(failing[:MAX_FAILING])}{more}"] if failing else []
    lines += [f"  {name}: {text}" for name, text in found.evidence.items()]
    lines += [f"  ignored {path}: {reason}" for path, reason in found.ignored.items()]
    return "\n".join(lines)
