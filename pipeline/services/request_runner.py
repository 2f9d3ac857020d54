"""The trainer's side of requests: each one answered by ``excise generate --request`` in a process of its own.

Training goes on meanwhile; what comes is published in the set, where the arena finds it. Requests are worked on one
after the other, and are files: one that was finished is not made again after a resume, one that was cut off goes on.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from excise.datasets.snapshot import Snapshot
from excise.datasets.taskset import TaskSet
from excise.pipeline.cli.options import FAILED, OK, PARTIAL, USAGE
from excise.pipeline.run.selection import MARK
from excise.system.files import replace_file
from excise.system.locks import is_locked
from excise.trainer.curriculum.task_request import HarderTasks
from excise.trainer.engines.server_process import WARDEN
from excise.types import Task, from_json, to_json

DEADLINE_S = 6 * 3600.0
"""For one request; beyond, the process is ended, and what it had proven stays."""
GRACE_S = 30.0
"""For a process to publish what it has when it is told to stop."""
EXCISE = (sys.executable, "-m", "excise.pipeline.cli")
LATE = -1000
"""Code of a request that passed its deadline."""
_ENDED = frozenset({OK, FAILED, USAGE, PARTIAL, LATE})
_LOOK_S = 0.2


class RequestRunner:
    """Takes requests and has them made. Calling it returns at once; an equal request is made once.

    A process that makes one ends with this process, however that ends, and publishes what it has.
    """

    def __init__(
        self,
        folder: Path,
        out: Path,
        options: Sequence[str] = (),
        *,
        deadline_s: float = DEADLINE_S,
        say: Callable[[str], object] = lambda _: None,
        program: Sequence[str] = EXCISE,
    ) -> None:
        """``folder`` keeps requests and their logs; ``out`` is the task set; ``options`` go to ``excise generate``, the
        command of ``program``; ``say`` is told what went wrong.
        """
        self.folder, self.out, self.options, self.deadline_s = folder, out, tuple(options), deadline_s
        self._say, self._program = say, tuple(program)
        folder.mkdir(parents=True, exist_ok=True)
        self._queue: queue.Queue[str] = queue.Queue()
        self._known: set[str] = set()
        self._given_up: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="harder-tasks", daemon=True)
        self._thread.start()

    def __call__(self, request: HarderTasks) -> None:
        """Ask for tasks."""
        request_id = request.request_id
        if request_id in self._known or self._code(request_id).exists():
            return
        self._known.add(request_id)
        path = self.folder / f"{request_id}.json"
        if not path.exists():
            replace_file(path, to_json(request, indent=2))
        self._queue.put(request_id)

    def codes(self) -> dict[str, int]:
        """Exit code of each finished request, see ``excise generate``; negative: killed, or :data:`LATE`."""
        return {path.name.removesuffix(".code"): int(path.read_text()) for path in sorted(self.folder.glob("*.code"))}

    def made(self, request: HarderTasks) -> Collection[str] | None:
        """Ids of the tasks of a request that have been published; ``None`` while more may come."""
        if not self._is_over(request.request_id):
            return None
        if Snapshot.current(self.out) is None:
            return ()
        entries = TaskSet.open(self.out).manifest.repos.items()
        return [task for name, entry in entries if name.endswith(f"{MARK}{request.request_id}") for task in entry.tasks]

    def asked(self, after: int) -> list[HarderTasks]:
        """The requests of this folder with a number above this one, in order."""
        found = [from_json(HarderTasks, path.read_bytes()) for path in sorted(self.folder.glob("*.json"))]
        return sorted((request for request in found if request.number > after), key=lambda request: request.number)

    @property
    def is_busy(self) -> bool:
        """Something is being made, or waits for it."""
        return any(not self._is_over(request_id) for request_id in self._known) and self._thread.is_alive()

    def close(self) -> None:
        """Stop; a process under way publishes what it has. Safe to call twice; returns within a minute."""
        self._stop.set()
        self._thread.join(timeout=2 * GRACE_S)

    def _is_over(self, request_id: str) -> bool:
        return request_id in self._given_up or self._code(request_id).exists()

    def _code(self, request_id: str) -> Path:
        return self.folder / f"{request_id}.code"

    def _log(self, request_id: str) -> Path:
        return self.folder / f"{request_id}.log"

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                request_id = self._queue.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            try:
                self._make(request_id)
            except Exception as error:  # a full disk, say: whatever it is, nobody may wait for this request any longer
                self._given_up.add(request_id)
                self._say(
                    f"A request for tasks was given up ({error}); a run that goes on with --resume makes it again."
                )

    def _make(self, request_id: str) -> None:
        """One request, to its end or our own; once more, if its process was killed."""
        code = self._run(request_id)
        if code not in _ENDED and not self._stop.is_set():
            code = self._run(request_id)
        if self._stop.is_set():
            return
        replace_file(self._code(request_id), str(code).encode())
        if code not in (OK, PARTIAL):
            how = f"took more than {self.deadline_s:.0f} s" if code == LATE else f"ended with exit code {code}"
            self._say(f"A request for tasks {how}; what came of it, and why, is in {self._log(request_id)}.")

    def _run(self, request_id: str) -> int:
        command = [sys.executable, "-I", "-S", str(WARDEN), str(GRACE_S), *self._program, "generate", *self.options]
        command += ["--json", "--request", str(self.folder / f"{request_id}.json"), "--out", str(self.out)]
        until = time.monotonic() + self.deadline_s
        while is_locked(self.out / ".lock") and time.monotonic() < until and not self._stop.is_set():
            time.sleep(_LOOK_S)  # somebody else adds to the set: a refresh, or what a run before left behind
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
                    process.wait(timeout=_LOOK_S)
            if process.poll() is not None:
                return process.returncode
            _end(process)
        return LATE


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let a process publish and go, or make it and all that it started."""
    assert process.stdin is not None
    process.stdin.close()  # the warden's sign
    try:
        process.wait(timeout=GRACE_S + 10.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=GRACE_S)


class PublishedTasks:
    """The tasks of an arena, those published since the last call included (for the curriculum's ``TaskPool``)."""

    def __init__(
        self,
        out: Path,
        tasks: Callable[[], Mapping[str, Task]],
        refresh: Callable[[], object],
        left_out: Callable[[], Collection[str]] | None = None,
    ) -> None:
        """``out`` is the task set; ``refresh`` lets the arena take in its current snapshot."""
        self._link, self._tasks, self._refresh = out / "current", tasks, refresh
        self._left_out = left_out
        self._seen = self._snapshot()
        self._chosen: tuple[Mapping[str, Task], Mapping[str, Task]] = {}, {}

    def __call__(self) -> Mapping[str, Task]:
        """All of them; cheap while nothing was published."""
        now = self._snapshot()
        if now != self._seen:
            self._refresh()
            self._seen = now
        every = self._tasks()
        if self._left_out is None:
            return every
        if self._chosen[0] is not every:
            out = self._left_out()
            self._chosen = every, {name: task for name, task in every.items() if name not in out}
        return self._chosen[1]

    def _snapshot(self) -> str:
        return os.readlink(self._link) if self._link.is_symlink() else ""
