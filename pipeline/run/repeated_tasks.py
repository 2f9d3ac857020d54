"""Finds tasks of a source that repeat one that was counted before: the same patch, nearly the same definitions, or more
or fewer definitions with the same failing tests."""

from __future__ import annotations

from excise.deleters.deletion_record import REMOVALS
from excise.types import Rejection, Task

MIN_SHARED = 0.8
"""Share of the definitions of two tasks, of all that either removes, from which on the second one is refused."""
_OF_WHOLE_DEFINITIONS = REMOVALS | {"stub"}
"""Deleters whose tasks lose all of the code of their definitions."""


class RepeatedTasks:
    """The tasks that were counted."""

    def __init__(self) -> None:
        self._patches: set[str] = set()
        self._by_symbol: dict[str, list[Task]] = {}

    def refusal(self, task: Task, *, is_published: bool = False) -> Rejection | None:
        """The refusal of a task that repeats one, or ``is_published``; ``None`` for another one, which is noted.

        Those of the same definitions are no repetition: a line of a function, and another one. Neither are those of
        another deleter, or with more or fewer tests in sight.
        """
        if is_published or task.patch in self._patches:
            return _refused(task, "duplicate", "Another task of this repository has the same gold patch.")
        beside = {other.instance_id: other for symbol in task.removed for other in self._by_symbol.get(symbol, ())}
        near = next((other for other in beside.values() if _is_near(task, other)), None)
        if near is not None:
            return _refused(task, "near_duplicate", f"{near.instance_id} removes nearly the same definitions.")
        around = next((other for other in beside.values() if _has_same_tests(task, other)), None)
        if around is not None:
            detail = f"{around.instance_id} removes more or fewer definitions, and the same tests fail."
            return _refused(task, "near_duplicate", detail)
        self._patches.add(task.patch)
        for symbol in task.removed:
            self._by_symbol.setdefault(symbol, []).append(task)
        return None


def _is_near(task: Task, other: Task) -> bool:
    mine, its = set(task.removed), set(other.removed)
    is_alike = (task.deleter, task.visibility) == (other.deleter, other.visibility)
    return is_alike and mine != its and len(mine & its) >= MIN_SHARED * len(mine | its)


def _has_same_tests(task: Task, other: Task) -> bool:
    """Whether one task loses some of the definitions of the other one, and the same tests fail."""
    mine, its = set(task.removed), set(other.removed)
    is_alike = (task.deleter, task.visibility) == (other.deleter, other.visibility)
    is_nested = (mine < its or its < mine) and task.deleter in _OF_WHOLE_DEFINITIONS
    return is_alike and is_nested and set(task.fail_to_pass) == set(other.fail_to_pass)


def _refused(task: Task, reason: str, detail: str) -> Rejection:
    return Rejection(
        repo=task.repo,
        stage="gate",
        subject=task.instance_id,
        reason=reason,
        detail=detail,
        kind=task.difficulty.kind,
        symbols=task.removed,
    )
