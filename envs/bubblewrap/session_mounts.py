"""The mounts of one sandbox, in its supervisor's mount namespace, with edits before and snapshots after commands.

Everything that a sandbox writes goes to two tmpfs of limited size, one for mounts and temporary folders, one for
results: a sandbox that fills its disk affects neither the host nor its own report. Standard library only: the zygote
imports it.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable
from typing import Any

from excise.envs.bubblewrap.kernel_calls import (
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    MS_SHARED,
    bind,
    mount,
    umount,
)
from excise.envs.bubblewrap.shared_root import SharedRoot

ROOT_BYTES = 64 << 20
"""Size of the tmpfs that holds mount points only."""
BYTES_PER_FILE = 2048
"""A tmpfs of n bytes may hold n / 2048 files, since empty files use the host's memory too."""


def make_writable_folder(path: str) -> str:
    """Make a folder that the sandbox's user can write."""
    os.makedirs(path, exist_ok=True)
    os.chmod(path, 0o777)
    return path


def escape_overlay_path(path: str) -> str:
    """Escape a path for the options of an overlay mount, where commas separate options and colons layers."""
    return re.sub(r"([\\:,])", r"\\\1", path)


_RUN_FOLDERS = {"tmp": "tmp", "home": "home/agent", "results/out": "excise/out", "shm": "dev/shm"}
"""Subfolder of ``run`` to its mount point in the root."""


def is_folder(entry: dict[str, Any]) -> bool:
    """Whether a mount shows a folder, not a single file."""
    return not entry["layers"] or os.path.isdir(entry["layers"][0])


class SessionMounts:
    """Builds the mounts of one sandbox in the folder ``stage``.

    Its subfolder ``root`` is the root of the sandbox. All that the sandbox writes is in ``run``: ``m0``, ``m1``, … for
    its mounts, and ``results`` for the results that the host reads. A sandbox with a fork server is mounted in two
    parts: :meth:`build_read_only` once, and :meth:`attach` and :meth:`detach` for each of its sessions.
    """

    def __init__(self, shared: SharedRoot, privileged: bool) -> None:
        self.shared, self.privileged = shared, privileged
        self.entries: list[dict[str, Any]] = []
        self.disk_bytes, self.network = 0, False
        self.stage = f"{shared.base}/stage"
        self.root = f"{self.stage}/root"
        self.run = f"{self.stage}/run"
        self.uppers: dict[str, str] = {}

    def build(self, config: dict[str, Any]) -> None:
        """Make all mounts of a session's configuration."""
        self.make_root(config)
        self.make_run_folder()
        for number, entry in enumerate(self.entries):
            self.add(number, entry)
        self.bind_run_folder()
        self.protect_root()

    def build_read_only(self, config: dict[str, Any]) -> None:
        """Make all mounts except those that :meth:`attach` makes, later ones of which reach the sandbox's copy.

        They reach it since the kernel propagates mounts from a shared one to its copies in other namespaces.
        """
        self.make_root(config)
        for number, entry in enumerate(self.entries):
            if entry["writable"]:
                self.mount_point(entry["target"], folder=is_folder(entry))
            else:
                self.add(number, entry)
        self.protect_root()
        mount("none", self.root, flags=MS_SHARED | MS_REC)

    def attach(self) -> None:
        """Mount everything that a session can write, empty or as its layers are."""
        self.make_run_folder()
        for number, entry in enumerate(self.entries):
            if entry["writable"]:
                self.add(number, entry)
        self.bind_run_folder()

    def detach(self) -> None:
        """Unmount everything that a session can write; its content is lost."""
        for target in (*_RUN_FOLDERS.values(), *(e["target"].lstrip("/") for e in self.entries if e["writable"])):
            umount(f"{self.root}/{target}")
        umount(self.run)
        self.uppers.clear()

    def make_root(self, config: dict[str, Any]) -> None:
        """Make the root, with what all sandboxes share."""
        self.entries, policy = config["mounts"], config["policy"]
        self.disk_bytes, self.network = policy["disk_bytes"], policy["network"]
        self.tmpfs(self.stage, ROOT_BYTES)
        os.mkdir(self.root)
        os.mkdir(self.run)
        mount(self.root, self.root, flags=MS_BIND)  # a separate mount can be made read-only by itself
        self.shared.bind_into(self.root, network=self.network)

    def protect_root(self) -> None:
        """Make the root itself read-only, apart from the mounts in it."""
        mount("none", self.root, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)

    def make_run_folder(self) -> None:
        """Mount the two tmpfs that hold everything that a session writes."""
        self.tmpfs(self.run, self.disk_bytes)
        os.mkdir(f"{self.run}/results")
        self.tmpfs(f"{self.run}/results", self.disk_bytes // 2)

    def bind_run_folder(self) -> None:
        """Mount the temporary folders and the folder for results."""
        for name, target in _RUN_FOLDERS.items():
            mount(make_writable_folder(f"{self.run}/{name}"), f"{self.root}/{target}", flags=MS_BIND)

    def arguments(self) -> list[str]:
        """Arguments for bubblewrap: one bind of the root, and what belongs to its namespaces."""
        namespaces = ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--mqueue", "/dev/mqueue"]
        return ["--dev-bind", self.root, "/", *namespaces]

    @staticmethod
    def tmpfs(target: str, size: int) -> None:
        """Mount a tmpfs with limits on bytes and on files."""
        options = f"size={size},nr_inodes={max(4096, size // BYTES_PER_FILE)},mode=0711"
        mount("excise", target, "tmpfs", MS_NOSUID | MS_NODEV, options)

    def open_out(self) -> int:
        """Open the results folder and return the descriptor, by which the worker, in another namespace, reads it."""
        return os.open(f"{self.run}/results/out", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def add(self, number: int, entry: dict[str, Any]) -> None:
        """Add one mount: a bind, an empty folder, or an overlay of layers."""
        layers, writable = entry["layers"], entry["writable"]
        base = f"{self.run if writable else self.stage}/m{number}"
        target = self.mount_point(entry["target"], folder=is_folder(entry))
        if len(layers) == 1 and not writable:
            bind(layers[0], target)
        elif not layers:
            self.uppers[entry["target"]] = make_writable_folder(base)
            bind(base, target, read_only=not writable)
        else:
            os.mkdir(base)
            self.overlay(base, target, entry)

    def mount_point(self, target: str, *, folder: bool) -> str:
        """Return the mount point for ``target``; it is made if it does not exist."""
        here = self.root + target
        if not os.path.lexists(here):
            os.makedirs(here if folder else os.path.dirname(here), exist_ok=True)
            if not folder:
                os.close(os.open(here, os.O_CREAT | os.O_WRONLY))
        if os.path.realpath(here) != here:  # a link in a layer must not redirect a mount
            raise ValueError(f"{target} is no plain place for a mount")
        return here

    def overlay(self, base: str, target: str, entry: dict[str, Any]) -> None:
        """Mount an overlay of layers, topmost first, with an upper layer for this session if the mount is writable."""
        lower = ":".join(escape_overlay_path(layer) for layer in entry["layers"])
        options = [f"lowerdir={lower}"]
        if entry["writable"]:
            upper = self.uppers[entry["target"]] = make_writable_folder(f"{base}/upper")
            os.mkdir(f"{base}/work")
            options += [f"upperdir={escape_overlay_path(upper)}", f"workdir={escape_overlay_path(f'{base}/work')}"]
        if not self.privileged:
            options.append("userxattr")
        mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, ",".join(options))

    def unmount(self) -> None:
        """Unmount everything now, instead of when the namespace ends."""
        umount(self.stage)

    # ------------------------------------------------------------------------------------- edits
    def path_in_mount(self, path: str) -> str:
        """Translate a path of the sandbox to one of this namespace. Follows no link; raises ``ValueError`` for one."""
        best = max(
            (t for t in self.entries if path.startswith(t["target"] + "/")),
            key=lambda t: len(t["target"]),
            default=None,
        )
        if best is None or not best["writable"]:
            raise ValueError(f"{path} lies in no writable mount")
        here = self.root + best["target"]
        *parents, last = path.removeprefix(best["target"] + "/").split("/")
        if {"", ".", ".."} & {*parents, last}:
            raise ValueError(f"{path} is no plain path")
        for part in parents:
            here = f"{here}/{part}"
            if not os.path.lexists(here):
                make_writable_folder(here)
            if not stat.S_ISDIR(os.lstat(here).st_mode):
                raise ValueError(f"{path}: {part!r} is not a plain folder")
        return f"{here}/{last}"

    def edit(self, path: str, size: int | None, read: Callable[[int], bytes]) -> None:
        """Write one file before any code of the project runs, or delete it if ``size`` is None.

        ``read(size)`` returns the content.
        """
        data = b"" if size is None else read(size)
        where = self.path_in_mount(path)
        mode = 0o666
        if os.path.lexists(where):
            found = os.lstat(where).st_mode
            mode = 0o777 if stat.S_ISREG(found) and found & 0o100 else 0o666
            os.unlink(where)
        if size is None:
            self.remove_empty_parents(where)
            return
        descriptor = os.open(where, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(where, mode)

    def remove_empty_parents(self, where: str) -> None:
        """Remove folders that a deletion left empty, since git has no empty folders."""
        points = {self.root + entry["target"] for entry in self.entries}
        parent = os.path.dirname(where)
        while parent not in points:
            try:
                os.rmdir(parent)
            except OSError:
                return
            parent = os.path.dirname(parent)

    # --------------------------------------------------------------------------------- snapshot
    def snapshot(self, target: str, into: str) -> None:
        """Copy the changes in a mount, including whiteouts; the copy belongs to this user and is writable by all."""
        source = self.uppers[target]
        sizes = (os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(source) for name in names)
        if sum(sizes) > self.disk_bytes:  # sparse files use no space inside, but would be copied with all their zeros
            raise OSError(errno.EFBIG, f"{target} holds files that are larger than all that may be written")
        for folder, folders, files in os.walk(source):
            there = os.path.join(into, os.path.relpath(folder, source))
            os.makedirs(there, exist_ok=True)
            os.chmod(there, 0o777)
            for name in os.listxattr(folder, follow_symlinks=False):
                if name.endswith("overlay.opaque"):
                    os.setxattr(there, name, os.getxattr(folder, name))
            for name in files + [d for d in folders if os.path.islink(os.path.join(folder, d))]:
                copy_entry(os.path.join(folder, name), os.path.join(there, name))


def copy_entry(source: str, there: str) -> None:
    """Copy a link, a whiteout or a regular file, without set-id bits; other kinds of files are left out."""
    found = os.lstat(source)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source), there)
    elif stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        os.mknod(there, stat.S_IFCHR | 0o600, 0)
    elif stat.S_ISREG(found.st_mode):
        shutil.copyfile(source, there, follow_symlinks=False)
        os.chmod(there, (stat.S_IMODE(found.st_mode) & 0o777) | 0o666)
        os.utime(there, ns=(found.st_mtime_ns, found.st_mtime_ns))
