"""The arena over a real task set: opening sandboxes, grading, timeouts and closing."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.taskset import TaskSet
from excise.envs.sandbox import session_base
from excise.errors import SandboxError, StoreError
from excise.pipeline.services import arena as arenas
from excise.pipeline.services.arena import ArenaOptions, LazyValues, TaskArena
from excise.pipeline.services.map_tasks import EnvironmentProblem
from excise.system.process_identity import own_process_name
from excise.types import Grade, Task, WorkerOutcome
from excise.verifiers.grading.intake import MAX_DIFF_BYTES, storable

KNOWN: dict[str, Any] = {
    "instance_id": "t", "worker_outcome": WorkerOutcome.OK, "reward": 1.0, "reward_tests": 1.0, "reward_calls": None,
    "partial": 1.0, "statuses": {}, "reasons": (), "num_passed": 0, "num_tests": 0,
}  # fmt: skip


@pytest.fixture(scope="session")
def arena(stored: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskArena]:
    """The tasks of ``shapes``, with a folder for suspicious trajectories."""
    made = TaskArena(stored.taskset, stored.settings, ArenaOptions(flagged=tmp_path_factory.mktemp("suspicious")))
    yield made
    made.close()


def test_sandboxes_of_one_task_are_isolated_from_each_other(arena: TaskArena) -> None:
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


def test_unknown_tasks_are_refused(arena: TaskArena, stored: Any) -> None:
    async def go() -> None:
        with pytest.raises(SandboxError, match="no task"):
            async with arena.open("nothing"):
                pass

    asyncio.run(go())
    with pytest.raises(StoreError, match="nothing"):
        TaskArena(stored.taskset, stored.settings, ArenaOptions(ids=["nothing"]))


def test_an_arena_holds_the_chosen_tasks_and_finds_new_ones(stored: Any) -> None:
    ids = sorted(task.instance_id for task in stored.taskset.tasks())
    some = TaskArena(stored.taskset, stored.settings, ArenaOptions(ids=ids[:2]))
    assert sorted(some.tasks()) == ids[:2]
    some.close()
    every = TaskArena(stored.taskset, stored.settings)
    every._tasks = {name: task for name, task in every._tasks.items() if name != ids[0]}  # as if published later
    assert every.refresh() == (ids[0],)
    assert sorted(every.tasks()) == ids
    assert every.refresh() == ()
    every.close()


def test_equal_answers_are_graded_once(arena: TaskArena, monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes answers that arrive while the first is being graded. Undecided grades are not kept."""
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


def test_waiting_in_the_queue_does_not_count_towards_the_grading_timeout(
    stored: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = TaskArena(stored.taskset, stored.settings, ArenaOptions(graders=1, grade_s=1.5))

    def slow(instance_id: str, diff: str) -> Grade:
        time.sleep(0.4)
        return Grade(**KNOWN, decided=True)

    monkeypatch.setattr(arena._grader, "grade", slow)

    async def go() -> list[Grade]:
        return list(await asyncio.gather(*(arena.grade("t", f"{number}") for number in range(5))))

    assert all(grade.decided for grade in asyncio.run(go()))
    arena.close()


def test_a_task_is_graded_after_its_snapshot_was_replaced(stored: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(stored.out, out, symlinks=True)
    arena = TaskArena(TaskSet.open(out), stored.settings)
    instance_id = next(iter(arena.tasks()))
    (out / os.readlink(out / "current")).rename(out / "snapshots" / "000099")
    (out / "current").unlink()
    (out / "current").symlink_to("snapshots/000099")
    grade = asyncio.run(arena.grade(instance_id, arena.tasks()[instance_id].patch))
    assert (grade.decided, grade.reward) == (True, 1.0), grade
    arena.close()


def test_a_grade_past_its_timeout_is_undecided(stored: Any) -> None:
    arena = TaskArena(stored.taskset, stored.settings, ArenaOptions(grade_s=0.01))
    instance_id = next(iter(arena.tasks()))
    grade = asyncio.run(arena.grade(instance_id, arena.tasks()[instance_id].patch))
    assert (grade.decided, grade.reasons) == (False, ("timeout",))
    arena.close()


def test_undecodable_bytes_are_graded_unchanged(arena: TaskArena) -> None:
    """The name of the file may be undecodable, too."""
    instance_id, task = next(iter(arena.tasks().items()))
    latin = b"a = 'caf\xe9'\n"

    async def go() -> tuple[str, Grade]:
        async with arena.open(instance_id) as sandbox:
            for path in ("notes.txt", "tests/test_new.py"):
                sandbox.session.put(f"/testbed/{path}", latin)
            odd = ["sh", "-c", "cp tests/test_new.py \"$(printf 'tests/test_caf\\351.py')\""]
            assert sandbox.session.exec(odd, timeout_s=20, cwd="/testbed").rc == 0
            diff = sandbox.diff()
        return diff, await arena.grade(instance_id, diff + task.patch)

    diff, grade = asyncio.run(go())
    assert diff.encode("utf-8", "surrogateescape").count(b"+" + latin) == 3
    assert storable(diff).count("caf\\udce9") == 3
    assert (grade.decided, grade.reward) == (True, 1.0), grade
    assert grade.ignored["tests/test_caf\\udce9.py"] == "test"


def test_a_huge_diff_is_truncated_and_refused_by_the_grader(arena: TaskArena) -> None:
    instance_id = next(iter(arena.tasks()))

    async def go() -> tuple[str, Grade]:
        async with arena.open(instance_id) as sandbox:
            sandbox.session.exec(["sh", "-c", "seq 1 900000 > /testbed/many.txt"], timeout_s=60)
            diff = sandbox.diff()
        return diff, await arena.grade(instance_id, diff)

    diff, grade = asyncio.run(go())
    assert len(diff) == MAX_DIFF_BYTES + 1
    assert (grade.decided, grade.reward, grade.reasons) == (True, 0.0, ("diff_too_large",))


def test_preparing_an_environment_does_not_block_other_tasks(stored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """More attempts than threads wait for it, and a sandbox of another task opens and closes."""
    arena = TaskArena(stored.taskset, stored.settings)
    warm, other = list(arena.tasks().values())[:2]
    cold = replace(other, env_id="cold")
    arena._tasks[cold.instance_id] = cold
    original, may_go = arena._grader.environment_of, threading.Event()
    asked: list[str] = []

    def ready(task: Task) -> Any:
        asked.append(task.env_id)
        if task.env_id == "cold":
            may_go.wait(60)
            return EnvironmentProblem("environment", "infra", "There is none.")
        return original(task)

    monkeypatch.setattr(arena._grader, "environment_of", ready)

    async def go() -> None:
        async def attempt() -> None:
            with pytest.raises(SandboxError, match="There is none"):
                async with arena.open(cold.instance_id):
                    pass

        waiting = [asyncio.create_task(attempt()) for _ in range(2 * arenas.NUM_OPENERS)]
        await asyncio.sleep(0.05)
        async with asyncio.timeout(50), arena.open(warm.instance_id) as sandbox:
            assert sandbox.diff() == ""
        assert not any(task.done() for task in waiting)
        may_go.set()
        await asyncio.gather(*waiting)
        await attempt()

    asyncio.run(go())
    assert asked.count("cold") == 1, "the attempts share one failure"
    arena.close()


def test_a_failed_value_is_made_again_after_its_delay() -> None:
    once: LazyValues[int] = LazyValues(2, "test", 0.3)
    tried: list[int] = []

    def make() -> int:
        tried.append(1)
        if len(tried) < 2:
            raise SandboxError("not yet")
        return 5

    async def go() -> int:
        for _ in range(3):
            with pytest.raises(SandboxError, match="not yet"):
                await once.get("a", make)
        assert len(tried) == 1
        await asyncio.sleep(0.35)
        return await once.get("a", make) + await once.get("a", make)

    assert asyncio.run(go()) == 10
    assert len(tried) == 2
    once.shutdown(within_s=5)


def test_graders_that_hang_are_not_waited_for(stored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the graded attempt, nor queued ones, nor closing wait for it."""
    arena = TaskArena(stored.taskset, stored.settings, ArenaOptions(graders=1, grade_s=0.4))
    instance_id, hang = next(iter(arena.tasks())), threading.Event()
    monkeypatch.setattr(arena._grader, "grade", lambda *_: hang.wait(60))

    async def go() -> list[Grade]:
        async with asyncio.timeout(20):
            return list(await asyncio.gather(*(arena.grade(instance_id, f"{number}") for number in range(3))))

    grades = asyncio.run(go())
    assert [(grade.decided, grade.reasons) for grade in grades] == [(False, ("timeout",))] * 3
    assert "No grader began anything within 1 s" in grades[1].evidence["error"]
    began = time.monotonic()
    arena.close()
    assert time.monotonic() - began < 5
    hang.set()


def test_a_sandbox_that_hangs_while_closing_is_abandoned(stored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arenas, "CLOSE_TIMEOUT_S", 0.3)
    arena = TaskArena(stored.taskset, stored.settings)
    hang = threading.Event()
    original: list[Callable[[], None]] = []

    async def go() -> None:
        async with arena.open(next(iter(arena.tasks()))) as sandbox:
            original.append(sandbox.session.close)
            sandbox.session.close = lambda: hang.wait(60)  # type: ignore[method-assign, assignment, return-value]

    began = time.monotonic()
    asyncio.run(go())
    arena.close()
    assert time.monotonic() - began < 30
    hang.set()
    original[0]()


def test_workspaces_of_dead_processes_are_removed(stored: Any) -> None:
    """Workspaces of other machines and containers stay, since they may be in use."""
    folder = Path(stored.cache) / "workspaces"
    arena = TaskArena(stored.taskset, stored.settings)

    async def go(instance_id: str) -> set[str]:
        async with arena.open(instance_id):
            return set(os.listdir(folder))

    first, second = list(arena.tasks())[:2]
    before = set(os.listdir(folder)) if folder.exists() else set()
    (mine,) = (name for name in asyncio.run(go(first)) - before if own_process_name() in name)
    gone = subprocess.Popen(["true"])
    gone.wait()
    dead = mine.replace(own_process_name(), f"{gone.pid}-1")
    kind, _, _ = mine.partition(own_process_name())
    elsewhere = dead.replace(kind, "excise-workspace-0123456789abcdef-")
    for name in (dead, elsewhere):
        (folder / name / "tree").mkdir(parents=True)
    there = asyncio.run(go(second))
    assert dead not in there
    assert {mine, elsewhere} <= there
    shutil.rmtree(folder / elsewhere)
    arena.close()
    assert mine not in os.listdir(folder)


def test_the_diff_of_two_folders_is_bounded_in_size_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for side in "ab":
        (tmp_path / side).mkdir()
        (tmp_path / side / "x").write_text(f"{side}\n" * 1000)
    assert session_base.diff_folders(tmp_path).count(b"+b\n") == 1000
    monkeypatch.setattr(session_base, "MAX_PATCH_BYTES", 100)
    assert len(session_base.diff_folders(tmp_path)) == 100
    monkeypatch.setattr(session_base, "COMPARE_S", 0.0)
    with pytest.raises(SandboxError, match="within 0 s"):
        session_base.diff_folders(tmp_path)
