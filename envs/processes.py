"""Which process left something behind: a pid alone may be somebody else's by now. Standard library only."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile


def start_time(pid: int) -> str:
    """When a process started, in clock ticks since boot; empty if there is none. With the pid it names a process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def own_name() -> str:
    """This process, ``PID-STARTED``: a name that no other process of this boot ever has."""
    return f"{os.getpid()}-{start_time(os.getpid())}"


def is_alive(name: str) -> bool:
    """Whether the process of a name (:func:`own_name`) is still there."""
    pid, _, started = name.partition("-")
    return pid.isdigit() and start_time(int(pid)) == started


def own_temporary(kind: str, folder: str | None = None) -> str:
    """A new temporary folder that says whose it is, for :func:`sweep_temporary`."""
    return tempfile.mkdtemp(prefix=f"excise-{kind}-{own_name()}-", dir=folder)


def sweep_temporary(kind: str, within: str | None = None) -> int:
    """Remove this user's temporary folders of a kind whose processes are gone; returns how many.

    ``within``: the folder that they were made in, where that was not the usual one.
    """
    count = 0
    for folder in glob.glob(f"{within or tempfile.gettempdir()}/excise-{kind}-*-*-*"):
        owner = os.path.basename(folder).removeprefix(f"excise-{kind}-").rpartition("-")[0]
        with contextlib.suppress(OSError):
            if os.stat(folder).st_uid == os.geteuid() and not is_alive(owner):
                shutil.rmtree(folder, ignore_errors=True)
                count += 1
    return count
