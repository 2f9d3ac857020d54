"""Tasks of a set as an arena for agents: sandboxes that open in milliseconds, and the grader's word.

An environment is made once, with the first task that needs it; a task's tree is laid out once, with its first attempt.
After that an attempt costs a sandbox on the same layers. What is done in it is recorded from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.envs.layout import REPO
from excise.errors import ExciseError, SandboxError, StoreError
from excise.pipeline.grading import Grader
from excise.pipeline.over_tasks import Trouble
from excise.protocols import Session
from excise.trainer.protocols import Desk
from excise.types import Grade, Task
from excise.verifiers.grading.grader import ungraded
from excise.verifiers.monitor.events import Trajectory, write_events
from excise.verifiers.monitor.known import Known, known_of
from excise.verifiers.monitor.record import Recorder
from excise.verifiers.monitor.review import review
from excise.verifiers.recovery.judge import lines_of
from excise.verifiers.workspace import Workspace, workspace

T = TypeVar("T")
GRADES_KEPT = 1024
"""The latest ones; an equal answer has an equal grade."""
OPEN_AT_ONCE = 8
"""Threads that open and close sandboxes."""


class RecordedDesk:
    """See :class:`excise.trainer.protocols.Desk`; safe for one thread at a time."""

    def __init__(self, task: Task, session: Session, known: Callable[[], Known], keep: Path | None) -> None:
        self.task = task
        self.session: Session = Recorder(session, task.instance_id)
        self._known, self._keep = known, keep

    def diff(self) -> str:
        """What was changed so far."""
        return self.session.diff(REPO).decode("utf-8", "surrogateescape")

    def flags(self) -> tuple[str, ...]:
        """The monitor's label, where what was done is worth a person's time; it is then kept for ``excise audit``."""
        assert isinstance(self.session, Recorder)
        trajectory = self.session.finished()
        seen = review(trajectory, self._known())
        if seen.flagged and self._keep is not None:
            self._keep.mkdir(parents=True, exist_ok=True)
            write_events(self._keep / f"{self.task.instance_id}-{trajectory.trajectory_id}.jsonl", [trajectory])
        return (str(seen.label),) if seen.flagged else ()

    def trajectory(self) -> Trajectory:
        """What was done so far."""
        assert isinstance(self.session, Recorder)
        return self.session.finished()


class TaskArena:
    """See :class:`excise.trainer.protocols.Arena`; over the tasks of a set, or over ``ids`` of them.

    ``graders`` grades are made at once, each within ``grade_s`` seconds of its start, ``brief`` as :class:`Grader`
    says; ``suspicious`` is a folder for trajectories that the monitor flags.
    """

    def __init__(
        self,
        taskset: TaskSet,
        settings: Settings,
        *,
        ids: Iterable[str] | None = None,
        graders: int = 2,
        grade_s: float = 1800.0,
        brief: bool = True,
        suspicious: Path | None = None,
    ) -> None:
        self._grader = Grader(taskset, settings, brief=brief)
        self._root, self._suspicious, self._grade_s = taskset.root, suspicious, grade_s
        self._wanted = None if ids is None else frozenset(ids)
        self._tasks: dict[str, Task] = {}
        self._spaces: dict[str, Workspace] = {}
        self._known: dict[str, Known] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._made = ExitStack()
        self._grades: dict[tuple[str, str], asyncio.Task[Grade]] = {}
        self._desks = ThreadPoolExecutor(OPEN_AT_ONCE, thread_name_prefix="excise-open")
        self._graders = ThreadPoolExecutor(graders, thread_name_prefix="excise-grade")
        self._take(taskset)

    def tasks(self) -> Mapping[str, Task]:
        """Instance id to task, quarantined ones left out."""
        return self._tasks

    def refresh(self) -> tuple[str, ...]:
        """Take in what was published since: the ids of new tasks."""
        taskset = TaskSet.open(self._root)
        self._grader.taskset = taskset
        return self._take(taskset)

    @asynccontextmanager
    async def open(self, instance_id: str) -> AsyncIterator[Desk]:
        """A fresh sandbox, gone afterwards whatever happens. Raises :class:`SandboxError`."""
        opening = self._desks.submit(self._open, instance_id)
        try:
            desk = await asyncio.shield(asyncio.wrap_future(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_close)
            raise
        try:
            yield desk
        finally:
            await asyncio.shield(asyncio.wrap_future(self._desks.submit(desk.session.close)))

    async def grade(self, instance_id: str, diff: str) -> Grade:
        """See the protocol; a grade that takes too long is not ``decided``.

        Of equal diffs one is graded: small models often give the same answer.
        """
        key = instance_id, hashlib.sha256(diff.encode("utf-8", "surrogateescape")).hexdigest()
        grading = self._grades.pop(key, None)
        if grading is None or grading.get_loop() is not asyncio.get_running_loop():
            grading = asyncio.create_task(self._grade(instance_id, diff))
        self._grades[key] = grading
        while len(self._grades) > GRADES_KEPT:
            del self._grades[next(iter(self._grades))]
        try:
            grade = await asyncio.shield(grading)
        except Exception:
            self._grades.pop(key, None)
            raise
        if not grade.decided:
            self._grades.pop(key, None)
        return grade

    async def _grade(self, instance_id: str, diff: str) -> Grade:
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def work() -> Grade:
            with contextlib.suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(begun.cancel)
            return self._grader.grade(instance_id, diff)

        grading = loop.run_in_executor(self._graders, work)
        either: list[asyncio.Future[Any]] = [begun, grading]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)  # its turn has to come first
        try:
            return await asyncio.wait_for(grading, self._grade_s)
        except TimeoutError:
            return ungraded(self._tasks[instance_id], "timeout", f"No grade within {self._grade_s:.0f} s.")

    def close(self) -> None:
        """Remove the trees; sandboxes must be closed before."""
        self._desks.shutdown(wait=True, cancel_futures=True)
        self._graders.shutdown(wait=False, cancel_futures=True)
        self._made.close()

    def _take(self, taskset: TaskSet) -> tuple[str, ...]:
        found = {task.instance_id: task for task in taskset.tasks()}
        if self._wanted is not None:
            if missing := sorted(self._wanted - set(found)):
                raise StoreError(f"The set has no task {missing[0]!r} that may be used.", reason="unknown_id")
            found = {name: task for name, task in found.items() if name in self._wanted}
        new = tuple(name for name in found if name not in self._tasks)
        self._tasks = found
        return new

    def _open(self, instance_id: str) -> RecordedDesk:
        if instance_id not in self._tasks:
            raise SandboxError(f"There is no task {instance_id!r} to open.", reason="unknown_id")
        task = self._tasks[instance_id]
        space = self._once(self._spaces, instance_id, lambda: self._space(task))
        session = space.open()
        try:
            return RecordedDesk(task, session, lambda: self._knowledge(task, space), self._suspicious)
        except BaseException:
            session.close()
            raise

    def _space(self, task: Task) -> Workspace:
        """The task's tree, laid out for all of its attempts."""
        try:
            ready = self._grader.ready(task)
            if isinstance(ready, Trouble):
                raise SandboxError(f"{task.instance_id}: no environment: {ready.detail}", reason=ready.reason)
            bench, _ = ready
            made = workspace(bench, bench.edits_of(task.deletion_patch))
            with self._lock:
                return self._made.enter_context(made)
        except SandboxError:
            raise
        except ExciseError as error:
            raise SandboxError(f"{task.instance_id}: {error}", reason=error.reason) from error

    def _knowledge(self, task: Task, space: Workspace) -> Known:
        return self._once(self._known, task.instance_id, lambda: known_of(task, _lines(space.tree)))

    def _once(self, made: dict[str, T], name: str, make: Callable[[], T]) -> T:
        """What is made once; whoever comes in the meantime waits."""
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name not in made:
                made[name] = make()
            return made[name]


def _lines(tree: Path) -> set[str]:
    """Lines of every text file of a shipped tree."""
    found: set[str] = set()
    for path in tree.rglob("*"):
        if ".git" not in path.relative_to(tree).parts and path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if b"\0" not in data[:4096]:
                found |= lines_of(data.decode(errors="replace"))
    return found


def _close(opening: Future[RecordedDesk]) -> None:
    """Close a sandbox that nobody waits for any more."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().session.close()
