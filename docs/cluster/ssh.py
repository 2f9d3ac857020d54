"""Workers on machines that ssh reaches, by Dask's SSHCluster, and a run of excise on them.

``python docs/cluster/ssh.py HOST[,HOST…] pypi:toolz pypi:boltons --out SET``: the first host gets the scheduler, all
get workers, one for each of ``CORES``. Each needs excise in the environment of ``PYTHON``, and shares nothing with the
others. ``pip install asyncssh`` first. The further arguments are those of ``excise generate``.
"""

from __future__ import annotations

import subprocess
import sys

from distributed import SSHCluster

CORES = 8
PYTHON = "/opt/excise/bin/python"


def main() -> int:
    """Start the workers and the run; return its exit code."""
    hosts = sys.argv[1].split(",")
    with SSHCluster(
        [hosts[0], *hosts],
        connect_options={"known_hosts": "~/.ssh/known_hosts"},
        scheduler_options={"port": 8786, "dashboard": False},
        worker_options={"n_workers": CORES, "nthreads": 1, "memory_limit": "0"},
        remote_python=PYTHON,
    ) as cluster:
        command = [sys.executable, "-m", "excise.pipeline.cli", "generate", *sys.argv[2:]]
        return subprocess.call([*command, "--scheduler", cluster.scheduler_address])


if __name__ == "__main__":
    sys.exit(main())
