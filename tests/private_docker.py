"""A Docker engine for tests: the one that answers, or a private one that goes when the tests are over.

A private one needs root, or sudo without a password. It has no bridge and no rules for a firewall, so that it starts
in a container, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

START_S = 60.0
FLAGS = ["--iptables=false", "--ip6tables=false", "--bridge=none"]


class NoEngine(Exception):
    """There is none, and this user may not start one."""


def answering(host: str) -> bool:
    """Whether an engine answers at ``host`` (empty: where the ``docker`` command looks)."""
    import docker

    try:
        client = docker.DockerClient(base_url=host, timeout=10) if host else docker.from_env(timeout=10)
        client.ping()
        client.close()
    except (docker.errors.DockerException, OSError):
        return False
    return True


def engine(folder: Path) -> str:
    """``DOCKER_HOST`` of an engine for all processes of this test run. Raises :class:`NoEngine`."""
    if answering(os.environ.get("DOCKER_HOST", "")):
        return os.environ.get("DOCKER_HOST", "")
    folder.mkdir(exist_ok=True)
    host = f"unix://{folder}/socket"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not answering(host):
            _start(folder, host)
    return host


def privileged() -> list[str]:
    """What to put before a command for root. Raises :class:`NoEngine`."""
    if os.geteuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n"]
    raise NoEngine("no Docker engine answers, and starting one needs root or sudo without a password")


def _start(folder: Path, host: str) -> None:
    root = privileged()
    program = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/bin")
    assert program, "dockerd is missing; ./check installs it: apt-get install docker.io"
    errors = []
    for driver in ("overlay2", "vfs"):
        line = [*root, program, *FLAGS, f"--storage-driver={driver}", f"--data-root={folder}/data"]
        line += [f"--exec-root={folder}/exec", f"--host={host}", f"--pidfile={folder}/pid", f"--group={os.getgid()}"]
        with open(folder / "log", "ab") as log:
            process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + START_S
        while process.poll() is None and time.monotonic() < deadline:
            if answering(host):
                return
            time.sleep(0.1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        errors.append((folder / "log").read_text(errors="replace")[-1500:])
    raise AssertionError("dockerd does not start:\n" + "\n".join(errors))


def stop(folder: Path) -> None:
    """End a private engine, and remove all that it kept."""
    if not (folder / "pid").exists():
        return
    root = privileged()
    pid = (folder / "pid").read_text().strip()
    _run([*root, "kill", f"-{signal.SIGTERM.value}", pid])
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    for left in ("exec/netns/default", "data"):  # the engine leaves these mounts behind
        _run([*root, "umount", "--recursive", "--lazy", f"{folder}/{left}"])
    _run([*root, "rm", "-rf", "--one-file-system", str(folder)])


def _run(line: Sequence[str]) -> None:
    subprocess.run(line, capture_output=True, check=False)
