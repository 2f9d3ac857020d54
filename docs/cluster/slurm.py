"""Workers as jobs of SLURM, by dask-jobqueue, and a run of excise on them.

``python docs/cluster/slurm.py pypi:toolz pypi:boltons --out SET`` on a login node, in the environment that has excise,
in a folder that the nodes see (the environment is all that is shared). ``pip install dask-jobqueue`` first. The
arguments are those of ``excise generate``.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from dask_jobqueue import SLURMCluster

JOBS = 25
"""Jobs of SLURM, each with some workers."""
SETTINGS: dict[str, Any] = {
    "queue": "compute",
    "cores": 8,
    "processes": 8,  # one thread each, so that two tests never share a core
    "memory": "32GB",
    "walltime": "12:00:00",
    "worker_extra_args": ["--lifetime", "11h", "--lifetime-stagger", "30m", "--memory-limit", "0"],
    "local_directory": "/tmp",
    "job_script_prologue": [
        # Folders of the node: what jobs of other nodes made is fetched.
        "export TMPDIR=${SLURM_TMPDIR:-/tmp/excise-$SLURM_JOB_ID}",
        "export EXCISE_CACHE=$TMPDIR/cache",
        "mkdir -p $TMPDIR && chmod 755 $TMPDIR",
        "trap 'rm -rf $TMPDIR' EXIT",
    ],
}


def main() -> int:
    """Start the workers and the run; return its exit code."""
    with SLURMCluster(**SETTINGS) as cluster:
        cluster.scale(jobs=JOBS)
        command = [sys.executable, "-m", "excise.pipeline.cli", "generate", *sys.argv[1:]]
        return subprocess.call([*command, "--scheduler", cluster.scheduler_address])


if __name__ == "__main__":
    sys.exit(main())
