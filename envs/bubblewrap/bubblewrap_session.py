"""The worker's side of an open bubblewrap sandbox: sends requests over a socket to the supervisor process."""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from excise.envs.bubblewrap.control_groups import remove_groups
from excise.envs.bubblewrap.zygote_client import request_supervisor
from excise.envs.sandbox.session_base import SessionBase
from excise.errors import SandboxError
from excise.protocols import Completed, Policy
from excise.system.deadline import time_limit
from excise.system.job_costs import count_command
from excise.types import WorkerOutcome

START_TIMEOUT_S = 60.0
"""Seconds to wait for a supervisor to build the mounts."""
GRACE_S = 10.0
"""Seconds to wait for a supervisor after its command has ended or was killed."""


class BubblewrapSession(SessionBase):
    """One open sandbox; see :class:`excise.protocols.Session`."""

    def __init__(self, config: dict[str, Any], policy: Policy, edits: Mapping[str, bytes | None]) -> None:
        self.policy = policy
        self.out = Path(os.devnull)
        self.supervisor_pid = 0
        self.groups: list[str] = []
        self._fds: list[int] = []
        """A pidfd of the supervisor, and the folder of results."""
        self._closed = False
        self._using = threading.RLock()
        self._control, theirs = socket.socketpair()
        try:
            with theirs:
                request_supervisor(theirs)
            self._send_edits(config, "edits", edits)
            ready = self._receive(START_TIMEOUT_S)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise SandboxError(f"The sandbox process is gone ({error}).") from error
            raise
        self.supervisor_pid, self.groups = int(ready["pid"]), list(ready["groups"])
        self.start_cpu_s = float(ready["cpu_s"])
        self._show_results()

    def _send_edits(self, message: dict[str, Any], key: str, edits: Mapping[str, bytes | None]) -> None:
        """Send a message with the edits' paths and sizes, and then their contents. Raises :class:`SandboxError`."""
        self._send(message | {key: [(path, None if data is None else len(data)) for path, data in edits.items()]})
        try:
            for data in edits.values():
                self._control.sendall(data or b"")
        except OSError as error:
            raise SandboxError(f"The sandbox process is gone ({error}).") from error

    def _show_results(self) -> None:
        """Set the folder of results to the last descriptor received, if there is one."""
        if len(self._fds) > 1:
            self.out = Path(f"/proc/self/fd/{self._fds[1]}")  # no other path leads into the supervisor's namespace

    def _send(self, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
        data = json.dumps(message).encode() + b"\n"
        try:
            sent = socket.send_fds(self._control, [data], list(fds)) if fds else 0
            self._control.sendall(data[sent:])
        except OSError as error:
            raise SandboxError(f"The sandbox process is gone ({error}).") from error

    def _receive(self, timeout_s: float) -> dict[str, Any]:
        self._control.settimeout(timeout_s)
        data = b""
        try:
            while not data.endswith(b"\n"):
                more, fds, _, _ = socket.recv_fds(self._control, 1 << 20, 2)
                self._fds += fds
                if not more:
                    raise SandboxError("The sandbox process ended unexpectedly; was it killed, or is memory short?")
                data += more
        except TimeoutError:
            raise SandboxError(f"The sandbox did not answer within {timeout_s:.0f} s.") from None
        except OSError as error:
            raise SandboxError(f"The sandbox process is gone ({error}).") from error
        reply: dict[str, Any] = json.loads(data)
        if "error" in reply:
            raise SandboxError(
                f"The sandbox failed: {reply['error']}. Run `excise doctor`.", reason=reply.get("reason")
            )
        return reply

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a command; all processes that it started have ended when this returns."""
        return self.run_request({"argv": list(argv), "cwd": cwd, "env": dict(env or {})}, timeout_s, stdin)

    def run_request(self, request: Mapping[str, Any], timeout_s: float, stdin: bytes) -> Completed:
        """Run a command as the supervisor's request ``exec`` describes it; see :meth:`exec`."""
        with time_limit(timeout_s) as limit_s, self._in_use():
            return self._run(request, limit_s, stdin)

    def begin(self, edits: Mapping[str, bytes | None]) -> None:
        """Begin the next session of a sandbox with a fork server, with fresh mounts. Raises :class:`SandboxError`."""
        with self._in_use():
            self._send_edits({}, "begin", edits)
            self._receive(START_TIMEOUT_S)
            self._show_results()

    def end(self) -> bool:
        """End a session that :meth:`begin` began; return whether another one can begin."""
        with self._in_use():
            self._send({"end": True})
            reusable = self._receive(GRACE_S).get("reusable") is True
            os.close(self._fds.pop())
            return reusable

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Keep :meth:`close` in another thread from closing the descriptors that the block uses."""
        with self._using:
            if self._closed:
                raise SandboxError("The sandbox is closed.")
            yield

    def _run(self, request: Mapping[str, Any], timeout_s: float, stdin: bytes) -> Completed:
        began = time.monotonic()
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
        try:
            self._send({"exec": request}, theirs)
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        with StreamForwarder(ours, stdin, self.policy.output_bytes) as streams:
            timed_out = self._wait(streams, began + timeout_s)
            reply = self._receive(GRACE_S)
            stdout, stderr = streams.outputs()
        worker = WorkerOutcome.OK
        if timed_out:
            worker = WorkerOutcome.TIMEOUT
        elif reply["oom"]:
            worker = WorkerOutcome.OOM
        elif reply["killed"]:
            worker = WorkerOutcome.KILLED
        if reply["rc"] == 127 and stderr.startswith(b"excise: cannot start"):
            raise SandboxError(stderr.decode(errors="replace").strip())
        if reply["rc"] == 1 and stderr.startswith(b"bwrap: execvp "):
            reply["rc"] = 127
        elif reply["rc"] == 1 and stderr.startswith(b"bwrap: "):
            raise SandboxError(f"bubblewrap: {stderr.decode(errors='replace').strip()}. Run `excise doctor`.")
        wall_s = time.monotonic() - began
        count_command(request["argv"], float(reply["cpu_s"]), wall_s)
        return Completed(
            worker=worker,
            rc=int(reply["rc"]),
            stdout=stdout,
            stderr=stderr,
            wall_s=wall_s,
            cpu_s=float(reply["cpu_s"]),
            peak_bytes=int(reply["peak_bytes"]),
        )

    def _wait(self, streams: StreamForwarder, deadline: float) -> bool:
        """Forward the streams until the supervisor reports the end; return whether the command timed out."""
        timed_out = False
        while not streams.forward(self._control, deadline - time.monotonic()):
            if time.monotonic() < deadline:
                continue
            if timed_out:
                self.close()
                raise SandboxError("The sandbox did not stop when it was killed.")
            timed_out = True
            deadline = time.monotonic() + GRACE_S
            self._send({"kill": True})
        return timed_out

    def snapshot(self, target: str, into: Path) -> None:
        """Copy the changes in the mount ``target`` to the folder ``into``, as a layer."""
        into.mkdir(parents=True, exist_ok=True)
        with self._in_use():
            self._send({"snapshot": target, "into": str(into)})
            self._receive(600.0)

    def close(self) -> None:
        """End the supervisor and thereby all processes and mounts of the sandbox."""
        if self._closed:
            return
        self._closed = True
        self._wait_for_end()
        ended = self._using.acquire(timeout=GRACE_S)  # another thread that waits for a command wakes up first
        self._control.close()
        if ended:
            self._using.release()
        remove_groups(self.groups)  # left over only if the supervisor was killed
        for fd in self._fds:
            os.close(fd)
        super().close()

    def abandon(self) -> None:
        """In a forked child: close the descriptors; the sandbox goes on, as the parent's."""
        self._closed = True
        self._control.close()
        for fd in self._fds:
            os.close(fd)

    def _wait_for_end(self) -> None:
        """Ask the supervisor to end, and wait until it has: its end of the socket closes last."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
            self._control.settimeout(GRACE_S)
            while self._control.recv(1 << 16):
                pass
            return
        if self._fds:  # a pidfd, since the pid may have been reused
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fds[0], signal.SIGKILL)
            select.select([self._fds[0]], [], [], GRACE_S)


class StreamForwarder:
    """Forwards the three streams of one command: writes stdin, keeps the first bytes of each output, discards the rest.

    ``fds`` are the worker's ends of stdin, stdout and stderr; ``keep`` is the number of bytes kept of each output.
    """

    def __init__(self, fds: Sequence[int], stdin: bytes, keep: int) -> None:
        self._into, *self._outputs = fds
        self._pending = memoryview(stdin)
        self._keep = keep
        self._kept = {fd: bytearray() for fd in self._outputs}
        self._selector = selectors.DefaultSelector()
        os.set_blocking(self._into, False)
        self._selector.register(self._into, selectors.EVENT_WRITE)
        for fd in self._outputs:
            self._selector.register(fd, selectors.EVENT_READ)

    def __enter__(self) -> StreamForwarder:
        return self

    def __exit__(self, *exc: object) -> None:
        for fd in [key.fd for key in self._selector.get_map().values()]:
            self._drop(fd)
        self._selector.close()

    def forward(self, control: socket.socket, timeout_s: float) -> bool:
        """Forward what can be forwarded within the timeout; return whether ``control`` is readable."""
        self._selector.register(control, selectors.EVENT_READ)
        try:
            ready = self._selector.select(max(0.0, timeout_s))
        finally:
            self._selector.unregister(control)
        readable = False
        for key, _ in ready:
            if key.fileobj is control:
                readable = True
            elif key.fd == self._into:
                self._write()
            elif not self._read(key.fd):
                self._drop(key.fd)
        return readable

    def outputs(self) -> tuple[bytes, bytes]:
        """Read the remaining output; return stdout and stderr. To be called when every writer has ended."""
        for fd in self._outputs:
            while fd in self._selector.get_map() and self._read(fd):
                pass
        first, second = (bytes(self._kept[fd]) for fd in self._outputs)
        return first, second

    def _write(self) -> None:
        try:
            self._pending = self._pending[os.write(self._into, self._pending[:65536]) if self._pending else 0 :]
        except BrokenPipeError:
            self._pending = self._pending[:0]
        if not self._pending:
            self._drop(self._into)

    def _read(self, fd: int) -> bool:
        data = os.read(fd, 1 << 16)
        self._kept[fd] += data[: max(0, self._keep - len(self._kept[fd]))]
        return bool(data)

    def _drop(self, fd: int) -> None:
        self._selector.unregister(fd)
        os.close(fd)
