"""The bubblewrap sandbox: no daemon, no image, a few milliseconds.

A session is one :mod:`excise.envs.bubblewrap.holder` process that owns the mounts; every command is one ``bwrap``
in it, with fresh process, network, IPC and user namespaces, no capabilities and a read-only root.
Started by root, commands run under an unprivileged uid of the session's own (bubblewrap started by root
alone would leave ``/proc/sys`` writable). The kernel is shared with the host: this is not a virtual machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from excise.envs.bubblewrap.cgroups import writable_groups
from excise.envs.bubblewrap.holder_groups import remove_groups
from excise.envs.bubblewrap.rootfs import rootfs_arguments
from excise.errors import SandboxError
from excise.protocols import Capabilities, Completed, Mount, Policy, Session
from excise.types import Worker

HOLDER = Path(__file__).resolve().parent / "holder.py"
START_TIMEOUT_S = 60.0
GRACE_S = 10.0
SWEEP_AFTER_S = 86400.0
"""No session lasts longer than a day."""


class BubblewrapSession:
    """One open sandbox; see :class:`excise.protocols.Session`."""

    def __init__(self, config: dict[str, Any], policy: Policy, edits: Mapping[str, bytes | None]) -> None:
        self.policy = policy
        self._stage = Path(tempfile.mkdtemp(prefix="excise-stage-"))
        self._edits = Path(tempfile.mkdtemp(prefix="excise-edits-"))
        self._stage.chmod(0o711)
        self.out = Path(os.devnull)
        self._out = -1
        self._groups: list[str] = []
        self._closed = False
        self._control, theirs = socket.socketpair()
        command = [sys.executable, "-I", "-S", str(HOLDER), str(theirs.fileno())]
        self._holder = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True, env={}
        )
        theirs.close()
        try:
            config |= {"stage": str(self._stage), "edits_dir": str(self._edits)}
            config["edits"] = {path: self._edit(number, data) for number, (path, data) in enumerate(edits.items())}
            self._send(config)
            self._groups = list(self._receive(START_TIMEOUT_S)["groups"])
            self.out = Path(f"/proc/self/fd/{self._out}")  # it lies in the holder's namespace: no path leads there
        except BaseException:
            self.close()
            raise

    def _edit(self, number: int, data: bytes | None) -> dict[str, object]:
        if data is None:
            return {"delete": True}
        file = self._edits / str(number)
        file.write_bytes(data)
        return {"file": str(file)}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

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
                more, fds, _, _ = socket.recv_fds(self._control, 1 << 20, 1)
                self._out = fds[0] if fds else self._out
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
        if self._closed:
            raise SandboxError("The sandbox is closed.")
        began = time.monotonic()
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
        try:
            self._send({"exec": {"argv": list(argv), "cwd": cwd, "env": dict(env or {})}}, theirs)
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        with _Pump(ours, stdin, self.policy.output_bytes) as pump:
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

    def _wait(self, pump: _Pump, deadline: float) -> bool:
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

    def put(self, path: str, data: bytes | None) -> None:
        """Write or delete a file, from inside, so that no link can lead out."""
        script = 'rm -f -- "$1"' if data is None else 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1"'
        done = self.exec(["/bin/sh", "-c", script, "sh", path], timeout_s=60, stdin=data or b"", cwd="/")
        if done.rc != 0:
            raise SandboxError(f"{path} cannot be written: {done.stderr.decode(errors='replace').strip()}")

    def get(self, path: str) -> bytes:
        """Read a file, from inside."""
        done = self.exec(["/bin/cat", "--", path], timeout_s=60, cwd="/")
        if done.rc != 0:
            raise FileNotFoundError(path)
        return done.stdout

    def snapshot(self, target: str, into: Path) -> None:
        """Copy what was written to the mount ``target`` into ``into``, as a layer."""
        into.mkdir(parents=True, exist_ok=True)
        self._send({"snapshot": target, "into": str(into)})
        self._receive(600.0)

    def close(self) -> None:
        """End the holder, and with it every process and mount."""
        if self._closed:
            return
        self._closed = True
        self._control.close()
        if self._out >= 0:
            os.close(self._out)
        try:
            self._holder.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.wait()
        remove_groups(self._groups)  # gone already, unless somebody killed the holder
        for folder in (self._stage, self._edits):
            shutil.rmtree(folder, ignore_errors=True)


class _Pump:
    """The three streams of one command: feeds stdin, keeps the first bytes of the outputs, reads the rest away."""

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

    def __enter__(self) -> _Pump:
        return self

    def __exit__(self, *exc: object) -> None:
        for fd in [key.fd for key in self._selector.get_map().values()]:
            self._drop(fd)
        self._selector.close()

    def turn(self, control: socket.socket, timeout_s: float) -> bool:
        """Move what can be moved now; whether ``control`` has something to say."""
        self._selector.register(control, selectors.EVENT_READ)
        try:
            ready = self._selector.select(max(0.0, timeout_s))
        finally:
            self._selector.unregister(control)
        done = False
        for key, _ in ready:
            if key.fileobj is control:
                done = True
            elif key.fd == self._into:
                self._write()
            elif not self._read(key.fd):
                self._drop(key.fd)
        return done

    def rest(self) -> tuple[bytes, bytes]:
        """What was kept of stdout and of stderr; every writer is dead by now."""
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


class BubblewrapSandbox:
    """The default backend; see :class:`excise.protocols.Sandbox`."""

    name = "bubblewrap"

    def capabilities(self) -> Capabilities:
        """What bubblewrap can enforce here; tried out once per process."""
        return _probe()

    def open(
        self,
        mounts: Sequence[Mount],
        policy: Policy,
        *,
        env: Mapping[str, str],
        cwd: str = "/testbed",
        edits: Mapping[str, bytes | None] | None = None,
    ) -> Session:
        """Open a session; raises :class:`SandboxError` if a limit of ``policy`` cannot be enforced here."""
        bwrap, prlimit = shutil.which("bwrap"), shutil.which("prlimit")
        if bwrap is None or prlimit is None:
            raise SandboxError("bubblewrap is not installed. Install it: apt-get install bubblewrap util-linux")
        config: dict[str, Any] = {
            "bwrap": bwrap,
            "prlimit": prlimit,
            "mounts": [{"target": m.target, "layers": list(m.layers), "writable": m.writable} for m in mounts],
            "policy": {name: getattr(policy, name) for name in Policy.__slots__},
            "env": dict(env),
            "cwd": cwd,
            "rootfs": rootfs_arguments(policy.network),
            "cgroups": writable_groups(),
        }
        return BubblewrapSession(config, policy, edits or {})


@cache
def _probe() -> Capabilities:
    if shutil.which("bwrap") is None:
        return Capabilities(available=False, detail="bwrap is missing: apt-get install bubblewrap")
    sweep()
    sandbox = BubblewrapSandbox()
    try:
        with sandbox.open([Mount(target="/testbed", layers=(), writable=True)], Policy(), env={}) as session:
            done = session.exec(
                ["/bin/sh", "-c", "touch /testbed/x && ls /sys/class/net 2>/dev/null; cat /proc/net/dev"], timeout_s=20
            )
    except SandboxError as error:
        return Capabilities(available=False, detail=str(error))
    groups = writable_groups()
    how = "control groups" if groups else "rlimits and a watch on memory"
    lines = [line for line in done.stdout.decode().splitlines() if ":" in line and not line.strip().startswith("lo:")]
    return Capabilities(
        available=done.rc == 0,
        detail=done.stderr.decode().strip() if done.rc else f"limits by {how}",
        network_off=not lines,
        memory=True,
        pids=True,
        disk=True,
        separate_uid=os.geteuid() == 0,
        snapshot=True,
    )


def sweep() -> int:
    """Remove what runs left behind whose every process was killed at once; returns how many folders and groups.

    Their mounts and processes are gone already. Control groups are only removed, never emptied: a live one is not ours.
    """
    count = 0
    for group in (g for root in {*writable_groups().values()} for g in Path(root).glob("excise-*")):
        if not Path(f"/proc/{group.name.rpartition('-')[2]}").exists():
            with contextlib.suppress(OSError):
                group.rmdir()
                count += 1
    for folder in (f for kind in ("stage", "edits") for f in Path(tempfile.gettempdir()).glob(f"excise-{kind}-*")):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > SWEEP_AFTER_S and folder.stat().st_uid == os.geteuid():
                shutil.rmtree(folder, ignore_errors=True)
                count += 1
    return count
