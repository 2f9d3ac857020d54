"""Unique names of processes, and temporary folders that are named after the process that owns them.

The kernel reuses pids, so a name consists of pid and start time. Standard library only: the zygote process of the
sandboxes imports this module without the rest of the package.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile


def start_time(pid: int) -> str:
    """Return when a process started, in clock ticks since boot; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def own_process_name() -> str:
    """Return the name of this process, ``PID-STARTTIME``; unique until the next boot."""
    return f"{os.getpid()}-{start_time(os.getpid())}"


def is_process_alive(name: str) -> bool:
    """Whether the process with a name of :func:`own_process_name` still exists."""
    pid, _, started = name.partition("-")
    return pid.isdigit() and start_time(int(pid)) == started


def owned_temporary_folder(kind: str, folder: str | None = None) -> str:
    """Make a temporary folder whose name contains that of this process; return its path.

    ``folder`` is the parent; by default the system's folder for temporary files.
    """
    return tempfile.mkdtemp(prefix=f"excise-{kind}-{own_process_name()}-", dir=folder)


def remove_orphaned_folders(kind: str, within: str | None = None) -> int:
    """Remove this user's temporary folders of a kind whose processes no longer exist; return how many.

    ``within`` is their parent; by default the system's folder for temporary files.
    """
    count = 0
    for folder in glob.glob(f"{within or tempfile.gettempdir()}/excise-{kind}-*-*-*"):
        owner = os.path.basename(folder).removeprefix(f"excise-{kind}-").rpartition("-")[0]
        with contextlib.suppress(OSError):
            if os.stat(folder).st_uid == os.geteuid() and not is_process_alive(owner):
                shutil.rmtree(folder, ignore_errors=True)
                count += 1
    return count
