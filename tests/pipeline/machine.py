"""A machine of a cluster for tests: a Dask worker that sees, of the folder of all machines, its own part only.

``python -m tests.pipeline.machine BASE NAME ADDRESS [OPTION…]`` hides everything in BASE but ``BASE/NAME`` (as root, in
a mount namespace that ``unshare --mount`` made), takes its home, cache and temporary files from there, and becomes a
worker of the scheduler at ADDRESS. With ``disk=BYTES`` among the options, the cache is a disk of that size.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from excise.envs.bubblewrap.kernel_calls import MS_NOSUID, MS_PRIVATE, MS_REC, bind, mount


def main(base: str, name: str, address: str, *options: str) -> None:
    own = Path(base, name)
    for part in ("home", "cache", "tmp", "space"):
        (own / part).mkdir(parents=True, exist_ok=True)
    (own / "tmp").chmod(0o1777)
    disk = [option.removeprefix("disk=") for option in options if option.startswith("disk=")]
    if os.geteuid() == 0:
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
        os.chdir(own)
        mount("none", base, "tmpfs", MS_NOSUID, "mode=0755")
        own.mkdir()
        bind(".", str(own), read_only=False)
        os.chdir(own)
        if disk:
            mount("none", str(own / "cache"), "tmpfs", MS_NOSUID, f"size={disk[0]}")
    pyenv = os.environ.get("PYENV_ROOT") or str(Path.home() / ".pyenv")  # the interpreters are those of all machines
    os.environ |= {"PYENV_ROOT": pyenv, "HOME": str(own / "home"), "EXCISE_CACHE": str(own / "cache"), "TMPDIR": str(own / "tmp")}
    rest = [option for option in options if not option.startswith("disk=")]
    command = [sys.executable, "-m", "dask", "worker", address, "--nworkers", "1", "--nthreads", "1", "--name", name]
    command += ["--no-dashboard", "--local-directory", str(own / "space"), *rest]
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main(*sys.argv[1:])
