"""Machines of a cluster for tests: a Dask scheduler, and workers that have folders of their own.

``python -m tests.pipeline.machine BASE NAME ADDRESS [OPTION…]`` becomes a worker of the scheduler at ADDRESS with its
home, cache and temporary files in ``BASE/NAME``. As root, in a mount namespace of its own, it sees nothing else of
BASE, and nothing of ``/tmp`` but what is known about the host's system: to search all of ``/usr`` takes a minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from excise.envs.bubblewrap.kernel_calls import MS_NOSUID, MS_PRIVATE, MS_REC, bind, mount
from excise.system.locks import host_folder

from .processes import descendants, kill, wait_for

ROOT = Path(__file__).parents[2]


def main(base: str, name: str, address: str, *options: str) -> None:
    """Become the worker."""
    own = Path(base, name)
    for part in ("home", "cache", "tmp", "space"):
        (own / part).mkdir(parents=True, exist_ok=True)
    (own / "tmp").chmod(0o1777)
    temporary = own / "tmp"
    if os.geteuid() == 0:
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
        host = host_folder()
        around, inside, known = (os.open(folder, os.O_PATH) for folder in (Path(base).parent, own, host))
        (temporary / host.name).mkdir(mode=0o700, exist_ok=True)
        bind(str(temporary), "/tmp", read_only=False)  # sandboxes have uids that may not look into pytest's folders
        bind(f"/proc/self/fd/{known}", f"/tmp/{host.name}", read_only=False)
        temporary = Path("/tmp")
        Path(base).parent.mkdir(parents=True, exist_ok=True)  # it may be in /tmp
        bind(f"/proc/self/fd/{around}", str(Path(base).parent), read_only=False)
        mount("none", base, "tmpfs", MS_NOSUID, "mode=0755")
        own.mkdir()
        bind(f"/proc/self/fd/{inside}", str(own), read_only=False)
    os.environ |= {"HOME": str(own / "home"), "EXCISE_CACHE": str(own / "cache"), "TMPDIR": str(temporary)}
    os.chdir(ROOT)
    command = [sys.executable, "-m", "dask", "worker", address, "--nworkers", "1", "--nthreads", "1", "--name", name]
    os.execv(sys.executable, [*command, "--no-dashboard", "--local-directory", str(own / "space"), *options])


class Machines:
    """A scheduler, and machines that are started when they are wanted."""

    def __init__(self, base: Path, stack: ExitStack) -> None:
        self.base, self._stack = base, stack
        base.mkdir(parents=True, exist_ok=True)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        facts = base / "scheduler.json"
        command = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self._start("scheduler", [*command, "--scheduler-file", str(facts)], {})
        assert wait_for(lambda: facts.exists() and facts.read_text(), 120)
        self.address: str = json.loads(facts.read_text())["address"]

    def start(self, name: str, *options: str, **environment: str) -> None:
        """Start a machine."""
        alone = ["unshare", "--mount"] if os.geteuid() == 0 else []
        command = [*alone, sys.executable, "-m", "tests.pipeline.machine", str(self.base), name, self.address]
        self._start(name, [*command, *options], environment)

    def _start(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        pyenv = os.environ.get("PYENV_ROOT") or str(Path.home() / ".pyenv")  # not below the machine's own home
        with (self.base / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "PYENV_ROOT": pyenv, **environment},
            )
        self.processes[name] = process
        self._stack.callback(self._kill, process)

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        for pid in [process.pid, *descendants(process.pid)]:
            kill(pid)
        process.wait()


@contextmanager
def machines(base: Path) -> Iterator[Machines]:
    """A scheduler and machines; all are killed at the end."""
    with ExitStack() as stack:
        yield Machines(base, stack)


if __name__ == "__main__":
    main(*sys.argv[1:])
