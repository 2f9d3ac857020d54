"""Tasks of a set as an arena for agents: sandboxes that open in milliseconds, and the grader's word.

An environment is made once, with the first task that needs it; a task's tree is laid out once, with its first attempt.
After that an attempt costs a sandbox on the same layers, whatever is being made for others. What is done in it is
recorded from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.envs.sandbox.mount_points import REPO
from excise.errors import ExciseError, SandboxError, StoreError
from excise.pipeline.services.once import Once
from excise.pipeline.services.stored_tasks import Trouble
from excise.pipeline.services.task_grader import Grader
from excise.protocols import Session
from excise.trainer.concurrency import Threads
from excise.trainer.interfaces import Desk
from excise.types import Grade, Task
from excise.verifiers.agent_workspace import Workspace, workspace
from excise.verifiers.grading.grader import GradingConditions, ungraded
from excise.verifiers.grading.intake import MAX_DIFF_BYTES
from excise.verifiers.monitor.monitored_task import MonitoredTask, monitored_task_of
from excise.verifiers.monitor.recording_session import RecordingSession
from excise.verifiers.monitor.review import review
from excise.verifiers.monitor.trajectory import Trajectory, write_events
from excise.verifiers.recovery.scoring import distinctive_lines
from excise.verifiers.workbench import Workbench

GRADES_KEPT = 1024
"""The latest ones; an equal answer has an equal grade."""
OPEN_AT_ONCE = 8
"""Sandboxes that are opened at a time, and as many that are closed."""
MAKE_AT_ONCE = 4
"""Environments that are made at a time, and as many trees."""
FAILED_S = 120.0
"""An environment that cannot be made is tried again after this time."""
CLOSE_S = 60.0
"""A sandbox is closed within this time, or nobody waits for it any more."""


class RecordedDesk:
    """See :class:`excise.trainer.interfaces.Desk`; safe for one thread at a time."""

    def __init__(self, task: Task, session: Session, known: Callable[[], MonitoredTask], keep: Path | None) -> None:
        self.task = task
        self.session: Session = RecordingSession(session, task.instance_id)
        self._known, self._keep = known, keep

    def diff(self) -> str:
        """What was changed so far; of what is too large for the grader, enough for it to say so."""
        return self.session.diff(REPO)[: MAX_DIFF_BYTES + 1].decode("utf-8", "surrogateescape")

    def flags(self) -> tuple[str, ...]:
        """The monitor's label, where what was done is worth a person's time; it is then kept for ``excise audit``."""
        assert isinstance(self.session, RecordingSession)
        trajectory = self.session.finished()
        seen = review(trajectory, self._known())
        if seen.flagged and self._keep is not None:
            self._keep.mkdir(parents=True, exist_ok=True)
            write_events(self._keep / f"{self.task.instance_id}-{trajectory.trajectory_id}.jsonl", [trajectory])
        return (str(seen.label),) if seen.flagged else ()

    def trajectory(self) -> Trajectory:
        """What was done so far."""
        assert isinstance(self.session, RecordingSession)
        return self.session.finished()


class TaskArena:
    """See :class:`excise.trainer.interfaces.Arena`; over the tasks of a set, or over ``ids`` of them.

    ``graders`` grades are made at once, each within ``grade_s`` seconds of its start, ``brief`` as :class:`Grader`
    says; where none begins for twice as long, the graders hang. ``suspicious`` is a folder for trajectories that the
    monitor flags.
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
        self._known: dict[str, MonitoredTask] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._made = ExitStack()
        self._grades: dict[tuple[str, str], asyncio.Task[Grade]] = {}
        self._grade_began = 0.0
        self._benches: Once[tuple[Workbench, GradingConditions]] = Once(MAKE_AT_ONCE, "excise-environment", FAILED_S)
        self._spaces: Once[Workspace] = Once(MAKE_AT_ONCE, "excise-tree", FAILED_S)
        self._openers = Threads(OPEN_AT_ONCE, "excise-open")
        self._closers = Threads(OPEN_AT_ONCE, "excise-close")
        self._graders = Threads(graders, "excise-grade")
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
        if instance_id not in self._tasks:
            raise SandboxError(f"There is no task {instance_id!r} to open.", reason="unknown_id")
        task = self._tasks[instance_id]
        bench, _ = await self._benches.get(task.env_id, lambda: self._bench(task))
        space = await self._spaces.get(instance_id, lambda: self._space(task, bench))
        opening = self._openers.submit(self._open, task, space)
        try:
            desk = await asyncio.shield(asyncio.wrap_future(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_close)
            raise
        try:
            yield desk
        finally:
            closing = asyncio.wrap_future(self._closers.submit(desk.session.close))
            if (await asyncio.wait([closing], timeout=CLOSE_S))[0]:
                closing.result()

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
            self._grade_began = time.monotonic()
            with contextlib.suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(begun.cancel)
            return self._grader.grade(instance_id, diff)

        grading = loop.run_in_executor(self._graders, work)
        either: list[asyncio.Future[Any]] = [begun, grading]
        asked, patience_s = time.monotonic(), 2 * self._grade_s
        while not any(one.done() for one in either):  # its turn has to come first
            left_s = max(asked, self._grade_began) + patience_s - time.monotonic()
            if left_s <= 0:
                grading.cancel()
                why = f"No grader began anything within {patience_s:.0f} s."
                return ungraded(self._tasks[instance_id], "timeout", why)
            await asyncio.wait(either, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        try:
            return await asyncio.wait_for(grading, self._grade_s)
        except TimeoutError:
            return ungraded(self._tasks[instance_id], "timeout", f"No grade within {self._grade_s:.0f} s.")

    def close(self) -> None:
        """Remove the trees; sandboxes must be closed before. A thread that hangs is left behind."""
        until = time.monotonic() + CLOSE_S
        for threads in (self._openers, self._closers, self._spaces, self._benches):
            threads.shutdown(cancel_futures=True, within_s=max(0.0, until - time.monotonic()))
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

    def _open(self, task: Task, space: Workspace) -> RecordedDesk:
        session = space.open()
        try:
            return RecordedDesk(task, session, lambda: self._knowledge(task, space), self._suspicious)
        except BaseException:
            session.close()
            raise

    def _bench(self, task: Task) -> tuple[Workbench, GradingConditions]:
        """The task's environment, made if need be."""
        with _as_sandbox_errors(task):
            ready = self._grader.ready(task)
            if isinstance(ready, Trouble):
                raise SandboxError(f"{task.instance_id}: no environment: {ready.detail}", reason=ready.reason)
            return ready

    def _space(self, task: Task, bench: Workbench) -> Workspace:
        """The task's tree, laid out for all of its attempts."""
        with _as_sandbox_errors(task):
            made = workspace(bench, bench.edits_of(task.deletion_patch))
            space = made.__enter__()
            with self._lock:
                self._made.push(made)
            return space

    def _knowledge(self, task: Task, space: Workspace) -> MonitoredTask:
        with self._lock:
            lock = self._locks.setdefault(task.instance_id, threading.Lock())
        with lock:
            if task.instance_id not in self._known:
                self._known[task.instance_id] = monitored_task_of(task, _lines(space.tree))
            return self._known[task.instance_id]


@contextlib.contextmanager
def _as_sandbox_errors(task: Task) -> Iterator[None]:
    try:
        yield
    except SandboxError:
        raise
    except ExciseError as error:
        raise SandboxError(f"{task.instance_id}: {error}", reason=error.reason) from error


def _lines(tree: Path) -> set[str]:
    """Lines of every text file of a shipped tree."""
    found: set[str] = set()
    for path in tree.rglob("*"):
        if ".git" not in path.relative_to(tree).parts and path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if b"\0" not in data[:4096]:
                found |= distinctive_lines(data.decode(errors="replace"))
    return found


def _close(opening: Future[RecordedDesk]) -> None:
    """Close a sandbox that nobody waits for any more."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().session.close()
