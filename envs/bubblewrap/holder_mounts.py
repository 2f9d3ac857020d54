"""The mounts of one sandbox, in the holder's own namespace. Standard library only, since the holder loads it.

Everything that a sandbox writes goes to two sized tmpfs, one for the mounts and temporary folders, one for results,
so that a full disk inside neither reaches the host nor silences the report.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 2, 4, 4096, 16384, 1 << 18, 2
BYTES_PER_FILE = 2048
"""A tmpfs of n bytes may hold n / 2048 files: empty ones use the host's memory as well."""

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise ``OSError`` for a failed C call."""
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    done = libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode() or None, flags, os.fsencode(options) or None
    )
    check(done, f"mount {kind or 'bind'} {source} on {target}")


def unshare(privileged: bool) -> None:
    """A mount namespace of our own; for ordinary users inside a user namespace that maps only themselves."""
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(CLONE_NEWNS if privileged else CLONE_NEWNS | CLONE_NEWUSER), "unshare")
    if not privileged:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)


def open_dir(path: str) -> str:
    """Make a folder that the sandbox's user may write."""
    os.makedirs(path, exist_ok=True)
    os.chmod(path, 0o777)
    return path


class Mounts:
    """Folders of the stage: ``m0``, ``m1``, … for the mounts, ``tmp``, ``home``, ``shm``, and ``results/out``."""

    def __init__(self, stage: str, entries: list[dict[str, Any]], disk_bytes: int, privileged: bool) -> None:
        self.stage, self.entries, self.disk_bytes, self.privileged = stage, entries, disk_bytes, privileged
        self.uppers: dict[str, str] = {}
        self.arguments: list[str] = []
        """Arguments for bubblewrap."""

    def build(self) -> None:
        """Mount everything."""
        results = self.disk_bytes // 2
        self.tmpfs(self.stage, self.disk_bytes)
        for number, entry in enumerate(self.entries):
            self.add(number, entry)
        for name in ("tmp", "home", "shm"):
            open_dir(f"{self.stage}/{name}")
        os.mkdir(f"{self.stage}/results")
        self.tmpfs(f"{self.stage}/results", results)
        out = open_dir(f"{self.stage}/results/out")
        self.arguments += ["--bind", f"{self.stage}/shm", "/dev/shm", "--bind", f"{self.stage}/tmp", "/tmp"]
        self.arguments += ["--bind", f"{self.stage}/home", "/home/agent", "--bind", out, "/excise/out"]

    @staticmethod
    def tmpfs(target: str, size: int) -> None:
        """A tmpfs with limits on bytes and on files."""
        options = f"size={size},nr_inodes={max(4096, size // BYTES_PER_FILE)},mode=0711"
        mount("excise", target, "tmpfs", MS_NOSUID | MS_NODEV, options)

    def open_out(self) -> int:
        """A descriptor of the results folder: the parent, in another namespace, reaches it by no path."""
        return os.open(f"{self.stage}/results/out", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def add(self, number: int, entry: dict[str, Any]) -> None:
        """One mount: a bind, an empty folder, or an overlay of layers."""
        base, target, layers = f"{self.stage}/m{number}", entry["target"], entry["layers"]
        merged = f"{base}/merged"
        os.makedirs(base)
        if len(layers) == 1 and not entry["writable"]:
            if os.path.isdir(layers[0]):
                os.mkdir(merged)
            else:
                os.close(os.open(merged, os.O_CREAT | os.O_WRONLY))
            mount(layers[0], merged, flags=MS_BIND)
        elif not layers:
            self.uppers[target] = open_dir(merged)
        else:
            os.mkdir(merged)
            self.overlay(base, merged, entry)
        self.arguments += ["--bind" if entry["writable"] else "--ro-bind", merged, target]

    def overlay(self, base: str, merged: str, entry: dict[str, Any]) -> None:
        """Layers, topmost first, with an upper one of the session's own if the mount is writable."""
        lower = ":".join(layer.replace("\\", "\\\\").replace(":", "\\:") for layer in entry["layers"])
        options = [f"lowerdir={lower}"]
        if entry["writable"]:
            upper = self.uppers[entry["target"]] = open_dir(f"{base}/upper")
            os.mkdir(f"{base}/work")
            options += [f"upperdir={upper}", f"workdir={base}/work"]
        if not self.privileged:
            options.append("userxattr")
        mount("overlay", merged, "overlay", MS_NOSUID | MS_NODEV, ",".join(options))

    def clear(self) -> None:
        """Let go of every mount; the namespace would take them along anyway."""
        libc.umount2(os.fsencode(self.stage), MNT_DETACH)

    # ------------------------------------------------------------------------------------- edits
    def inside(self, path: str) -> str:
        """Where a path of the sandbox lies in this namespace. Follows no link."""
        best = max(
            (t for t in self.entries if path.startswith(t["target"] + "/")),
            key=lambda t: len(t["target"]),
            default=None,
        )
        if best is None or not best["writable"]:
            raise ValueError(f"{path} lies in no writable mount")
        here = f"{self.stage}/m{self.entries.index(best)}/merged"
        *parents, last = path.removeprefix(best["target"] + "/").split("/")
        if {"", ".", ".."} & {*parents, last}:
            raise ValueError(f"{path} is no plain path")
        for part in parents:
            here = f"{here}/{part}"
            if not os.path.lexists(here):
                open_dir(here)
            if not stat.S_ISDIR(os.lstat(here).st_mode):
                raise ValueError(f"{path}: {part!r} is not a plain folder")
        return f"{here}/{last}"

    def edit(self, path: str, edit: dict[str, Any]) -> None:
        """Write, or delete, one file before anything of the project has run."""
        where = self.inside(path)
        mode = 0o666
        if os.path.lexists(where):
            found = os.lstat(where).st_mode
            mode = 0o777 if stat.S_ISREG(found) and found & 0o100 else 0o666
            os.unlink(where)
        if edit.get("delete"):
            self.remove_empty_parents(where)
            return
        descriptor = os.open(where, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "wb") as file, open(edit["file"], "rb") as content:
            shutil.copyfileobj(content, file)
        os.chmod(where, mode)

    @staticmethod
    def remove_empty_parents(where: str) -> None:
        """Folders that a deletion leaves empty do not exist for git."""
        parent = os.path.dirname(where)
        while not parent.endswith("/merged"):
            try:
                os.rmdir(parent)
            except OSError:
                return
            parent = os.path.dirname(parent)

    # --------------------------------------------------------------------------------- snapshot
    def snapshot(self, target: str, into: str) -> None:
        """Copy what was written to a mount, whiteouts included, owned by us and open to all."""
        source = self.uppers[target]
        for folder, folders, files in os.walk(source):
            there = os.path.join(into, os.path.relpath(folder, source))
            os.makedirs(there, exist_ok=True)
            os.chmod(there, 0o777)
            for name in os.listxattr(folder, follow_symlinks=False):
                if name.endswith("overlay.opaque"):
                    os.setxattr(there, name, os.getxattr(folder, name))
            for name in files + [d for d in folders if os.path.islink(os.path.join(folder, d))]:
                copy(os.path.join(folder, name), os.path.join(there, name))


def copy(source: str, there: str) -> None:
    """Copy a link, a whiteout or a file; nothing else. No set-id bit survives: the copy is ours, the code is not."""
    found = os.lstat(source)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source), there)
    elif stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        os.mknod(there, stat.S_IFCHR | 0o600, 0)
    elif stat.S_ISREG(found.st_mode):
        shutil.copyfile(source, there, follow_symlinks=False)
        os.chmod(there, (stat.S_IMODE(found.st_mode) & 0o777) | 0o666)
        os.utime(there, ns=(found.st_mtime_ns, found.st_mtime_ns))
