"""Limits on a sandbox's processes: by control groups, or by polling if the host has none that can be written.

Standard library only: the zygote imports it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path("/sys/fs/cgroup")
KILL_WITHIN_S = 5.0
"""Seconds to wait for killed processes to disappear."""
OWN_PIDS = 3
"""Processes of excise that the limit on pids counts: bubblewrap's two, and the one that starts them."""
CPU_PERIOD_US = 100_000
"""Period of the CPU quota, in microseconds."""


@cache
def writable_groups() -> dict[str, str]:
    """Return each controller's folder in which groups can be made; empty unless ``memory`` and ``pids`` are available.

    Supports version 1, version 2 and hybrid hosts. ``cpu`` is included if CPU time can be limited, ``cpuacct`` if a
    separate controller counts it (version 1).
    """
    found = _version_1() or _version_2()
    return found if {"memory", "pids"} <= set(found) else {}


def _version_1() -> dict[str, str]:
    return {
        name: str(ROOT / name)
        for name in ("memory", "pids", "cpu", "cpuacct")
        if (ROOT / name / "cgroup.procs").exists() and os.access(ROOT / name, os.W_OK) and os.geteuid() == 0
    }


def _version_2() -> dict[str, str]:
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
    with contextlib.suppress(OSError):  # a process with real-time priority prevents it
        for folder in (ROOT, parent):
            (folder / "cgroup.subtree_control").write_text("+cpu")
        found["cpu"] = str(parent)
    return found


class ControlGroups:
    """The control groups of one sandbox; if it has none, every counter returns zero."""

    def __init__(self, zygote: int = 0) -> None:
        self.name = f"excise-{zygote}-{os.getpid()}"
        self.folders: list[str] = []
        """Groups that limit the sandbox."""
        self.made: list[str] = []
        """All groups that were made, some of them before the sandbox's limits were known."""
        self.joined: set[str] = set()

    def make(self, roots: Iterable[str]) -> None:
        """Make a group in each of these folders; existing ones are kept."""
        self.folders = list(dict.fromkeys(f"{root}/{self.name}" for root in roots))
        for group in self.folders:
            if group not in self.made:
                os.makedirs(group, exist_ok=True)
                self.made.append(group)

    def limit(self, roots: dict[str, str], policy: dict[str, Any]) -> None:
        """Make one group per controller under the given folders, and set the policy's limits.

        Raises ``OSError`` if a limit cannot be set, unless the policy is lenient.
        """
        self.make(roots.values())
        for name, root in roots.items():
            group = f"{root}/{self.name}"
            wanted = limits(policy).get(name, {})
            done = [set_limit(group, file, value) for file, value in wanted.items()]
            for file, value in optional_limits(policy).items():
                set_limit(group, file, value)
            if wanted and not any(done) and not policy["lenient"]:
                raise OSError(errno.EPERM, f"the control group {group} takes no limit for {name}")

    def join(self, folders: Iterable[str]) -> None:
        """Move this process into the groups that it has not joined yet."""
        for group in folders:
            if group not in self.joined:
                with open(f"{group}/cgroup.procs", "w") as file:
                    file.write("0")
                self.joined.add(group)

    def counter(self, *names: str) -> int:
        """Return the first number found in the groups' files; a name is ``file`` or ``file:key``."""
        for group in self.folders:
            for name in names:
                file, _, key = name.partition(":")
                with contextlib.suppress(OSError, ValueError), open(f"{group}/{file}") as handle:
                    for line in handle:
                        words = line.split()
                        if not key:
                            return int(words[0])
                        if words[0] == key:
                            return int(words[1])
        return 0

    def ooms(self) -> int:
        """Number of processes that the kernel killed because memory ran out."""
        return self.counter("memory.events:oom_kill", "memory.oom_control:oom_kill")

    def peak_bytes(self) -> int:
        """Peak memory use in bytes."""
        return self.counter("memory.peak", "memory.max_usage_in_bytes")

    def cpu_s(self) -> float:
        """CPU seconds of all processes that ever ran in the groups."""
        nanoseconds = self.counter("cpuacct.usage")
        return nanoseconds / 1e9 if nanoseconds else self.counter("cpu.stat:usage_usec") / 1e6

    def kill(self) -> None:
        """Kill every process in the groups, and wait until they are gone."""
        for group in self.folders:
            kill_group(group)


def limits(policy: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Controller to {file: value} for versions 2 and 1; setting one of a controller's files is enough."""
    found = {
        "memory": {"memory.max": f"{policy['memory_bytes']}", "memory.limit_in_bytes": f"{policy['memory_bytes']}"},
        "pids": {"pids.max": f"{policy['pids'] + OWN_PIDS}"},
    }
    if policy["cpus"] is not None:
        quota = max(1000, round(policy["cpus"] * CPU_PERIOD_US))
        found["cpu"] = {"cpu.max": f"{quota} {CPU_PERIOD_US}", "cpu.cfs_quota_us": f"{quota}"}
    return found


def optional_limits(policy: dict[str, Any]) -> dict[str, str]:
    """Further limits, set where the kernel has their file: swap, and the CPU period of version 1."""
    return {
        "memory.swap.max": "0",
        "memory.memsw.limit_in_bytes": f"{policy['memory_bytes']}",
        "cpu.cfs_period_us": f"{CPU_PERIOD_US}",
    }


def set_limit(group: str, file: str, value: str) -> bool:
    """Write one file of a group; return whether the file exists and accepted the value."""
    try:
        with open(f"{group}/{file}", "r+") as handle:
            handle.write(value)
    except OSError:
        return False
    return True


def kill_group(group: str) -> None:
    """Kill every process of a control group, and wait until they are gone."""
    deadline = time.monotonic() + KILL_WITHIN_S
    while time.monotonic() < deadline:
        try:
            with open(f"{group}/cgroup.procs") as file:
                pids = [int(line) for line in file if line.strip()]
        except OSError:
            return
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def remove_groups(folders: Iterable[str]) -> None:
    """Kill the processes in control groups and remove the groups; retries while the kernel reports them as busy."""
    for group in folders:
        kill_group(group)
        for _ in range(1000):
            try:
                os.rmdir(group)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.002)


# ------------------------------------------------------------------------------ without control groups
def descendants(root: int) -> list[int]:
    """Pids of all current descendants of the process ``root``."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def resident_bytes(pids: Iterable[int]) -> dict[int, int]:
    """Pid to resident memory in bytes."""
    sizes: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/statm") as file:
            sizes[pid] = int(file.read().split()[1]) * resource.getpagesize()
    return sizes


def kill_largest_if_over(memory_bytes: int) -> bool:
    """If all descendants together use more memory than this, kill the largest one; return whether one was killed."""
    sizes = resident_bytes(descendants(os.getpid()))
    if sum(sizes.values()) <= memory_bytes:
        return False
    largest = max(sizes, key=lambda pid: sizes[pid])
    with contextlib.suppress(ProcessLookupError):
        os.kill(largest, signal.SIGKILL)
    return True


def kill_and_reap_all() -> tuple[float, int]:
    """Kill and reap all descendants; return their CPU seconds, and the peak memory in bytes of the largest.

    This process must be a subreaper, so that orphans of a command become its children.
    """
    cpu_s, peak = 0.0, 0
    deadline = time.monotonic() + KILL_WITHIN_S
    while time.monotonic() < deadline:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid:
            cpu_s += usage.ru_utime + usage.ru_stime
            peak = max(peak, usage.ru_maxrss * 1024)
            continue
        for child in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    return cpu_s, peak
