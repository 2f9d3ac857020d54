"""Runs the trainer's requests for tasks: each by ``excise generate --request`` in a process of its own.

Training continues meanwhile; new tasks are published in the set, where the arena finds them. Requests run one after the
other. They are stored as files, so that a resumed run repeats no finished request and continues an interrupted one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.taskset import TaskSet
from excise.pipeline.exit_codes import FAILED, OK, PARTIAL, USAGE
from excise.pipeline.run.selection import REQUEST_MARK
from excise.system.files import replace_file
from excise.system.locks import is_locked
from excise.trainer.curriculum.task_request import TaskRequest
from excise.trainer.engines.server_process import SUPERVISOR
from excise.types import Task, from_json, to_json

logger = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 6 * 3600.0
"""Time limit of one request in seconds; then its process is stopped, and publishes the tasks that it has finished."""
STOP_GRACE_S = 30.0
"""Seconds that a process has to publish its finished tasks after it was told to stop."""
EXCISE_COMMAND = (sys.executable, "-m", "excise.pipeline.cli")
TIMED_OUT = -1000
"""Exit code recorded for a request that ran past its time limit."""
_FINAL_CODES = frozenset({OK, FAILED, USAGE, PARTIAL, TIMED_OUT})
_POLL_S = 0.2


class RequestRunner:
    """Runs requests in the background. Calling it adds one and returns at once; equal requests run once.

    When this process ends in any way, the process of a running request publishes its finished tasks and ends.
    """

    def __init__(
        self,
        folder: Path,
        out: Path,
        options: Sequence[str] = (),
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        report: Callable[[str], object] = lambda _: None,
        program: Sequence[str] = EXCISE_COMMAND,
    ) -> None:
        """``folder`` holds requests and logs, ``out`` is the task set, ``options`` are for ``excise generate``.

        ``program`` is the command line of ``excise``; ``report`` is called with messages about failures.
        """
        self.folder, self.out, self.options, self.timeout_s = folder, out, tuple(options), timeout_s
        self._report, self._program = report, tuple(program)
        folder.mkdir(parents=True, exist_ok=True)
        self._queue: queue.Queue[str] = queue.Queue()
        self._known: set[str] = set()
        self._abandoned: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="harder-tasks", daemon=True)
        self._thread.start()

    def __call__(self, request: TaskRequest) -> None:
        """Add a request."""
        request_id = request.request_id
        if request_id in self._known or self._code(request_id).exists():
            return
        self._known.add(request_id)
        path = self.folder / f"{request_id}.json"
        if not path.exists():
            replace_file(path, to_json(request, indent=2))
        self._queue.put(request_id)

    def codes(self) -> dict[str, int]:
        """Return the exit code of each finished request by its id; negative: signal number or :data:`TIMED_OUT`."""
        return {path.name.removesuffix(".code"): int(path.read_text()) for path in sorted(self.folder.glob("*.code"))}

    def made(self, request: TaskRequest) -> Collection[str] | None:
        """Return the ids of the published tasks of a request; ``None`` while it is not finished."""
        if not self._is_over(request.request_id):
            return None
        if Snapshot.current(self.out) is None:
            return ()
        taskset, mark = TaskSet.open(self.out), f"{REQUEST_MARK}{request.request_id}"
        return [task for name in taskset.entries() if name.endswith(mark) for task in taskset.ids_of(name)]

    def asked(self, after: int) -> list[TaskRequest]:
        """Return the requests of this folder with a number above ``after``, in order."""
        found = [from_json(TaskRequest, path.read_bytes()) for path in sorted(self.folder.glob("*.json"))]
        return sorted((request for request in found if request.number > after), key=lambda request: request.number)

    def close(self) -> None:
        """Stop; a running process publishes its finished tasks. May be called twice; returns within a minute."""
        self._stop.set()
        self._thread.join(timeout=2 * STOP_GRACE_S)

    def _is_over(self, request_id: str) -> bool:
        return request_id in self._abandoned or self._code(request_id).exists()

    def _code(self, request_id: str) -> Path:
        return self.folder / f"{request_id}.code"

    def _log(self, request_id: str) -> Path:
        return self.folder / f"{request_id}.log"

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                request_id = self._queue.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            try:
                self._complete(request_id)
            except Exception as error:  # for example a full disk; nobody may wait for this request any longer
                self._abandoned.add(request_id)
                self._report(
                    f"A request for tasks was given up ({error}); a run that goes on with --resume makes it again."
                )

    def _complete(self, request_id: str) -> None:
        """Run one request until it ends or this runner is closed; a killed process is started a second time."""
        code = self._run(request_id)
        if code not in _FINAL_CODES and not self._stop.is_set():
            logger.warning("request retried", extra={"request": request_id, "code": code})
            code = self._run(request_id)
        if self._stop.is_set():
            return
        replace_file(self._code(request_id), str(code).encode())
        if code not in (OK, PARTIAL):
            how = f"took more than {self.timeout_s:.0f} s" if code == TIMED_OUT else f"ended with exit code {code}"
            self._report(f"A request for tasks {how}; what came of it, and why, is in {self._log(request_id)}.")

    def _run(self, request_id: str) -> int:
        command = [
            sys.executable,
            "-I",
            "-S",
            str(SUPERVISOR),
            str(STOP_GRACE_S),
            *self._program,
            "generate",
            *self.options,
        ]
        command += ["--json", "--request", str(self.folder / f"{request_id}.json"), "--out", str(self.out)]
        until = time.monotonic() + self.timeout_s
        while is_locked(self.out / ".lock") and time.monotonic() < until and not self._stop.is_set():
            time.sleep(_POLL_S)  # another process writes the set: a refresh, or the process of an earlier run
        with open(self._log(request_id), "ab") as log:
            try:
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
                )
            except OSError as error:
                log.write(f"It could not be started: {error}\n".encode())
                return FAILED
            while process.poll() is None and time.monotonic() < until and not self._stop.is_set():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=_POLL_S)
            if process.poll() is not None:
                return process.returncode
            _end(process)
        return TIMED_OUT


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let a process publish and exit; kill it with its children if it does not."""
    assert process.stdin is not None
    process.stdin.close()  # the sign for the supervisor process to stop the command
    try:
        process.wait(timeout=STOP_GRACE_S + 10.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=STOP_GRACE_S)


class PublishedTasks:
    """The tasks of an arena, which is updated after each publication; for the curriculum's ``TaskPool``."""

    def __init__(
        self,
        out: Path,
        tasks: Callable[[], Mapping[str, Task]],
        refresh: Callable[[], object],
        left_out: Callable[[], Collection[str]] | None = None,
    ) -> None:
        """``out`` is the task set; ``refresh`` makes the arena read its snapshot; ``left_out`` returns excluded ids."""
        self._link, self._tasks, self._refresh = out / "current", tasks, refresh
        self._left_out = left_out
        self._read_snapshot = self._current_snapshot()
        self._chosen: tuple[Mapping[str, Task], Mapping[str, Task]] = {}, {}

    def __call__(self) -> Mapping[str, Task]:
        """Instance id to task; cheap while nothing is published."""
        now = self._current_snapshot()
        if now != self._read_snapshot:
            self._refresh()
            self._read_snapshot = now
        every = self._tasks()
        if self._left_out is None:
            return every
        if self._chosen[0] is not every:
            out = self._left_out()
            self._chosen = every, {name: task for name, task in every.items() if name not in out}
        return self._chosen[1]

    def _current_snapshot(self) -> str:
        return os.readlink(self._link) if self._link.is_symlink() else ""
