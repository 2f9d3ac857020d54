"""Opens sandboxes for attempts at tasks of a set, and grades the attempts.

An environment is built once, for the first task that needs it; a task's tree is made once, for its first attempt.
Further attempts open a sandbox on the same layers in milliseconds, even while other environments are built. The
commands of an attempt are recorded outside its sandbox.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError, SandboxError, StoreError
from excise.pipeline.services.map_tasks import EnvironmentProblem
from excise.pipeline.services.statements import StatementChoice, Statements
from excise.pipeline.services.task_grader import Grader, GradingEnvironment
from excise.pipeline.stages.model_attempt import changes
from excise.protocols import Session
from excise.trainer.concurrency import DaemonThreadPool
from excise.types import Grade, Task
from excise.verifiers.agent_workspace import Workspace, workspace
from excise.verifiers.grading.grader import ungraded
from excise.verifiers.monitor.monitored_task import MonitoredTask, monitored_task_of
from excise.verifiers.monitor.recording_session import RecordingSession
from excise.verifiers.monitor.review import review
from excise.verifiers.monitor.trajectory import Trajectory, write_events
from excise.verifiers.recovery.scoring import distinctive_lines
from excise.verifiers.workbench import Workbench

T = TypeVar("T")

GRADES_KEPT = 1024
"""Number of latest grades that are kept in memory, for equal diffs."""
NUM_OPENERS = 8
"""Number of threads that open sandboxes; as many others close them."""
NUM_BUILDERS = 4
"""Number of threads that build environments; as many others make trees."""
BUILD_RETRY_S = 120.0
"""Seconds after which an environment or a tree that could not be made is tried again."""
CLOSE_TIMEOUT_S = 60.0
"""Seconds to wait for a sandbox to close, and for the threads of the arena to end."""


class LazyValues(Generic[T]):
    """Expensive values by name; each is made once, in a pool of ``num_threads`` threads.

    After an error, a value is made again ``retry_s`` seconds later at the earliest; until then the error is raised
    again.
    """

    def __init__(self, num_threads: int, name: str, retry_s: float) -> None:
        """``name`` is given to the threads."""
        self._threads = DaemonThreadPool(num_threads, name)
        self._retry_s = retry_s
        self._lock = threading.Lock()
        self._values: dict[str, Future[T]] = {}
        self._failed_at: dict[str, float] = {}

    async def get(self, name: str, make: Callable[[], T]) -> T:
        """Return the value of this name, or raise the error of ``make``; concurrent callers wait for the same value.

        ``make`` runs to its end even if its callers are cancelled.
        """
        with self._lock:
            value = self._values.get(name)
            if value is None or time.monotonic() - self._failed_at.get(name, float("inf")) >= self._retry_s:
                self._failed_at.pop(name, None)
                value = self._values[name] = self._threads.submit(self._make, name, make)
        return await asyncio.shield(asyncio.wrap_future(value))

    def shutdown(self, *, within_s: float, cancel_futures: bool = True) -> None:
        """Make no more values; wait at most ``within_s`` seconds for those that are being made."""
        self._threads.shutdown(cancel_futures=cancel_futures, within_s=within_s)

    def _make(self, name: str, make: Callable[[], T]) -> T:
        try:
            return make()
        except BaseException:
            with self._lock:
                self._failed_at[name] = time.monotonic()
            raise


class RecordedSandbox:
    """See :class:`excise.trainer.interfaces.TaskSandbox`; safe for one thread at a time."""

    def __init__(
        self,
        task: Task,
        session: Session,
        workspace_: Workspace,
        known: Callable[[], MonitoredTask],
        keep: Path | None,
    ) -> None:
        self.task, self.workspace = task, workspace_
        self.session: Session = RecordingSession(session, task.instance_id)
        self._known, self._keep = known, keep

    def diff(self) -> str:
        """Return the changes so far; cut off just above the grader's limit, so that it refuses larger ones."""
        return changes(self.session)

    def flags(self) -> tuple[str, ...]:
        """Return the monitor's label if it flags the trajectory, which is then stored for ``excise audit``."""
        assert isinstance(self.session, RecordingSession)
        trajectory = self.session.finished()
        verdict = review(trajectory, self._known())
        if verdict.flagged and self._keep is not None:
            self._keep.mkdir(parents=True, exist_ok=True)
            write_events(self._keep / f"{self.task.instance_id}-{trajectory.trajectory_id}.jsonl", [trajectory])
        return (str(verdict.label),) if verdict.flagged else ()

    def labels(self, trajectory: Trajectory) -> tuple[str, ...]:
        """Return the monitor's label if it flags a trajectory of an attempt at this task."""
        verdict = review(trajectory, self._known())
        return (str(verdict.label),) if verdict.flagged else ()

    def trajectory(self) -> Trajectory:
        """The commands so far and their output."""
        assert isinstance(self.session, RecordingSession)
        return self.session.finished()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaOptions:
    """Options of a :class:`TaskArena`."""

    ids: Iterable[str] | None = None
    """Instance ids of the tasks to use; ``None`` for all tasks of the set."""
    graders: int = 2
    """Number of threads that grade."""
    grade_s: float = 1800.0
    """Timeout of one grade in seconds. If no grader starts a grade for twice as long, all of them hang, and queued
    grades are not ``decided``."""
    fail_fast: bool = True
    """Whether grades may stop at the first failing FAIL_TO_PASS test; see :class:`Grader`."""
    statements: StatementChoice = field(default_factory=StatementChoice)
    """Which statements the tasks have."""
    flagged: Path | None = None
    """Folder for trajectories that the monitor flags; ``None`` to discard them."""


DEFAULTS = ArenaOptions()
"""The options that are used if none are given."""


class TaskArena:
    """The tasks of a set with their sandboxes and a grader. Implements :class:`excise.trainer.interfaces.Arena`."""

    def __init__(self, taskset: TaskSet, settings: Settings, options: ArenaOptions = DEFAULTS) -> None:
        self._grader = Grader(taskset, settings, fail_fast=options.fail_fast)
        self._root, self._flagged, self._grade_s = taskset.root, options.flagged, options.grade_s
        self._choice = options.statements
        self._wanted = None if options.ids is None else frozenset(options.ids)
        self._tasks: dict[str, Task] = {}
        self._known: dict[str, MonitoredTask] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._open_workspaces = ExitStack()
        self._grades: dict[tuple[str, str], asyncio.Task[Grade]] = {}
        self._last_grade_began = 0.0
        self._environments: LazyValues[GradingEnvironment] = LazyValues(
            NUM_BUILDERS, "excise-environment", BUILD_RETRY_S
        )
        self._workspaces = LazyValues[Workspace](NUM_BUILDERS, "excise-tree", BUILD_RETRY_S)
        self._openers = DaemonThreadPool(NUM_OPENERS, "excise-open")
        self._closers = DaemonThreadPool(NUM_OPENERS, "excise-close")
        self._graders = DaemonThreadPool(options.graders, "excise-grade")
        self._update_tasks(taskset)

    def tasks(self) -> Mapping[str, Task]:
        """Instance id to task with the chosen statement, without quarantined ones."""
        return self._tasks

    def refresh(self) -> tuple[str, ...]:
        """Read the current snapshot; return the ids of new tasks."""
        taskset = TaskSet.open(self._root)
        self._grader.taskset = taskset
        return self._update_tasks(taskset)

    @asynccontextmanager
    async def open(self, instance_id: str) -> AsyncIterator[RecordedSandbox]:
        """Open a fresh sandbox, which is closed when the block ends. Raises :class:`SandboxError`."""
        if instance_id not in self._tasks:
            raise SandboxError(f"There is no task {instance_id!r} to open.", reason="unknown_id")
        task = self._tasks[instance_id]
        environment = await self._environments.get(task.env_id, lambda: self._build_environment(task))
        tree = await self._workspaces.get(instance_id, lambda: self._make_workspace(task, environment.bench))
        opening = self._openers.submit(self._open, task, tree)
        try:
            sandbox = await asyncio.shield(asyncio.wrap_future(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_close)
            raise
        try:
            yield sandbox
        finally:
            closing = asyncio.wrap_future(self._closers.submit(sandbox.session.close))
            if (await asyncio.wait([closing], timeout=CLOSE_TIMEOUT_S))[0]:
                closing.result()

    async def grade(self, instance_id: str, diff: str) -> Grade:
        """See :class:`excise.trainer.interfaces.Arena`; a grade that takes too long is not ``decided``.

        Equal diffs are graded once: small models often give the same answer.
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
            self._last_grade_began = time.monotonic()
            with contextlib.suppress(RuntimeError):  # the loop is closed, nobody waits
                loop.call_soon_threadsafe(begun.cancel)
            return self._grader.grade(instance_id, diff)

        grading = loop.run_in_executor(self._graders, work)
        either: list[asyncio.Future[Any]] = [begun, grading]
        asked, patience_s = time.monotonic(), 2 * self._grade_s
        while not any(one.done() for one in either):  # wait in the queue of the graders
            left_s = max(asked, self._last_grade_began) + patience_s - time.monotonic()
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
        """Remove the trees, after all sandboxes were closed. Threads that hang are abandoned."""
        until = time.monotonic() + CLOSE_TIMEOUT_S
        for threads in (self._openers, self._closers, self._workspaces, self._environments):
            threads.shutdown(cancel_futures=True, within_s=max(0.0, until - time.monotonic()))
        self._graders.shutdown(wait=False, cancel_futures=True)
        self._open_workspaces.close()

    def _update_tasks(self, taskset: TaskSet) -> tuple[str, ...]:
        statements = Statements(taskset, self._choice)
        found = {task.instance_id: statements.restated(task) for task in taskset.tasks()}
        if self._wanted is not None:
            if missing := sorted(self._wanted - set(found)):
                raise StoreError(f"The set has no task {missing[0]!r} that may be used.", reason="unknown_id")
            found = {name: task for name, task in found.items() if name in self._wanted}
        new = tuple(name for name in found if name not in self._tasks)
        self._tasks = found
        return new

    def _open(self, task: Task, tree: Workspace) -> RecordedSandbox:
        session = tree.open()
        try:
            return RecordedSandbox(task, session, tree, lambda: self._monitored(task, tree), self._flagged)
        except BaseException:
            session.close()
            raise

    def _build_environment(self, task: Task) -> GradingEnvironment:
        with _as_sandbox_errors(task):
            found = self._grader.environment_of(task)
            if isinstance(found, EnvironmentProblem):
                raise SandboxError(f"{task.instance_id}: no environment: {found.detail}", reason=found.reason)
            return found

    def _make_workspace(self, task: Task, bench: Workbench) -> Workspace:
        """Write the task's tree to disk; all its attempts share it until the arena is closed."""
        with _as_sandbox_errors(task):
            context = workspace(bench, bench.edits_of(task.deletion_patch))
            tree = context.__enter__()
            with self._lock:
                self._open_workspaces.push(context)
            return tree

    def _monitored(self, task: Task, workspace_: Workspace) -> MonitoredTask:
        """Return the facts that the monitor needs about the task; made once."""
        with self._lock:
            lock = self._locks.setdefault(task.instance_id, threading.Lock())
        with lock:
            if task.instance_id not in self._known:
                self._known[task.instance_id] = monitored_task_of(task, _lines(workspace_.tree))
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


def _close(opening: Future[RecordedSandbox]) -> None:
    """Close a sandbox whose caller was cancelled while it was opened."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().session.close()
