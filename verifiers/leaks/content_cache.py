"""A cache of fingerprints, keyed by file content: equal files are decoded once for all environments and tasks.

The key is BLAKE3 (three times as fast as ``hashlib``'s SHA-256); one SQLite file serves all workers.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from blake3 import blake3

from excise.system.deadline import check_deadline
from excise.verifiers.leaks.decoding import fragments, read_file
from excise.verifiers.leaks.fingerprints import FORMAT, Hashes, code_fingerprints, text_fingerprints
from excise.verifiers.leaks.fragments import CodeShape, DecodingLimits, FragmentKind

_KINDS = tuple(FragmentKind)
_MAX_MEMORY_BYTES = 512 << 20
"""Bytes of fingerprints that one process keeps in memory."""


@dataclass(frozen=True, slots=True)
class Content:
    """The fingerprints of one file's bytes."""

    fragments: tuple[tuple[FragmentKind, Hashes], ...]
    """(kind, fingerprints) of each fragment; all code objects of a file are merged into one."""
    decoders: tuple[str, ...] = ()
    """Names of the decoders that found something."""
    partial: bool = False
    """Whether a part of the file was not decoded: too large, too deep or damaged."""

    @property
    def size(self) -> int:
        """Number of fingerprints."""
        return sum(len(found) for _, found in self.fragments)


def read_content(data: bytes, *, only_python: bool = False) -> Content:
    """Decode a file's bytes. With ``only_python``, texts without any word that is typical of Python are skipped."""
    limits = DecodingLimits(only_python=only_python)
    found: list[tuple[FragmentKind, Hashes]] = []
    codes: list[CodeShape] = []
    for fragment in fragments(data, limits):
        check_deadline()
        if fragment.code is not None:
            codes.append(fragment.code)
        elif len(numbers := text_fingerprints(fragment.data)):
            found.append((fragment.kind, numbers))
    if codes:
        found.append((FragmentKind.CODE, code_fingerprints(codes)))
    return Content(tuple(found), tuple(sorted(limits.used)), limits.partial)


class ContentCache:
    """Caches decoded content by digest: in memory and, with a ``folder``, in an SQLite file there."""

    def __init__(self, folder: Path | None = None) -> None:
        self._known: dict[bytes, Content] = {}
        self._bytes = 0
        self._base: sqlite3.Connection | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._base = _open(folder / f"contents-{FORMAT}.sqlite")

    def of_file(self, path: Path) -> Content | None:
        """The fingerprints of a file, from the cache if it is there; ``None`` if the file cannot be read."""
        data = read_file(path)
        return None if data is None else self.of(data)

    def of(self, data: bytes) -> Content:
        """The fingerprints of a file's bytes, from the cache if they are there."""
        digest = blake3(data).digest()
        if (known := self._known.get(digest)) is not None:
            return known
        content = self._load(digest)
        if content is None:
            content = read_content(data)
            self._save(digest, content)
        if self._bytes > _MAX_MEMORY_BYTES:
            self._known.clear()
            self._bytes = 0
        self._known[digest] = content
        self._bytes += 8 * content.size + 200
        return content

    # ------------------------------------------------------------------------------------- disk
    def _load(self, digest: bytes) -> Content | None:
        if self._base is None:
            return None
        row = self._base.execute("SELECT facts, features FROM contents WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        facts, data = json.loads(row[0]), np.frombuffer(row[1], dtype=np.uint64)
        found, place = [], 0
        for kind, size in facts["pieces"]:
            found.append((_KINDS[kind], data[place : place + size]))
            place += size
        return Content(tuple(found), tuple(facts["decoders"]), facts["partial"])

    def _save(self, digest: bytes, content: Content) -> None:
        if self._base is None:
            return
        sizes = [(_KINDS.index(kind), len(numbers)) for kind, numbers in content.fragments]
        facts = json.dumps({"pieces": sizes, "decoders": content.decoders, "partial": content.partial})
        data = b"".join(numbers.tobytes() for _, numbers in content.fragments)
        self._base.execute("INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", (digest, facts, data))


def _open(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(str(path), timeout=60, isolation_level=None, check_same_thread=False)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=OFF")
    base.execute("CREATE TABLE IF NOT EXISTS contents (digest BLOB PRIMARY KEY, facts TEXT, features BLOB)")
    return base
