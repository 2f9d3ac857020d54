"""Names of processes that are never reused, and temporary folders that carry the name of their process.

A pid alone may belong to another process by now, so a name also has the start time. The zygote of the sandboxes
imports this module without the rest of the package: standard library only.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile


def start_time(pid: int) -> str:
    """When a process started, in clock ticks since boot; empty if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def own_process_name() -> str:
    """The name of this process, ``PID-STARTTIME``; unique until the next boot."""
    return f"{os.getpid()}-{start_time(os.getpid())}"


def is_process_alive(name: str) -> bool:
    """Whether the process with a name of :func:`own_process_name` still exists."""
    pid, _, started = name.partition("-")
    return pid.isdigit() and start_time(int(pid)) == started


def owned_temporary_folder(kind: str, folder: str | None = None) -> str:
    """Make a temporary folder with the name of this process in its own; ``folder`` is where, if not the usual place."""
    return tempfile.mkdtemp(prefix=f"excise-{kind}-{own_process_name()}-", dir=folder)


def remove_orphaned_folders(kind: str, within: str | None = None) -> int:
    """Remove this user's temporary folders of a kind whose processes no longer exist; return how many.

    ``within``: the folder that they were made in, if not the usual place.
    """
    count = 0
    for folder in glob.glob(f"{within or tempfile.gettempdir()}/excise-{kind}-*-*-*"):
        owner = os.path.basename(folder).removeprefix(f"excise-{kind}-").rpartition("-")[0]
        with contextlib.suppress(OSError):
            if os.stat(folder).st_uid == os.geteuid() and not is_process_alive(owner):
                shutil.rmtree(folder, ignore_errors=True)
                count += 1
    return count
