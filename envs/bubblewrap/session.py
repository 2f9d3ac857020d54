"""One open bubblewrap sandbox, seen from the worker: requests over a socket to the process that holds it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from excise.envs.bubblewrap.control_groups import remove_groups
from excise.envs.bubblewrap.pump import Pump
from excise.envs.bubblewrap.zygote_client import hand_over
from excise.envs.sandbox.session_base import CommonSession
from excise.errors import SandboxError
from excise.protocols import Completed, Policy
from excise.system.deadline import time_limit
from excise.types import Worker

START_TIMEOUT_S = 60.0
GRACE_S = 10.0


class BubblewrapSession(CommonSession):
    """One open sandbox; see :class:`excise.protocols.Session`."""

    def __init__(self, config: dict[str, Any], policy: Policy, edits: Mapping[str, bytes | None]) -> None:
        self.policy = policy
        self.out = Path(os.devnull)
        self.holder = 0
        self.groups: list[str] = []
        self._fds: list[int] = []
        self._closed = False
        self._using = threading.RLock()
        self._control, theirs = socket.socketpair()
        try:
            with theirs:
                hand_over(theirs)
            sizes = [(path, None if data is None else len(data)) for path, data in edits.items()]
            self._send(config | {"edits": sizes})
            for data in edits.values():
                self._control.sendall(data or b"")
            ready = self._receive(START_TIMEOUT_S)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise SandboxError(f"The sandbox process is gone ({error}).") from error
            raise
        self.holder, self.groups = int(ready["pid"]), list(ready["groups"])
        self.out = Path(f"/proc/self/fd/{self._fds[0]}")  # it lies in the holder's namespace: no path leads there

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
            raise SandboxError(f"The sandbox failed: {reply['error']}. Run `excise doctor`.")
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
        """Run a command; everything it started is dead when this returns."""
        with time_limit(timeout_s) as limit_s, self._in_use():
            return self._run(argv, limit_s, stdin, {"cwd": cwd, "env": dict(env or {})})

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Until its end, :meth:`close` in another thread leaves what is used here."""
        with self._using:
            if self._closed:
                raise SandboxError("The sandbox is closed.")
            yield

    def _run(self, argv: Sequence[str], timeout_s: float, stdin: bytes, options: Mapping[str, object]) -> Completed:
        began = time.monotonic()
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
        try:
            self._send({"exec": {"argv": list(argv), **options}}, theirs)
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        with Pump(ours, stdin, self.policy.output_bytes) as pump:
            timed_out = self._wait(pump, began + timeout_s)
            reply = self._receive(GRACE_S)
            stdout, stderr = pump.rest()
        worker = Worker.OK
        if timed_out:
            worker = Worker.TIMEOUT
        elif reply["oom"]:
            worker = Worker.OOM
        elif reply["killed"]:
            worker = Worker.KILLED
        if reply["rc"] == 127 and stderr.startswith(b"excise: cannot start"):
            raise SandboxError(stderr.decode(errors="replace").strip())
        if reply["rc"] == 1 and stderr.startswith(b"bwrap: execvp "):
            reply["rc"] = 127
        elif reply["rc"] == 1 and stderr.startswith(b"bwrap: "):
            raise SandboxError(f"bubblewrap: {stderr.decode(errors='replace').strip()}. Run `excise doctor`.")
        return Completed(
            worker=worker,
            rc=int(reply["rc"]),
            stdout=stdout,
            stderr=stderr,
            wall_s=time.monotonic() - began,
            cpu_s=float(reply["cpu_s"]),
            peak_bytes=int(reply["peak_bytes"]),
        )

    def _wait(self, pump: Pump, deadline: float) -> bool:
        """Move the streams until the holder reports the end; whether the command had to be killed."""
        timed_out = False
        while not pump.turn(self._control, deadline - time.monotonic()):
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
        """Copy what was written to the mount ``target`` into ``into``, as a layer."""
        into.mkdir(parents=True, exist_ok=True)
        with self._in_use():
            self._send({"snapshot": target, "into": str(into)})
            self._receive(600.0)

    def close(self) -> None:
        """End the holder, and with it every process and mount."""
        if self._closed:
            return
        self._closed = True
        self._wait_for_end()
        ended = self._using.acquire(timeout=GRACE_S)  # whoever waits for a command in another thread wakes up first
        self._control.close()
        if ended:
            self._using.release()
        remove_groups(self.groups)  # gone already, unless somebody killed the holder
        for fd in self._fds:
            os.close(fd)
        super().close()

    def _wait_for_end(self) -> None:
        """Tell the holder to go, and wait until it has: its end of the socket closes last."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
            self._control.settimeout(GRACE_S)
            while self._control.recv(1 << 16):
                pass
            return
        if len(self._fds) > 1:  # known by its descriptor: its number may be somebody else's by now
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fds[1], signal.SIGKILL)
            select.select([self._fds[1]], [], [], GRACE_S)
