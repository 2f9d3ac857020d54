"""Fingerprints of code: hashes of runs of three lines, and an index of everything a sandbox can read.

The index turns the question round: instead of searching every file for every task's lines, each environment's files
are read once, and a task's lines are looked up. Files and archives are read by content, not chosen by name.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
import zipfile
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

RUN = 3
MIN_CHARS = 40
MAX_FILE = 8 << 20
MAX_MEMBERS = 20_000
_SPACE = re.compile(r"\s+")


def normal_lines(text: str) -> list[str]:
    """Lines without indentation, inner white space folded, blank ones dropped."""
    return [line for raw in text.splitlines() if (line := _SPACE.sub(" ", raw).strip())]


def shingles(text: str) -> set[int]:
    """64-bit hashes of every run of :data:`RUN` lines with at least :data:`MIN_CHARS` characters.

    A shorter text gives one hash of all its lines, if they are long enough to mean anything.
    """
    lines = normal_lines(text)
    runs = ([lines] if lines else []) if len(lines) < RUN else [lines[i : i + RUN] for i in range(len(lines) - RUN + 1)]
    return {_hash("\n".join(run)) for run in runs if sum(map(len, run)) >= MIN_CHARS}


def file_shingles(text: str) -> set[int]:
    """Hashes of a file to look in: runs of three lines, and of two and one for short functions."""
    lines = normal_lines(text)
    found = set()
    for size in range(1, RUN + 1):
        for i in range(len(lines) - size + 1):
            run = lines[i : i + size]
            if sum(map(len, run)) >= MIN_CHARS:
                found.add(_hash("\n".join(run)))
    return found


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest(), "little")


def texts_of(path: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of a file: itself if it is text, the members if it is an archive; nothing for other binaries."""
    try:
        if path.stat().st_size > MAX_FILE:
            return
        data = path.read_bytes()
    except OSError:
        return
    yield from _texts(str(path), data, depth=0)


def _texts(name: str, data: bytes, depth: int) -> Iterator[tuple[str, str]]:
    if depth < 3:
        members = _members(data)
        if members is not None:
            for inner, content in members:
                yield from _texts(f"{name}!{inner}", content, depth + 1)
            return
    if b"\0" not in data[:4096]:
        yield name, data.decode("utf-8", errors="replace")


def _members(data: bytes) -> list[tuple[str, bytes]] | None:
    """Members of a zip, tar or gzip; ``None`` for anything else. Broken archives have no members."""
    try:
        if data[:4] == b"PK\x03\x04":
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                infos = [i for i in archive.infolist() if not i.is_dir() and i.file_size <= MAX_FILE][:MAX_MEMBERS]
                return [(i.filename, archive.read(i)) for i in infos]
        if data[:2] == b"\x1f\x8b" or data[257:262] == b"ustar" or data[:6] == b"\xfd7zXZ\x00" or data[:3] == b"BZh":
            try:
                with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                    files = [m for m in tar if m.isfile() and m.size <= MAX_FILE][:MAX_MEMBERS]
                    opened = [(m.name, tar.extractfile(m)) for m in files]
                    return [(name, file.read()) for name, file in opened if file is not None]
            except tarfile.TarError:
                return [("", gzip.decompress(data))] if data[:2] == b"\x1f\x8b" else []
    except (OSError, zipfile.BadZipFile, RuntimeError, EOFError, ValueError, NotImplementedError):
        return []
    return None


@dataclass(frozen=True, slots=True)
class Index:
    """Sorted hashes of everything below some folders."""

    hashes: array[int]

    @classmethod
    def build(cls, roots: Iterable[Path]) -> Index:
        """Read every file that ``roots`` are or hold."""
        found: set[int] = set()
        for path in files_below(roots):
            for _, text in texts_of(path):
                found |= file_shingles(text)
        return cls(array("Q", sorted(found)))

    def save(self, path: Path) -> None:
        """Write atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        scratch.write_bytes(self.hashes.tobytes())
        scratch.rename(path)

    @classmethod
    def load(cls, path: Path) -> Index:
        """Read what :meth:`save` wrote."""
        hashes = array("Q")
        hashes.frombytes(path.read_bytes())
        return cls(hashes)

    def hits(self, wanted: Iterable[int]) -> set[int]:
        """Those of the hashes that are in the index."""
        found = set()
        for value in wanted:
            place = bisect_left(self.hashes, value)
            if place < len(self.hashes) and self.hashes[place] == value:
                found.add(value)
        return found


def files_below(roots: Iterable[Path], suffixes: frozenset[str] | None = None) -> Iterator[Path]:
    """Regular files, links not followed."""
    for root in roots:
        if root.is_file():
            yield root
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                path = Path(folder) / name
                if (suffixes is None or path.suffix in suffixes) and path.is_file() and not path.is_symlink():
                    yield path
