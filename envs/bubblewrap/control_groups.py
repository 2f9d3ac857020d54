"""Limits on a sandbox's processes: control groups, or a watch. Standard library only: the holder loads it by path."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import time
from collections.abc import Iterable
from typing import Any

KILL_WITHIN_S = 5.0
OWN_PIDS = 3
"""Processes of ours that count in a sandbox's group: bubblewrap's two, and the one that starts them."""
CPU_PERIOD_US = 100_000


class Groups:
    """The control groups of one sandbox; with none at all, every answer is zero."""

    def __init__(self, zygote: int = 0) -> None:
        self.name = f"excise-{zygote}-{os.getpid()}"
        self.folders: list[str] = []
        """Those that limit the sandbox."""
        self.made: list[str] = []
        """Those, and what was made before it was known which they are."""
        self.joined: set[str] = set()

    def make(self, roots: Iterable[str]) -> None:
        """A group in each of these folders; what is there stays."""
        self.folders = list(dict.fromkeys(f"{root}/{self.name}" for root in roots))
        for group in self.folders:
            if group not in self.made:
                os.makedirs(group, exist_ok=True)
                self.made.append(group)

    def limit(self, roots: dict[str, str], policy: dict[str, Any]) -> None:
        """One group per controller, under the folders that the parent found writable, with the policy's limits.

        Raises ``OSError`` if a limit cannot be set, unless the policy is lenient.
        """
        self.make(roots.values())
        for name, root in roots.items():
            group = f"{root}/{self.name}"
            wanted = limits(policy).get(name, {})
            done = [set_limit(group, file, value) for file, value in wanted.items()]
            for file, value in other_limits(policy).items():
                set_limit(group, file, value)
            if wanted and not any(done) and not policy["lenient"]:
                raise OSError(errno.EPERM, f"the control group {group} takes no limit for {name}")

    def join(self, folders: Iterable[str]) -> None:
        """Put this process into those of the groups in which it is not yet."""
        for group in folders:
            if group not in self.joined:
                with open(f"{group}/cgroup.procs", "w") as file:
                    file.write("0")
                self.joined.add(group)

    def counter(self, *names: str) -> int:
        """First number found in the groups' files, by ``file`` or ``file:key``."""
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
        """How often the kernel killed for want of memory."""
        return self.counter("memory.events:oom_kill", "memory.oom_control:oom_kill")

    def peak_bytes(self) -> int:
        """Most memory ever used."""
        return self.counter("memory.peak", "memory.max_usage_in_bytes")

    def cpu_s(self) -> float:
        """CPU seconds of everything that ever ran in them."""
        nanoseconds = self.counter("cpuacct.usage")
        return nanoseconds / 1e9 if nanoseconds else self.counter("cpu.stat:usage_usec") / 1e6

    def kill(self) -> None:
        """Kill every process in them, and wait until they are gone."""
        for group in self.folders:
            kill_group(group)


def limits(policy: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Controller to its file and value, of version 2 and of version 1: one of them has to be there."""
    found = {
        "memory": {"memory.max": f"{policy['memory_bytes']}", "memory.limit_in_bytes": f"{policy['memory_bytes']}"},
        "pids": {"pids.max": f"{policy['pids'] + OWN_PIDS}"},
    }
    if policy["cpus"] is not None:
        quota = max(1000, round(policy["cpus"] * CPU_PERIOD_US))
        found["cpu"] = {"cpu.max": f"{quota} {CPU_PERIOD_US}", "cpu.cfs_quota_us": f"{quota}"}
    return found


def other_limits(policy: dict[str, Any]) -> dict[str, str]:
    """What makes them stricter where the kernel has it: swap, and the period of version 1."""
    return {
        "memory.swap.max": "0",
        "memory.memsw.limit_in_bytes": f"{policy['memory_bytes']}",
        "cpu.cfs_period_us": f"{CPU_PERIOD_US}",
    }


def set_limit(group: str, file: str, value: str) -> bool:
    """Write one file of a group, if it has it; whether it took the value."""
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
    """Kill what is left in control groups and remove them; the kernel may need a moment."""
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


# ----------------------------------------------------------------- where there are no control groups
def descendants(root: int) -> list[int]:
    """Processes below ``root``, as they are now."""
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
    """Resident memory of processes."""
    sizes: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/statm") as file:
            sizes[pid] = int(file.read().split()[1]) * resource.getpagesize()
    return sizes


def relieve(memory_bytes: int) -> bool:
    """If all descendants together use too much, kill the largest, as the kernel does in a group; whether it did."""
    sizes = resident_bytes(descendants(os.getpid()))
    if sum(sizes.values()) <= memory_bytes:
        return False
    largest = max(sizes, key=lambda pid: sizes[pid])
    with contextlib.suppress(ProcessLookupError):
        os.kill(largest, signal.SIGKILL)
    return True


def reap() -> tuple[float, int]:
    """Kill and collect every process that is left below this one; their CPU seconds and the largest one's memory.

    Needs a subreaper: what a command leaves behind then becomes this process's child.
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
