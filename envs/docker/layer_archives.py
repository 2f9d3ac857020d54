"""Layers as tar archives: packed for an image, and written from the archive that a container sends.

A container's archive is untrusted: every entry is written below its target folder and through plain folders only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO

from excise.envs.sandbox.overlay_layers import Tree, merged
from excise.errors import SandboxError

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class MountContent:
    """The content of a mount that is added to an image."""

    layers: tuple[str, ...]
    """Layers on the host, topmost first, or one file; never changed."""
    target: str
    """The mount's path in the sandbox."""
    image_path: str
    """The path in the image."""
    covered: frozenset[str] = frozenset()
    """Paths of other mounts in this one: what the layers hold there is left out."""

    def content_hash(self) -> str:
        """Hash of names, modes, times and contents; cached in this process. Raises :class:`SandboxError`."""
        try:
            known = tuple((layer, os.lstat(layer).st_ino, os.lstat(layer).st_mtime_ns) for layer in self.layers)
            return _content_hash(known, self.target, self.covered)
        except OSError as error:
            raise SandboxError(f"A layer of the sandbox is gone or cannot be read: {error}.") from error

    def pack(self, sink: IO[bytes]) -> None:
        """Write the content as an archive in which everything belongs to root."""
        with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK) as archive:
            for folder in list(reversed(Path(self.image_path).parents))[1:]:
                archive.addfile(_folder(folder))
            for inside, path in self.tree().items():
                _add(archive, path, str(Path(self.image_path, inside)).lstrip("/"))

    def tree(self) -> Tree:
        """The merged layers, without the content of the paths in ``covered``."""
        below = tuple(f"{path}/" for path in self.covered)
        tree = merged(self.layers)
        return {i: p for i, p in tree.items() if not below or not f"{self.target}/{i}".startswith(below)}


@lru_cache(maxsize=256)
def _content_hash(known: tuple[tuple[str, int, int], ...], target: str, covered: frozenset[str]) -> str:
    digest = hashlib.sha256()
    content = MountContent(tuple(layer for layer, _, _ in known), target, target, covered)
    for inside, path in sorted(content.tree().items()):
        info = path.lstat()
        plain = stat.S_ISREG(info.st_mode)
        digest.update(f"{inside}\0{info.st_mode:o}\0{int(info.st_mtime) if plain else 0}\0".encode("utf-8", "replace"))
        if plain:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        elif stat.S_ISLNK(info.st_mode):
            digest.update(os.fsencode(os.readlink(path)))
    return digest.hexdigest()


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """Add a file, folder or link; other kinds (sockets, devices) are left out."""
    info = archive.gettarinfo(path, name)
    if info is None or not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
        return
    if info.islnk():  # in a sandbox, hard links are files of their own
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode &= 0o777
    changed_ns = path.lstat().st_mtime_ns
    info.pax_headers = {"mtime": f"{changed_ns // 10**9}.{changed_ns % 10**9:09d}"}  # a float loses nanoseconds
    if info.isreg():
        with path.open("rb") as file:
            archive.addfile(info, file)
    else:
        archive.addfile(info)


def _folder(path: Path) -> tarfile.TarInfo:
    """The entry of a parent folder; one that the engine creates itself would not be readable by all users."""
    info = tarfile.TarInfo(str(path).lstrip("/"))
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info


def write_results(folder: Path, results: Mapping[str, bytes]) -> None:
    """Write files into a folder; names that contain a path separator are left out."""
    for name, data in results.items():
        if name and name not in {".", ".."} and "/" not in name:
            path = folder / name
            path.unlink(missing_ok=True)
            path.write_bytes(data)


class LayerWriter:
    """Collects the chunks of an archive, and writes them as a layer when the ``with`` block ends."""

    def __init__(self, into: Path) -> None:
        self.into = into
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by __exit__

    def __enter__(self) -> LayerWriter:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write()
        finally:
            self._file.close()

    def feed(self, chunk: bytes) -> None:
        """Add the next chunk."""
        self._file.write(chunk)

    def _write(self) -> None:
        self.into.mkdir(parents=True, exist_ok=True)
        self.into.chmod(0o777)
        try:
            with tarfile.open(fileobj=self._file, mode="r:") as archive:
                for entry in archive:
                    self._write_entry(archive, entry)
        except (tarfile.TarError, OSError) as error:
            raise SandboxError(f"no snapshot in {self.into}: {error}") from error

    def _write_entry(self, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        path = self.path_for(entry.name)
        if entry.isdir():
            path.mkdir(exist_ok=True)
            path.chmod(0o777)
        elif entry.issym():
            path.symlink_to(entry.linkname)
        elif entry.isreg():
            source = archive.extractfile(entry)
            assert source is not None
            with source, path.open("xb") as file:
                shutil.copyfileobj(source, file)
            path.chmod((entry.mode & 0o777) | 0o666)
            os.utime(path, (entry.mtime, entry.mtime))

    def path_for(self, name: str) -> Path:
        """The path of an entry: below the layer, through plain folders only. Raises ``OSError`` for any other."""
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or PurePosixPath(name).is_absolute():
            raise OSError(f"{name!r} is no path inside")
        here = self.into
        for part in parts[:-1]:
            here = here / part
            if not os.path.lexists(here):
                here.mkdir()
                here.chmod(0o777)
            if not stat.S_ISDIR(here.lstat().st_mode):
                raise OSError(f"{name!r} leads through a link")
        return here / parts[-1]

    def hide(self, deleted: Sequence[str]) -> None:
        """Mark deleted paths by whiteouts."""
        for name in deleted:
            path = self.path_for(name)
            with contextlib.suppress(FileExistsError):
                os.mknod(path, stat.S_IFCHR | 0o600, 0)
