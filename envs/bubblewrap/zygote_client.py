"""The worker's side of the zygote: started when the first sandbox is opened, one per process and user."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import excise
from excise.envs.bubblewrap.cgroups import writable_groups
from excise.envs.sandbox.rootfs import rootfs_plan
from excise.errors import SandboxError

ZYGOTE = Path(__file__).resolve().parent / "zygote.py"
START_TIMEOUT_S = 60.0


class Spawner:
    """One running zygote."""

    def __init__(self) -> None:
        self.owner = (os.getpid(), os.geteuid(), tempfile.gettempdir())
        self.control, theirs = socket.socketpair()
        package = Path(excise.__file__).resolve().parent
        command = [sys.executable, "-I", "-S", str(ZYGOTE), str(theirs.fileno()), str(package)]
        with theirs:
            self.process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True, env={}
            )
        self.base = ""

    def begin(self) -> None:
        """Tell it what to build, and wait until it has. Raises :class:`SandboxError`."""
        plan = rootfs_plan() | {"temporary": tempfile.gettempdir(), "cgroups": writable_groups()}
        try:
            self.control.settimeout(START_TIMEOUT_S)
            self.control.sendall(json.dumps(plan).encode() + b"\n")
            with self.control.makefile("rb") as lines:
                reply = json.loads(lines.readline() or b'{"error": "its first process ended"}')
        except OSError as error:
            reply = {"error": str(error)}
        if "error" in reply:
            self.end()
            raise SandboxError(f"No sandbox can be made: {reply['error']}. Run `excise doctor`.")
        self.base = str(reply["base"])
        self.control.settimeout(None)

    def end(self) -> None:
        """Let it go. What still runs in open sandboxes may end with it."""
        self.control.close()
        if self.owner[0] == os.getpid():
            try:
                self.process.wait(10.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class _Current:
    """The zygote of this process, if it has one."""

    lock = threading.Lock()
    spawner: Spawner | None = None


def hand_over(theirs: socket.socket) -> None:
    """Have a holder forked for the other end of ``theirs``. Raises :class:`SandboxError`."""
    with _Current.lock:
        for last in (False, True):
            try:
                socket.send_fds(_living().control, [b"+"], [theirs.fileno()])
                return
            except OSError as error:  # somebody killed it: the next one is as good
                stop()
                if last:
                    raise SandboxError(f"The process that starts sandboxes is gone ({error}).") from error


def _living() -> Spawner:
    owner = (os.getpid(), os.geteuid(), tempfile.gettempdir())
    if _Current.spawner is None or _Current.spawner.owner != owner:
        stop()
        fresh = Spawner()
        fresh.begin()
        _Current.spawner = fresh
    return _Current.spawner


def base_folder() -> str:
    """The folder of this process's zygote; empty if it has none."""
    return _Current.spawner.base if _Current.spawner is not None else ""


def stop() -> None:
    """End this process's zygote; the next sandbox starts another."""
    if _Current.spawner is not None:
        _Current.spawner.end()
        _Current.spawner = None


def _forget() -> None:
    """In a forked child: the zygote is the parent's, and must see the end of the parent alone."""
    _Current.lock = threading.Lock()
    if _Current.spawner is not None:
        _Current.spawner.control.close()
        _Current.spawner = None


atexit.register(stop)
os.register_at_fork(after_in_child=_forget)
