"""The arena over a real task set: what is opened, what is refused, and grades that come too late."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.taskset import TaskSet
from excise.errors import SandboxError, StoreError
from excise.pipeline.arena import TaskArena
from excise.types import Grade, Worker

KNOWN: dict[str, Any] = {
    "instance_id": "t", "worker_outcome": Worker.OK, "reward": 1.0, "reward_tests": 1.0, "reward_calls": None,
    "partial": 1.0, "statuses": {}, "reasons": (), "num_passed": 0, "num_tests": 0,
}  # fmt: skip


def test_sandboxes_of_one_task_know_nothing_of_each_other(arena: TaskArena) -> None:
    instance_id = next(iter(arena.tasks()))

    async def go() -> Any:
        async with arena.open(instance_id) as one, arena.open(instance_id) as other:
            one.session.put("/testbed/new.py", b"x = 1\n")
            found = one.diff(), other.diff()
            history = one.session.exec(["git", "log", "--oneline"], timeout_s=20).stdout
            outside = one.session.exec(["ls", "/excise"], timeout_s=20).stdout
        with pytest.raises(SandboxError):
            one.session.get("/testbed/new.py")
        return *found, history, outside

    mine, others, history, outside = asyncio.run(go())
    assert "+x = 1" in mine
    assert others == ""
    assert history.count(b"\n") == 1
    assert b"inside" not in outside


def test_tasks_that_there_are_not(arena: TaskArena, shapes: Any) -> None:
    async def go() -> None:
        with pytest.raises(SandboxError, match="no task"):
            async with arena.open("nothing"):
                pass

    asyncio.run(go())
    with pytest.raises(StoreError, match="nothing"):
        TaskArena(shapes.taskset, shapes.settings, ids=["nothing"])


def test_only_some_tasks_and_new_ones(shapes: Any) -> None:
    ids = sorted(task.instance_id for task in shapes.taskset.tasks())
    some = TaskArena(shapes.taskset, shapes.settings, ids=ids[:2])
    assert sorted(some.tasks()) == ids[:2]
    some.close()
    every = TaskArena(shapes.taskset, shapes.settings)
    every._tasks = {name: task for name, task in every._tasks.items() if name != ids[0]}  # as if published later
    assert every.refresh() == (ids[0],)
    assert sorted(every.tasks()) == ids
    assert every.refresh() == ()
    every.close()


def test_equal_answers_are_graded_once(arena: TaskArena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that come while the first is being graded; a grade that says nothing is not kept."""
    asked: list[str] = []
    known = Grade(**KNOWN, decided=True)
    answers = iter([Grade(**KNOWN, decided=False), known, known])

    def grade(_: str, diff: str) -> Grade:
        asked.append(diff)
        return next(answers)

    monkeypatch.setattr(arena._grader, "grade", grade)

    async def go() -> list[Grade]:
        lost = await arena.grade("t", "one")
        both = await asyncio.gather(arena.grade("t", "one"), arena.grade("t", "one"))
        return [lost, *both, await arena.grade("t", "one"), await arena.grade("u", "one")]

    found = asyncio.run(go())
    assert [grade.decided for grade in found] == [False, True, True, True, True]
    assert asked == ["one"] * 3


def test_waiting_for_a_turn_takes_no_time_of_a_grade(shapes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arena = TaskArena(shapes.taskset, shapes.settings, graders=1, grade_s=1.5)

    def slow(instance_id: str, diff: str) -> Grade:
        time.sleep(0.4)
        return Grade(**KNOWN, decided=True)

    monkeypatch.setattr(arena._grader, "grade", slow)

    async def go() -> list[Grade]:
        return list(await asyncio.gather(*(arena.grade("t", f"{number}") for number in range(5))))

    assert all(grade.decided for grade in asyncio.run(go()))
    arena.close()


def test_a_snapshot_that_others_have_replaced_does_no_harm(shapes: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(shapes.out, out, symlinks=True)
    arena = TaskArena(TaskSet.open(out), shapes.settings)
    instance_id = next(iter(arena.tasks()))
    (out / os.readlink(out / "current")).rename(out / "snapshots" / "000099")
    (out / "current").unlink()
    (out / "current").symlink_to("snapshots/000099")
    grade = asyncio.run(arena.grade(instance_id, arena.tasks()[instance_id].patch))
    assert (grade.decided, grade.reward) == (True, 1.0), grade
    arena.close()


def test_a_grade_that_takes_too_long_says_nothing(shapes: Any) -> None:
    impatient = TaskArena(shapes.taskset, shapes.settings, grade_s=0.01)
    instance_id = next(iter(impatient.tasks()))
    grade = asyncio.run(impatient.grade(instance_id, impatient.tasks()[instance_id].patch))
    assert (grade.decided, grade.reasons) == (False, ("timeout",))
    impatient.close()
