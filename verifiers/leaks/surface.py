"""The readable surface: fingerprint indexes of everything outside the tree that agents of one environment can read.

Built once for all tasks of an environment. Parts are shared between environments: an index is named after the paths,
sizes and modification times of its files, as the sandbox listed them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from blake3 import blake3

from excise.envs.sandbox.mount_points import ENV, REPO, library_of
from excise.extractors.languages import get_language
from excise.languages import LANGUAGES
from excise.protocols import Mount, Session
from excise.system.deadline import check_deadline
from excise.system.locks import host_folder, host_lock
from excise.verifiers.agent_workspace import Workspace
from excise.verifiers.leaks.content_cache import Content, ContentCache, read_content
from excise.verifiers.leaks.decoders.strings import is_native
from excise.verifiers.leaks.decoding import read_file
from excise.verifiers.leaks.fingerprint_index import FingerprintIndex
from excise.verifiers.leaks.fingerprints import FORMAT
from excise.verifiers.leaks.fragments import MAX_PART
from excise.verifiers.leaks.readable_files import ReadableFile, host_file, is_same, list_readable, read_through_sandbox
from excise.verifiers.workbench import Workbench

LIBRARY, ENVIRONMENT, SYSTEM, PROCESSES = "the standard library", "the environment", "the system", "processes"
SANDBOX = "the sandbox's own files"
_MADE_ANEW = ("/etc/", "/home/", "/run/", "/tmp/", "/var/", "/excise/")
"""Folders where each sandbox has files of its own, which are never in a shared index."""

_NOTHING = Content(())
_HEADER_BYTES = 16
"""Length of a byte code file's header: format, flags, modification time and size of the source."""
_INTERPRETER = re.compile(r"python3\.\d+|libpython3\.\d+\.so[\d.]*")
"""Names of an interpreter's program and library."""
_RECENT = 16
"""Number of files whose content is remembered: packages hold many equal small files."""
_PARTS = 4
"""Number of indexes that the system's files are divided into, so that workers can divide the work."""
_MAX_AGE_S = 30 * 86_400
"""Seconds without use after which an index is evicted."""
_MAX_CACHE_BYTES = 3 << 30
"""Bytes of indexes that are kept on this machine; those of a full system take up to 1 GiB."""
_IN_USE_S = 600
"""Seconds after its last use in which an index is not evicted for its size: a reader may still need it."""


@dataclass(frozen=True, slots=True)
class Surface:
    """The fingerprint indexes of one environment, by where the files are."""

    roots: dict[str, tuple[FingerprintIndex, ...]]
    """Indexes of :data:`ENVIRONMENT`, :data:`LIBRARY`, :data:`SYSTEM`, :data:`SANDBOX` and :data:`PROCESSES`."""

    @property
    def library(self) -> FingerprintIndex:
        """The index of the interpreter's own files: what is common in them is an idiom, not a leak."""
        return self.roots[LIBRARY][0]

    def indexes(self) -> Iterator[FingerprintIndex]:
        """The indexes of all roots."""
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


def content_cache_of(bench: Workbench) -> ContentCache:
    """The content cache of a workbench's cache folder; one object per folder and process."""
    folder = Path(bench.prepared.layers.env).parent.parent / "leaks"
    if folder not in _contents:
        _contents[folder] = ContentCache(folder)
    return _contents[folder]


_contents: dict[Path, ContentCache] = {}


def _surface(bench: Workbench) -> Surface:
    empty = Path(bench.prepared.layers.env).parent.parent / "leaks" / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    space = Workspace(bench, empty)
    mounts = space.mounts()
    with space.open() as session:
        listed, shown = list_readable(session)
        groups = _grouped(bench, listed)
        reader = _Reader(session, mounts, content_cache_of(bench))
        library, environment, *system = reader.indexes(
            [(LIBRARY, groups[LIBRARY]), (ENVIRONMENT, groups[ENVIRONMENT]), *_system_parts(groups[SYSTEM])]
        )
        roots = {LIBRARY: (library,), ENVIRONMENT: (environment,), SYSTEM: tuple(system)}
        roots[SANDBOX] = (FingerprintIndex.build(reader.read(groups[SANDBOX], SANDBOX)),)
    roots[PROCESSES] = (FingerprintIndex.build([("/proc", len(shown), read_content(shown))]),)
    return Surface(roots)


def _grouped(bench: Workbench, listed: Sequence[ReadableFile]) -> dict[str, list[ReadableFile]]:
    library = f"{library_of(bench.interpreter)}/"
    groups: dict[str, list[ReadableFile]] = {LIBRARY: [], ENVIRONMENT: [], SYSTEM: [], SANDBOX: []}
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
    """Reads files that a session listed and builds indexes of them."""

    session: Session
    mounts: Sequence[Mount]
    contents: ContentCache
    recent: dict[tuple[str, bytes], Content] = field(default_factory=dict)
    """Root and digest to content, of the last files that are not in ``contents``."""

    def indexes(self, units: Sequence[tuple[str, Sequence[ReadableFile]]]) -> list[FingerprintIndex]:
        """The index of each unit (a root and files of it), from the cache or newly built.

        Workers that need the same indexes divide the work: each builds those that no other one is building, and then
        waits for the rest.
        """
        folders = [_index_folder(name, rows) for name, rows in units]
        for wait in (False, True):
            for (name, rows), folder in zip(units, folders, strict=True):
                if not _mark_used(folder):
                    with host_lock(f"leaks {folder.name}", wait=wait) as held:
                        if held and not _mark_used(folder):
                            FingerprintIndex.build(self.read(rows, name)).save(folder)
                            evict_old(folder.parent, _MAX_CACHE_BYTES)
        return [FingerprintIndex.load(folder) for folder in folders]

    def read(self, rows: Sequence[ReadableFile], name: str) -> Iterator[tuple[str, int, Content | None]]:
        """Yield (path, size in bytes, content) of each file; the content is ``None`` if the file cannot be read."""
        elsewhere = []
        for row in rows:
            path = host_file(row.path, self.mounts)
            if path is None or not is_same(row, path):
                elsewhere.append(row)
                continue
            derived = is_derived(path, keep_plain=name == LIBRARY) if name in (LIBRARY, SYSTEM) else False
            derived = derived or (name == SYSTEM and is_made_by_a_toolchain(row.path))
            read_as = LIBRARY if name == SYSTEM and is_copy(row.path) else name
            yield row.path, row.size, _NOTHING if derived else self._content(read_file(path), read_as)
        received = set()
        for row, data in read_through_sandbox(self.session, elsewhere, MAX_PART):
            received.add(row.path)
            yield row.path, row.size, self._content(data, name)
        for row in elsewhere:
            if row.path not in received:
                yield row.path, row.size, None

    def _content(self, data: bytes | None, name: str) -> Content | None:
        """The content of a file. That of environments is cached, because other environments have the same packages; of
        the system's files, only texts that may be Python are decoded."""
        if data is None:
            return None
        if name == ENVIRONMENT:
            return self.contents.of(data)
        key = name, blake3(data).digest()
        if key not in self.recent:
            if len(self.recent) >= _RECENT:
                del self.recent[next(iter(self.recent))]
            self.recent[key] = read_content(data, only_python=name == SYSTEM)
        return self.recent[key]


@cache
def _paths(kind: str) -> re.Pattern[str] | None:
    """The paths that the scan rules of all languages name as ``derived`` or ``copies``; ``None`` if there are none."""
    found = [rule for name in LANGUAGES if (rule := getattr(get_language(name).scan_rules, kind))]
    return re.compile("|".join(found)) if found else None


def is_made_by_a_toolchain(path: str) -> bool:
    """Whether a toolchain made the file of the system of others, which are read: its compiled library, its programs."""
    rule = _paths("derived")
    return rule is not None and rule.match(path) is not None


def is_copy(path: str) -> bool:
    """Whether the file of the system is in a place for copies of projects, and is read whole."""
    rule = _paths("copies")
    return rule is not None and rule.match(path) is not None


def is_derived(path: Path, *, keep_plain: bool) -> bool:
    """Whether a file of the interpreter or the system was made from files that lie beside it and are read.

    That is optimised byte code (without assertions, or also docstrings) beside the plain byte code, byte code beside
    its source unless ``keep_plain``, and the interpreter itself, which holds byte code of its library.
    """
    if _INTERPRETER.fullmatch(path.name):
        return is_native(_first_bytes(path))
    if path.suffix != ".pyc":
        return False
    stem, _, level = path.name.removesuffix(".pyc").partition(".opt-")
    header = _first_bytes(path)
    if len(header) < _HEADER_BYTES:
        return False
    if level in ("1", "2"):
        return header == _first_bytes(path.with_name(f"{stem}.pyc"))
    return not level and not keep_plain and _is_made_from(header, path.parent.parent / f"{stem.partition('.')[0]}.py")


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as opened:
            return opened.read(_HEADER_BYTES)
    except OSError:
        return b""


def _is_made_from(header: bytes, source: Path) -> bool:
    """Whether byte code with this header was made from the file: it names its modification time and size."""
    try:
        status = source.stat()
    except OSError:
        return False
    flags, changed, size = struct.unpack("<III", header[4:])
    return not flags and changed == int(status.st_mtime) & 0xFFFFFFFF and size == status.st_size & 0xFFFFFFFF


def _index_folder(name: str, rows: Sequence[ReadableFile]) -> Path:
    """The cache folder of the index of some files; its name is a hash of their paths, sizes and modification times."""
    stamp = hashlib.sha256(repr((FORMAT, name)).encode())
    for row in rows:
        check_deadline()
        stamp.update(f"{row.path}\0{row.size}\0{row.changed_ns}\n".encode(errors="surrogateescape"))
    return host_folder() / "leaks" / stamp.hexdigest()[:32]


def _system_parts(rows: Sequence[ReadableFile]) -> list[tuple[str, Sequence[ReadableFile]]]:
    """The system's files, divided by folder: environments with other interpreters share most of the parts."""
    parts: list[list[ReadableFile]] = [[] for _ in range(_PARTS)]
    for row in rows:
        folder = "/".join(row.path.split("/")[:4]).encode(errors="replace")
        parts[zlib.crc32(folder) % _PARTS].append(row)
    return [(SYSTEM, part) for part in parts]


def _mark_used(folder: Path) -> bool:
    """Return whether an index exists. If so, set its time of last use to now, so that :func:`evict_old` keeps it."""
    try:
        os.utime(folder)
    except FileNotFoundError:
        return False
    return True


def evict_old(kept: Path, max_bytes: int) -> None:
    """Evict indexes unused for :data:`_MAX_AGE_S`, and the least recently used ones beyond ``max_bytes`` in total.

    Old indexes belong to environments and states of the host that no longer exist.
    """
    now, total = time.time(), 0
    found = []
    for folder in kept.iterdir():
        with contextlib.suppress(OSError):  # another process renamed or evicted it
            size = sum(file.stat().st_size for file in folder.iterdir())
            found.append((now - folder.stat().st_mtime, size, folder))
    for unused_s, size, folder in sorted(found):
        total += size
        if unused_s > _MAX_AGE_S or (total > max_bytes and unused_s > _IN_USE_S):
            shutil.rmtree(folder, ignore_errors=True)
