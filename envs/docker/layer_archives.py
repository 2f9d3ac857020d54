"""Layers as one tree, its content hash, and the archive that carries it into an image."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from excise.envs.sandbox.overlay_layers import Tree, merged
from excise.errors import SandboxError

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A mount's content on its way into an image."""

    layers: tuple[str, ...]
    """Host folders, topmost first, or one file; never changed."""
    target: str
    """Where the sandbox sees it."""
    where: str
    """Where the image has it."""
    empty: frozenset[str] = frozenset()
    """Paths in the sandbox that are empty folders, whatever the layers have there."""

    def content_hash(self) -> str:
        """Hash of names, modes, times and content; made once per process. Raises :class:`SandboxError`."""
        try:
            known = tuple((layer, os.lstat(layer).st_ino, os.lstat(layer).st_mtime_ns) for layer in self.layers)
            return _content_hash(known, self.target, self.empty)
        except OSError as error:
            raise SandboxError(f"A layer of the sandbox is gone or cannot be read: {error}.") from error

    def pack(self, sink: IO[bytes]) -> None:
        """Write it as an archive. Everything belongs to root."""
        with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK) as archive:
            for folder in list(reversed(Path(self.where).parents))[1:]:
                archive.addfile(_folder(folder))
            for inside, path in self.tree().items():
                _add(archive, path, str(Path(self.where, inside)).lstrip("/"))

    def tree(self) -> Tree:
        """What the layers show, but for what is hidden."""
        below = tuple(f"{path}/" for path in self.empty)
        tree = merged(self.layers)
        return {i: p for i, p in tree.items() if not below or not f"{self.target}/{i}".startswith(below)}


@lru_cache(maxsize=256)
def _content_hash(known: tuple[tuple[str, int, int], ...], target: str, empty: frozenset[str]) -> str:
    digest = hashlib.sha256()
    part = Part(tuple(layer for layer, _, _ in known), target, target, empty)
    for inside, path in sorted(part.tree().items()):
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
    """One file, folder or link; sockets and devices are nobody's sources."""
    info = archive.gettarinfo(path, name)
    if info is None or not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
        return
    if info.islnk():  # a file of its own here, as in every sandbox
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode &= 0o777
    if info.isreg():
        with path.open("rb") as file:
            archive.addfile(info, file)
    else:
        archive.addfile(info)


def _folder(path: Path) -> tarfile.TarInfo:
    """A folder above a part: the engine makes none by itself that everybody may enter."""
    info = tarfile.TarInfo(str(path).lstrip("/"))
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info
