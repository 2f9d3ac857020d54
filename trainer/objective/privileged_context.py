"""Privileged context for the teacher: the gold patch, or the grading result of an attempt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

from excise.trainer.rollout_types import Group, Rollout
from excise.types import Grade, Status, Task


class PrivilegedKind(StrEnum):
    """What the teacher's context contains."""

    GOLD = "gold"
    """The gold patch (OPSD, arXiv 2601.18734)."""
    TESTS = "tests"
    """The grading result of this attempt (SDPO, arXiv 2601.20802); the gold patch if there is none."""


def gold_text(task: Task) -> str:
    """The gold patch as a message."""
    return f"For your eyes only, this change solves the task:\n\n{task.patch.strip()}\n\nSolve it in your own words."


def grade_text(grade: Grade, most_tests: int = 20) -> str:
    """The grading result of a failed attempt as a message; empty if it passed or was not decided."""
    wrong = sorted(test for test, status in grade.statuses.items() if status is not Status.PASSED)
    if not grade.decided or grade.reward >= 1 or not (wrong or grade.reasons):
        return ""
    lines = ["For your eyes only, grading said this about the attempt that follows:", ""]
    lines += [f"{grade.num_passed} of {grade.num_tests} tests passed; {', '.join(grade.reasons) or 'some failed'}."]
    lines += [f"{grade.statuses[test]} {test}" for test in wrong[:most_tests]]
    lines += [f"and {len(wrong) - most_tests} more"] if len(wrong) > most_tests else []
    lines += [f"{name}: {text}" for name, text in sorted(grade.evidence.items()) if text]
    return "\n".join([*lines, "", "Do what makes them pass."])


class PrivilegedContext:
    """Adds privileged context to the rollouts of groups in which every attempt failed."""

    def __init__(
        self, kind: PrivilegedKind, tasks: Callable[[], Mapping[str, Task]], encode: Callable[[str], tuple[int, ...]]
    ) -> None:
        self._kind, self._tasks, self._encode = kind, tasks, encode

    def __call__(self, group: Group) -> Group:
        """The group with :attr:`Rollout.privileged` set; unchanged if any attempt succeeded."""
        if not group.all_failed:
            return group
        text_of = {rollout.rollout_id: self._text(rollout) for rollout in group.valid_rollouts}
        tokens_of = {text: self._encode(text) if text else () for text in set(text_of.values())}
        rollouts = (
            replace(r, privileged=tokens_of[text_of.get(r.rollout_id, "")]) if r.is_valid else r for r in group.rollouts
        )
        return replace(group, rollouts=tuple(rollouts))

    def _text(self, rollout: Rollout) -> str:
        text = grade_text(rollout.grade) if self._kind is PrivilegedKind.TESTS and rollout.grade else ""
        task = self._tasks().get(rollout.instance_id)
        return gold_text(task) if not text and task is not None else text
