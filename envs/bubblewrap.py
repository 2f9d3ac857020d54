"""The bubblewrap sandbox: no daemon, no image, a few milliseconds.

A session is one :mod:`excise.envs.holder` process that owns the mounts; every command is one ``bwrap``
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

from excise.envs.cgroups import writable_groups
from excise.envs.rootfs import rootfs_arguments
from excise.errors import SandboxError
from excise.protocols import Capabilities, Completed, Mount, Policy, Session
from excise.types import Worker

HOLDER = Path(__file__).resolve().parent / "holder.py"
START_TIMEOUT_S = 60.0
GRACE_S = 10.0


class BubblewrapSession:
    """One open sandbox; see :class:`excise.protocols.Session`."""

    def __init__(self, config: dict[str, Any], policy: Policy, edits: Mapping[str, bytes | None]) -> None:
        self.policy = policy
        self._stage = Path(tempfile.mkdtemp(prefix="excise-stage-"))
        self._edits = Path(tempfile.mkdtemp(prefix="excise-edits-"))
        self.out = Path(tempfile.mkdtemp(prefix="excise-out-"))
        self._stage.chmod(0o711)
        self.out.chmod(0o777)
        self._control, theirs = socket.socketpair()
        self._closed = False
        command = [sys.executable, "-I", "-S", str(HOLDER), str(theirs.fileno())]
        self._holder = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True, env={}
        )
        theirs.close()
        config |= {"stage": str(self._stage), "out": str(self.out), "edits_dir": str(self._edits)}
        config["edits"] = {path: self._edit(number, data) for number, (path, data) in enumerate(edits.items())}
        try:
            self._send(config)
            self._receive(START_TIMEOUT_S)
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
                more = self._control.recv(1 << 20)
                if not more:
                    raise SandboxError("The sandbox process ended unexpectedly; was it killed, or is memory short?")
                data += more
        except TimeoutError:
            raise SandboxError(f"The sandbox did not answer within {timeout_s:.0f} s.") from None
        except OSError as error:
            raise SandboxError(f"The sandbox process is gone ({error}).") from error
        reply: dict[str, Any] = json.loads(data)
        if "error" in reply:
            raise SandboxError(f"The sandbox could not be set up: {reply['error']}. Run `excise doctor`.")
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
        stdout, stderr, timed_out, reply = self._pump(ours, stdin, began + timeout_s)
        worker = Worker.OK
        if timed_out:
            worker = Worker.TIMEOUT
        elif reply["oom"]:
            worker = Worker.OOM
        elif reply["killed"]:
            worker = Worker.KILLED
        if reply["rc"] == 127 and stderr.startswith(b"excise: cannot start"):
            raise SandboxError(stderr.decode(errors="replace").strip())
        if reply["rc"] == 1 and stderr.startswith(b"bwrap: "):
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

    def _pump(self, fds: Sequence[int], stdin: bytes, deadline: float) -> tuple[bytes, bytes, bool, dict[str, Any]]:
        """Feed stdin, collect capped output, until the holder reports the end."""
        into, *outputs = fds
        kept: dict[int, bytearray] = {fd: bytearray() for fd in outputs}
        timed_out = False
        with selectors.DefaultSelector() as selector:
            os.set_blocking(into, False)
            selector.register(into, selectors.EVENT_WRITE)
            for fd in (*outputs, self._control.fileno()):
                selector.register(fd, selectors.EVENT_READ)
            pending = memoryview(stdin)
            open_fds = set(fds)
            done = False
            while not done:
                remaining = deadline - time.monotonic()
                if remaining <= 0 and not timed_out:
                    timed_out = True
                    deadline = time.monotonic() + GRACE_S
                    self._send({"kill": True})
                    continue
                if remaining <= 0:
                    self.close()
                    raise SandboxError("The sandbox did not stop when it was killed.")
                for key, _ in selector.select(remaining):
                    fd = key.fd
                    if fd == self._control.fileno():
                        done = True
                    elif fd == into:
                        try:
                            pending = pending[os.write(fd, pending[:65536]) if pending else 0 :]
                        except BrokenPipeError:
                            pending = pending[:0]
                        if not pending:
                            self._drop(selector, fd, open_fds)
                    elif not self._read(fd, kept[fd]):
                        self._drop(selector, fd, open_fds)
            for fd in outputs:
                while fd in open_fds and self._read(fd, kept[fd]):
                    pass
            for fd in open_fds:
                os.close(fd)
        return bytes(kept[outputs[0]]), bytes(kept[outputs[1]]), timed_out, self._receive(GRACE_S)

    def _read(self, fd: int, kept: bytearray) -> bool:
        data = os.read(fd, 1 << 16)
        kept += data[: max(0, self.policy.output_bytes - len(kept))]
        return bool(data)

    @staticmethod
    def _drop(selector: selectors.BaseSelector, fd: int, open_fds: set[int]) -> None:
        selector.unregister(fd)
        os.close(fd)
        open_fds.discard(fd)

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
        try:
            self._holder.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._holder.kill()
            self._holder.wait()
        for folder in (self._stage, self._edits, self.out):
            shutil.rmtree(folder, ignore_errors=True)


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
    sandbox = BubblewrapSandbox()
    try:
        with sandbox.open([Mount(target="/testbed", layers=(), writable=True)], Policy(), env={}) as session:
            done = session.exec(["/bin/sh", "-c", "touch /testbed/x && ls /sys/class/net 2>/dev/null; cat /proc/net/dev"], timeout_s=20)
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
    """Remove folders that killed runs left behind (their mounts are gone already); returns how many."""
    count = 0
    for folder in Path(tempfile.gettempdir()).glob("excise-*-*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > 86400 and folder.stat().st_uid == os.geteuid():
                shutil.rmtree(folder, ignore_errors=True)
                count += 1
    return count
