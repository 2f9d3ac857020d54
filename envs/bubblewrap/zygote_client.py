"""Client of the zygote process, of which a worker process starts one per user when it opens its first sandbox."""

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
from excise.envs.bubblewrap.control_groups import writable_groups
from excise.envs.sandbox.rootfs import rootfs_plan
from excise.errors import SandboxError

ZYGOTE = Path(__file__).resolve().parent / "zygote.py"
START_TIMEOUT_S = 60.0


class Zygote:
    """One running zygote process."""

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

    def prepare(self) -> None:
        """Send the plan of the root file system and wait until it is built. Raises :class:`SandboxError`."""
        plan = rootfs_plan() | {"temporary": tempfile.gettempdir(), "cgroups": writable_groups()}
        try:
            self.control.settimeout(START_TIMEOUT_S)
            self.control.sendall(json.dumps(plan).encode() + b"\n")
            with self.control.makefile("rb") as lines:
                reply = json.loads(lines.readline() or b'{"error": "its first process ended"}')
        except OSError as error:
            reply = {"error": str(error)}
        if "error" in reply:
            self.stop()
            raise SandboxError(f"No sandbox can be made: {reply['error']}. Run `excise doctor`.")
        self.base = str(reply["base"])
        self.control.settimeout(None)

    def stop(self) -> None:
        """Stop the process. Commands in open sandboxes may be killed."""
        self.control.close()
        if self.owner[0] == os.getpid():
            try:
                self.process.wait(10.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class _Current:
    """The zygote of this process, if it has one, and the lock that guards it."""

    lock = threading.Lock()
    zygote: Zygote | None = None


def request_supervisor(theirs: socket.socket) -> None:
    """Pass one end of a socket pair to a new supervisor. Raises :class:`SandboxError`."""
    with _Current.lock:
        for last in (False, True):
            try:
                socket.send_fds(_running_zygote().control, [b"+"], [theirs.fileno()])
                return
            except OSError as error:  # it was killed: start another one
                stop()
                if last:
                    raise SandboxError(f"The process that starts sandboxes is gone ({error}).") from error


def _running_zygote() -> Zygote:
    owner = (os.getpid(), os.geteuid(), tempfile.gettempdir())
    if _Current.zygote is None or _Current.zygote.owner != owner:
        stop()
        fresh = Zygote()
        fresh.prepare()
        _Current.zygote = fresh
    return _Current.zygote


def stop() -> None:
    """Stop this process's zygote; the next sandbox starts another one."""
    if _Current.zygote is not None:
        _Current.zygote.stop()
        _Current.zygote = None


def _release_after_fork() -> None:
    """In a forked child, close the socket to the parent's zygote, which must notice when the parent ends."""
    _Current.lock = threading.Lock()
    if _Current.zygote is not None:
        _Current.zygote.control.close()
        _Current.zygote = None


atexit.register(stop)
os.register_at_fork(after_in_child=_release_after_fork)
