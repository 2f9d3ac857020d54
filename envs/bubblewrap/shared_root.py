"""The parts of a root file system that all sandboxes of one worker share: ``/etc`` and ``/dev``.

They are built once, in the zygote's mount namespace; each sandbox's supervisor bind-mounts each part with one call.
Standard library only: the zygote imports it.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

from excise.envs.bubblewrap.kernel_calls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    bind,
    mount,
    protect,
)

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "core": "/proc/kcore",
    "ptmx": "pts/ptmx",
}
_EMPTY = ("proc", "tmp", "run", "home/agent", "var/tmp", "excise/out")


class SharedRoot:
    """Builds the parts of :func:`excise.envs.sandbox.rootfs.rootfs_plan` in the folder ``base``."""

    def __init__(self, base: str, plan: dict[str, Any]) -> None:
        self.base, self.plan = base, plan
        self.owner = os.getpid()

    def build(self) -> None:
        """Mount the shared parts on a small tmpfs."""
        mount("excise", self.base, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,nr_inodes=8192,mode=0711")
        os.mkdir(f"{self.base}/stage")
        self._etc(f"{self.base}/etc")
        self._dev(f"{self.base}/dev")

    def _etc(self, etc: str) -> None:
        os.mkdir(etc)
        for name in self.plan["etc"]:
            source = f"/etc/{name}"
            if os.path.isdir(source):
                os.mkdir(f"{etc}/{name}")
                bind(source, f"{etc}/{name}")
            elif os.path.isfile(source):
                shutil.copyfile(source, f"{etc}/{name}")
                os.chmod(f"{etc}/{name}", 0o644)
        for name in self.plan["network"]:
            write(f"{etc}/{name}", "")
        for name, text in self.plan["texts"].items():
            write(f"{etc}/{name}", text)
        mount(etc, etc, flags=MS_BIND | MS_REC)
        protect(etc)

    @staticmethod
    def _dev(dev: str) -> None:
        """Make the device files that programs expect. bubblewrap would make them again for each command."""
        for name in ("", "/shm", "/pts", "/mqueue"):
            os.mkdir(dev + name)
        for name in DEVICES:
            write(f"{dev}/{name}", "")
            mount(f"/dev/{name}", f"{dev}/{name}", flags=MS_BIND)
            protect(f"{dev}/{name}", MS_NOSUID | MS_NOEXEC)
        for name, target in DEVICE_LINKS.items():
            os.symlink(target, f"{dev}/{name}")
        mount(dev, dev, flags=MS_BIND | MS_REC)
        mount("none", dev, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)

    def bind_into(self, root: str, *, network: bool) -> None:
        """Make a new root in the empty folder ``root``, with the shared parts bound read-only."""
        for name in _EMPTY:
            os.makedirs(f"{root}/{name}", exist_ok=True)
        for name, target in self.plan["links"].items():
            os.symlink(target, f"{root}/{name}")
        for name in ("etc", "dev"):
            os.mkdir(f"{root}/{name}")
            mount(f"{self.base}/{name}", f"{root}/{name}", flags=MS_BIND | MS_REC)
        for name in self.plan["folders"]:
            os.mkdir(f"{root}/{name}")
            bind(f"/{name}", f"{root}/{name}")
        mount("devpts", f"{root}/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
        for name in self.plan["network"] if network else ():
            source = os.path.realpath(f"/etc/{name}")
            if os.path.isfile(source):
                bind(source, f"{root}/etc/{name}")


def write(path: str, text: str) -> None:
    """Write a file that all users can read."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o644)
