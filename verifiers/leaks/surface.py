"""Everything outside of the tree that agents of one environment can read: indexes of environment, interpreter, system.

Made once for all tasks of an environment, and parts of it for all environments that share them: an index is named after
the paths, sizes and times of change of what it holds, as the sandbox listed them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.envs.sandbox.mount_points import ENV, REPO, library_of
from excise.protocols import Mount, Session
from excise.system.deadline import check_deadline
from excise.system.locks import host_folder, host_lock
from excise.verifiers.agent_workspace import Workspace
from excise.verifiers.leaks.content_cache import Content, Contents, read_content
from excise.verifiers.leaks.decoding import read_file
from excise.verifiers.leaks.feature_index import Index
from excise.verifiers.leaks.features import FORMAT
from excise.verifiers.leaks.fragments import MAX_PART
from excise.verifiers.leaks.readable_files import Readable, handed_out, is_same, list_readable, on_this_side
from excise.verifiers.workbench import Workbench

LIBRARY, ENVIRONMENT, SYSTEM, PROCESSES = "the standard library", "the environment", "the system", "processes"
SANDBOX = "the sandbox's own files"
_MADE_ANEW = ("/etc/", "/home/", "/run/", "/tmp/", "/var/", "/excise/")
"""Where each sandbox, or the process that makes them, writes files of its own; few, but never those of another."""

_PARTS = 8
"""Indexes of the system's files."""
_MAX_AGE_S = 30 * 86_400
_MAX_KEPT = 3 << 30
"""Bytes of indexes that are kept on this machine. Those of its system are most of it: up to 1 GiB for a full one."""
_IN_USE_S = 600
"""So long after its last use an index is not dropped for its size: others may be about to read it."""


@dataclass(frozen=True, slots=True)
class Surface:
    """Indexes by root."""

    roots: dict[str, tuple[Index, ...]]
    """:data:`ENVIRONMENT`, :data:`LIBRARY`, :data:`SYSTEM`, :data:`SANDBOX` and :data:`PROCESSES`."""

    @property
    def library(self) -> Index:
        """The interpreter's own files: what is common there is an idiom."""
        return self.roots[LIBRARY][0]

    def indexes(self) -> Iterator[Index]:
        """All of them."""
        for indexes in self.roots.values():
            yield from indexes


_known: dict[str, Surface] = {}


def surface_of(bench: Workbench) -> Surface:
    """The surface of a workbench's environment; listed once per process and environment.

    Raises :class:`SandboxError`.
    """
    key = f"{bench.prepared.layers.env} {bench.sandbox.name}"
    if key not in _known:
        if len(_known) > 3:
            _known.clear()
        _known[key] = _surface(bench)
    return _known[key]


def contents_of(bench: Workbench) -> Contents:
    """Features by content, shared by all that use the same cache folder; one object per process."""
    folder = Path(bench.prepared.layers.env).parent.parent / "leaks"
    if folder not in _contents:
        _contents[folder] = Contents(folder)
    return _contents[folder]


_contents: dict[Path, Contents] = {}


def _surface(bench: Workbench) -> Surface:
    empty = Path(bench.prepared.layers.env).parent.parent / "leaks" / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    space = Workspace(bench, empty)
    mounts = space.mounts()
    with space.open() as session:
        listed, shown = list_readable(session)
        groups = _grouped(bench, listed)
        reader = _Reader(session, mounts, contents_of(bench))
        roots: dict[str, tuple[Index, ...]] = {
            name: (reader.index(name, groups[name]),) for name in (LIBRARY, ENVIRONMENT)
        }
        roots[SYSTEM] = reader.system(groups[SYSTEM])
        roots[SANDBOX] = (Index.build(reader.read(groups[SANDBOX], SANDBOX)),)
    roots[PROCESSES] = (Index.build([("/proc", len(shown), read_content(shown))]),)
    return Surface(roots)


def _grouped(bench: Workbench, listed: Sequence[Readable]) -> dict[str, list[Readable]]:
    library = f"{library_of(bench.interpreter)}/"
    groups: dict[str, list[Readable]] = {LIBRARY: [], ENVIRONMENT: [], SYSTEM: [], SANDBOX: []}
    for row in listed:
        if row.path.startswith(f"{REPO}/"):
            continue
        if row.path.startswith(f"{ENV}/"):
            name = ENVIRONMENT
        elif row.path.startswith(library):
            name = LIBRARY
        else:
            name = SANDBOX if row.path.startswith(_MADE_ANEW) else SYSTEM
        groups[name].append(row)
    return groups


@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes indexes of files that a session showed."""

    session: Session
    mounts: Sequence[Mount]
    contents: Contents

    def index(self, name: str, rows: Sequence[Readable]) -> Index:
        """The index of some files, as it was kept or made now."""
        stamp = hashlib.sha256(repr((FORMAT, name)).encode())
        for row in rows:
            check_deadline()
            stamp.update(f"{row.path}\0{row.size}\0{row.changed_ns}\n".encode(errors="surrogateescape"))
        folder = host_folder() / "leaks" / stamp.hexdigest()[:32]
        if not _used(folder):
            with host_lock(f"leaks {folder.name}"):
                if not _used(folder):
                    Index.build(self.read(rows, name)).save(folder)
                    forget_old(folder.parent, _MAX_KEPT)
        return Index.load(folder)

    def system(self, rows: Sequence[Readable]) -> tuple[Index, ...]:
        """Indexes of the system by folders: other interpreters share most of them, and workers share the work."""
        parts: list[list[Readable]] = [[] for _ in range(_PARTS)]
        for row in rows:
            parts[zlib.crc32("/".join(row.path.split("/")[:4]).encode(errors="replace")) % _PARTS].append(row)
        first = os.getpid() % _PARTS
        made = {place % _PARTS: self.index(SYSTEM, parts[place % _PARTS]) for place in range(first, first + _PARTS)}
        return tuple(made[place] for place in range(_PARTS))

    def read(self, rows: Sequence[Readable], name: str) -> Iterator[tuple[str, int, Content | None]]:
        """Features of each file."""
        elsewhere = []
        for row in rows:
            path = on_this_side(row.path, self.mounts)
            if path is None or not is_same(row, path):
                elsewhere.append(row)
                continue
            yield row.path, row.size, self._content(read_file(path), name)
        given = set()
        for row, data in handed_out(self.session, elsewhere, MAX_PART):
            given.add(row.path)
            yield row.path, row.size, self._content(data, name)
        for row in elsewhere:
            if row.path not in given:
                yield row.path, row.size, None

    def _content(self, data: bytes | None, name: str) -> Content | None:
        """Features of a file. Those of environments are kept, since others have the same packages; of the system's
        files only those texts count that may be Python."""
        if data is None:
            return None
        return self.contents.of(data) if name == ENVIRONMENT else read_content(data, only_python=name == SYSTEM)


def _used(folder: Path) -> bool:
    """Whether an index is there; if so, it counts as used now, and :func:`forget_old` leaves it to its reader."""
    try:
        os.utime(folder)
    except FileNotFoundError:
        return False
    return True


def forget_old(kept: Path, max_bytes: int) -> None:
    """Drop indexes that nobody has used for a month, and those used longest ago until all take ``max_bytes`` at most:
    they are of environments and states of the host that are gone."""
    now, total = time.time(), 0
    found = []
    for folder in kept.iterdir():
        with contextlib.suppress(OSError):  # another process has renamed or dropped it
            size = sum(file.stat().st_size for file in folder.iterdir())
            found.append((now - folder.stat().st_mtime, size, folder))
    for unused_s, size, folder in sorted(found):
        total += size
        if unused_s > _MAX_AGE_S or (total > max_bytes and unused_s > _IN_USE_S):
            shutil.rmtree(folder, ignore_errors=True)
