"""Where control groups can be made on this machine: version 1, version 2, or hybrid."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


@cache
def writable_groups() -> dict[str, str]:
    """Controller to the folder under which groups may be made; empty unless both ``memory`` and ``pids`` can.

    ``cpu`` is there where CPU time can be limited, ``cpuacct`` where it is counted by a controller of its own
    (version 1).
    """
    found = _version1() or _version2()
    return found if {"memory", "pids"} <= set(found) else {}


def _version1() -> dict[str, str]:
    return {
        name: str(ROOT / name)
        for name in ("memory", "pids", "cpu", "cpuacct")
        if (ROOT / name / "cgroup.procs").exists() and os.access(ROOT / name, os.W_OK) and os.geteuid() == 0
    }


def _version2() -> dict[str, str]:
    if os.geteuid() != 0 or not (ROOT / "cgroup.subtree_control").exists():
        return {}
    parent = ROOT / "excise"
    try:
        parent.mkdir(exist_ok=True)
        for folder in (ROOT, parent):
            (folder / "cgroup.subtree_control").write_text("+memory +pids")
    except OSError:
        return {}
    found = {"memory": str(parent), "pids": str(parent)}
    with contextlib.suppress(OSError):  # a process with real-time priority keeps it from being switched on
        for folder in (ROOT, parent):
            (folder / "cgroup.subtree_control").write_text("+cpu")
        found["cpu"] = str(parent)
    return found
