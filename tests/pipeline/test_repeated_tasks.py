"""Tasks of one source that repeat each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from excise.pipeline.run.repeated_tasks import RepeatedTasks
from excise.types import Task, Visibility

from ..datasets.conftest import make_task


def task_of(number: int, *removed: str, deleter: str = "remove", tests: str = "") -> Task:
    """A task that removes these functions; without ``tests``, those that fail are its own."""
    task, _ = make_task("toolz", "take", rank=0)
    names = tuple(f"m.py::{name}" for name in removed)
    failing = tuple(f"t.py::test_{each}" for each in tests or str(number))
    return replace(
        task,
        instance_id=f"toolz__{number}",
        patch=f"patch {number}",
        removed=names,
        deleter=deleter,
        fail_to_pass=failing,
    )


def reasons(*tasks: Task) -> list[str]:
    known = RepeatedTasks()
    return [refusal.reason if (refusal := known.refusal(task)) else "" for task in tasks]


def test_equal_patches_and_nearly_equal_definitions_are_refused() -> None:
    first = task_of(1, *"abcdefgh")
    assert reasons(first, replace(task_of(2, "x"), patch=first.patch)) == ["", "duplicate"]
    assert reasons(first, task_of(2, *"abcdefgx")) == ["", ""], "7 of 9"
    assert reasons(first, task_of(2, *"abcdefghx")) == ["", "near_duplicate"]
    assert reasons(task_of(2, *"xabcdefghi"), first) == ["", "near_duplicate"]
    assert RepeatedTasks().refusal(first, is_published=True) is not None
    refusal = RepeatedTasks().refusal(first, is_published=True)
    assert refusal is not None
    assert (refusal.subject, refusal.symbols) == ("toolz__1", first.removed)


def test_other_parts_of_the_same_code_are_other_tasks() -> None:
    first = task_of(1, *"abcdefgh")
    assert reasons(first, task_of(2, *"abcdefgh")) == ["", ""], "another line of them"
    assert reasons(first, task_of(2, *"abcdefg", deleter="stub")) == ["", ""]
    assert reasons(first, replace(task_of(2, *"abcdefg"), visibility=Visibility.TESTS)) == ["", ""]
    assert reasons(first, task_of(2, *"abcd"), task_of(3, "x")) == ["", "", ""]


@pytest.mark.parametrize(
    ("removed", "tests", "deleter", "expected"),
    [
        ("a", "xy", "stub", "near_duplicate"),
        ("abcd", "yx", "stub", "near_duplicate"),
        ("a", "x", "stub", ""),
        ("cd", "xy", "stub", ""),
        ("ad", "xy", "stub", ""),
        ("a", "xy", "remove", ""),
        ("a", "xy", "line", ""),
    ],
    ids=["fewer", "more", "other tests", "other definitions", "overlapping", "another deleter", "parts"],
)
def test_more_or_fewer_definitions_with_the_same_failing_tests_are_refused(
    removed: str, tests: str, deleter: str, expected: str
) -> None:
    kind = "line" if deleter == "line" else "stub"
    first = task_of(1, *"ab", deleter=kind, tests="xy")
    assert reasons(first, task_of(2, *removed, deleter=deleter, tests=tests)) == ["", expected]
