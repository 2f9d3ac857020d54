"""Supervisor process: runs a command and kills all of its processes when the parent dies. Standard library only.

Arguments: grace period in seconds, then the command. It is started in a session of its own, with a pipe from its
parent as standard input. Nothing is written to the pipe; its end means that the parent has closed it or died. The
command then gets SIGTERM and the grace period to exit. Afterwards, and whenever the command exits, all processes that
descend from it are killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL_MS = 200
"""Milliseconds between checks whether the command has ended."""


def main(grace_s: float, command: list[str]) -> int:
    """Run ``command`` until it exits or standard input ends; returns its exit code."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def die_with_parent() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    # No thread runs here, so a function between fork and exec is safe.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)  # noqa: PLW1509
    poll = select.poll()
    poll.register(0, select.POLLHUP | select.POLLIN)
    try:
        while child.poll() is None:
            if poll.poll(POLL_MS) and not os.read(0, 1):
                break
        if child.poll() is None and grace_s:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(grace_s)
    finally:
        kill_all()
    with contextlib.suppress(subprocess.TimeoutExpired):
        return child.wait(10)
    return 1


def kill_all() -> None:
    """Kill all descendants until none is left (as a subreaper, this process inherits orphans)."""
    for _ in range(100):
        found = descendants(os.getpid())
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not found:
            return
        select.select([], [], [], 0.05)


def descendants(root: int) -> list[int]:
    """Process ids of all live descendants of a process."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, IndexError):
            if name.isdigit():
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
                if fields[0] != "Z":
                    children.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    below = [root]
    while below:
        below = [pid for parent in below for pid in children.get(parent, [])]
        found += below
    return found


if __name__ == "__main__":
    code = main(float(sys.argv[1]), sys.argv[2:])
    if code < 0:  # killed by a signal: end by the same signal
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
