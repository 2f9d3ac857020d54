"""Start-up of a sandbox session against bare ``bwrap … true``, interleaved, on this machine.

Run: ``python benchmarks/sandbox.py [rounds]``. Prints medians and 95th percentiles in milliseconds, and their ratio.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median, quantiles

from excise.envs.bubblewrap.sandbox import BubblewrapSandbox
from excise.protocols import Mount, Policy

BARE = ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"]
BARE += [
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--symlink",
    "usr/bin",
    "/bin",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "/bin/true",
]


def bare() -> None:
    """bubblewrap alone: no limits, no mounts, no separate user."""
    subprocess.run(BARE, check=True)


def session() -> None:
    """Open a session with limits and a writable mount, run ``true``, close it."""
    mounts = [Mount(target="/testbed", layers=(), writable=True)]
    with BubblewrapSandbox().open(mounts, Policy(), env={"PATH": "/usr/bin:/bin"}) as opened:
        assert opened.exec(["/bin/true"], timeout_s=30).rc == 0


def main() -> None:
    """Time both in turn."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    times: dict[str, list[float]] = {"bare bwrap": [], "session": []}
    for number in range(rounds + 3):
        for name, action in (("bare bwrap", bare), ("session", session)):
            began = time.perf_counter()
            action()
            if number >= 3:
                times[name].append(1000 * (time.perf_counter() - began))
    for name, values in times.items():
        print(f"{name}: median {median(values):.1f} ms, p95 {quantiles(values, n=20)[-1]:.1f} ms")
    print(f"session / bare: {median(times['session']) / median(times['bare bwrap']):.2f} (medians)")


if __name__ == "__main__":
    main()
