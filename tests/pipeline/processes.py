"""Helpers that start the command line, list its processes and kill them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ZYGOTE = b"zygote.py"


@contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """``excise`` in a process group of its own; whatever is left of it is killed afterwards."""
    command = [sys.executable, "-m", "excise.pipeline.cli", *map(str, arguments)]
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job, and a child would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        for pid in [process.pid, *descendants(process.pid)]:
            kill(pid)
        process.communicate()


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def parents() -> dict[int, int]:
    """Every running process with its parent."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state != "Z":
                found[int(entry.name)] = int(parent)
    return found


def descendants(pid: int) -> list[int]:
    """Descendants of a process."""
    tree, found, todo = parents(), [], [pid]
    while todo:
        below = [child for child, parent in tree.items() if parent == todo[0]]
        todo = todo[1:] + below
        found += below
    return found


def workers_in_sandboxes(pid: int) -> list[int]:
    """Worker processes that have a sandbox open right now: a process forked from their zygote."""
    tree = parents()
    zygotes = [p for p in descendants(pid) if ZYGOTE in command_line(p) and ZYGOTE not in command_line(tree.get(p, 0))]
    return list({tree[zygote]: None for zygote in zygotes if zygote in tree.values() and tree[zygote] != pid})


def command_line(pid: int) -> bytes:
    """The command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_for(condition: Callable[[], object], seconds: float = 120.0) -> bool:
    """Wait until the condition holds, and return whether it did in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False
