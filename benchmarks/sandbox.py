"""Benchmark of the sandbox backends' start-up time, compared with bare ``bwrap … true`` on this machine.

Run: ``python benchmarks/sandbox.py [ROUNDS] [BACKEND…]``. One round opens a session with all limits and a writable
mount, runs ``true`` and closes it. Prints medians and 95th percentiles in milliseconds, the time of each part, and the
ratio to bare bubblewrap. Goal: a round with the bubblewrap backend takes less time than three bare ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import pairwise
from statistics import median, quantiles

from excise.envs.sandboxes import get_sandbox
from excise.errors import SandboxError
from excise.protocols import Mount, Policy

BARE = ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"]
BARE += ["--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev"]
BARE += ["/bin/true"]
WARM_UP = 3
"""Number of first rounds that are not counted: they start processes or build images that later rounds share."""
PARTS = ("open", "run", "close")


def bare() -> tuple[float, ...]:
    """Seconds of bubblewrap alone: no limits, no writable mount, no separate user."""
    began = time.perf_counter()
    subprocess.run(BARE, check=True)
    return (time.perf_counter() - began,)


def session(name: str) -> tuple[float, ...]:
    """Seconds of each part of one round with a backend."""
    mounts = [Mount(target="/testbed", layers=(), writable=True)]
    times = [time.perf_counter()]
    opened = get_sandbox(name).open(mounts, Policy(), env={"PATH": "/usr/bin:/bin"})
    times.append(time.perf_counter())
    assert opened.exec(["/bin/true"], timeout_s=60).rc == 0
    times.append(time.perf_counter())
    opened.close()
    times.append(time.perf_counter())
    return tuple(b - a for a, b in pairwise(times))


def measure(rounds: int, backends: list[str]) -> dict[str, list[tuple[float, ...]]]:
    """Times of all rounds. Backends alternate, so that changes of the machine's load affect all of them."""
    found: dict[str, list[tuple[float, ...]]] = {"bare bwrap": [], **{name: [] for name in backends}}
    for number in range(rounds + WARM_UP):
        for name, times in found.items():
            taken = bare() if name == "bare bwrap" else session(name)
            if number >= WARM_UP:
                times.append(taken)
    return found


def usable(names: list[str]) -> list[str]:
    """The backends that work on this machine."""
    found = []
    for name in names:
        can = get_sandbox(name).capabilities()
        if can.available:
            found.append(name)
        else:
            print(f"{name}: not here ({can.detail})", file=sys.stderr)
    return found


def main() -> None:
    """Time all backends in turn and print a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    try:
        found = measure(rounds, usable(sys.argv[2:] or ["bubblewrap", "docker"]))
    except SandboxError as error:
        sys.exit(str(error))
    base = median(sum(times) for times in found["bare bwrap"])
    print(f"{rounds} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; ms")
    print(f"{'':14}{'median':>8}{'p95':>8}{'min':>8}{'ratio':>8}   parts (medians)")
    for name, rows in found.items():
        whole = [1000 * sum(row) for row in rows]
        parts = [f"{part} {1000 * median(row[i] for row in rows):.1f}" for i, part in enumerate(PARTS[: len(rows[0])])]
        numbers = (median(whole), quantiles(whole, n=20)[-1], min(whole), median(whole) / (1000 * base))
        line = "".join(f"{number:8.1f}" for number in numbers)
        print(f"{name:14}{line}   {', '.join(parts) if len(parts) > 1 else ''}")


if __name__ == "__main__":
    main()
