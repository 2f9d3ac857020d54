"""Fingerprints of code: hashes of runs of three lines, and an index of everything a sandbox can read.

The index turns the question round: instead of searching every file for every task's lines, each environment's files
are read once, and a task's lines are looked up. Files and archives are read by content, not chosen by name.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
import os
import re
import tarfile
import zipfile
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

FORMAT = 4
"""Version of what is hashed and of how it is kept; a part of the names of kept indexes."""
RUN = 3
MIN_CHARS = 40
MAX_FILE = 8 << 20
"""Bytes of a file, or of a member of an archive, that is read."""
MAX_TOTAL = 256 << 20
"""Bytes that all members of one file may have together, in archives inside of it too."""
MAX_MEMBERS = 20_000
MAX_DEPTH = 3
_CHUNK = 1 << 16
_EDGES = " +-><#*|/.,\"'`\ufeff"
"""What surrounds a line of code that was copied: marks of diffs, prompts, comments, quotes, tables, JSON strings."""
_COMPRESSED: tuple[tuple[re.Pattern[bytes], Callable[[Any], Any]], ...] = (
    (re.compile(rb"\x1f\x8b\x08"), lambda file: gzip.GzipFile(fileobj=file)),
    (re.compile(rb"\xfd7zXZ\x00"), lzma.LZMAFile),
    (re.compile(rb"BZh[1-9]1AY&SY"), bz2.BZ2File),
)
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_JSON = re.compile(r"\ufeff?\s*[\[{]")
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|.)|"', re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\n", "t": " ", "b": " ", "f": " "}


# ------------------------------------------------------------------------------------------ hashes
def normal_lines(text: str) -> list[str]:
    """Lines without indentation and without marks at their ends, inner white space folded, blank ones dropped."""
    return [line for raw in text.splitlines() if (line := " ".join(raw.split()).strip(_EDGES))]


def runs(text: str) -> list[str]:
    """Every run of :data:`RUN` lines with at least :data:`MIN_CHARS` characters.

    A shorter text gives one run of all its lines, if they are long enough to mean anything.
    """
    lines = normal_lines(text)
    size = min(RUN, len(lines))
    found = (lines[i : i + size] for i in range(len(lines) - size + 1 if size else 0))
    return ["\n".join(run) for run in found if sum(map(len, run)) >= MIN_CHARS]


def shingles(text: str) -> set[int]:
    """64-bit hashes of :func:`runs`."""
    return {_hash(run.encode(errors="replace")) for run in runs(text)}


def file_shingles(text: str) -> set[int]:
    """Hashes of a file to look in: runs of three lines, and of two and one for short functions."""
    lines = [(line.encode(errors="replace"), len(line)) for line in normal_lines(text)]
    found = set()
    for i in range(len(lines)):
        run, chars = lines[i]
        if chars >= MIN_CHARS:
            found.add(_hash(run))
        for line, more in lines[i + 1 : i + RUN]:
            run, chars = run + b"\n" + line, chars + more
            if chars >= MIN_CHARS:
                found.add(_hash(run))
    return found


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


# ------------------------------------------------------------------------------------------ files
@dataclass(slots=True)
class Reader:
    """Reads files to their texts: a file itself if it is text, its members if it is an archive.

    Strangers wrote all of it: nothing is unpacked whole, and no archive, however broken, is an error.
    """

    skipped: set[str] = field(default_factory=set)
    """Files and members that were not read, or not to their end: binary, too large, damaged."""
    left: int = MAX_TOTAL
    """Bytes that the members of the present file may still have."""

    def texts(self, path: Path) -> Iterator[tuple[str, str]]:
        """(name, text) of all there is to read in a file."""
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_FILE + 1)
        except OSError:
            self.skipped.add(str(path))
            return
        self.left = MAX_TOTAL
        yield from self._texts(str(path), data, 0)

    def _texts(self, name: str, data: bytes, depth: int) -> Iterator[tuple[str, str]]:
        if len(data) > MAX_FILE:
            self.skipped.add(name)
        elif depth < MAX_DEPTH and (members := _members_of(data)) is not None:
            yield from self._members(name, members(io.BytesIO(data), self, name), depth)
        elif (text := _decoded(data)) is None:
            self.skipped.add(name)
        else:
            yield name, text
            if "\\n" in text and _JSON.match(text):
                yield name, _ESCAPE.sub(_unescaped, text)

    def _members(self, name: str, members: Iterator[_Member], depth: int) -> Iterator[tuple[str, str]]:
        try:
            for number, (member, opened) in enumerate(members):
                if number == MAX_MEMBERS or self.left <= 0:
                    self.skipped.add(name)
                    return
                inner = f"{name}!{member}"
                yield from self._texts(inner, self._content(inner, opened), depth + 1)
        except Exception:  # there is hardly an exception that zipfile and tarfile do not raise for broken archives
            self.skipped.add(name)

    def _content(self, name: str, opened: Callable[[], Any]) -> bytes:
        """A member, or what can be read of it."""
        content = bytearray()
        try:
            with opened() as stream:
                while len(content) <= MAX_FILE and (chunk := stream.read1(_CHUNK)):
                    content += chunk
        except Exception:  # likewise; members after this one may be sound
            self.skipped.add(name)
        return bytes(content)


_Member = tuple[str, Callable[[], Any]]
"""Name, and how to open it; to be read before the next one is asked for."""


def _members_of(data: bytes) -> Callable[[Any, Reader, str], Iterator[_Member]] | None:
    """How to list the archive that this is; ``None`` for anything else."""
    if data[:4] == b"PK\x03\x04" or (b"\0" in data[:_CHUNK] and b"PK\x05\x06" in data[-_CHUNK:]):  # or a program before
        return _zip_members
    if any(magic.match(data) for magic, _ in _COMPRESSED) or _is_tar(data[:512]):
        return _stream_members
    return None


def _is_tar(head: bytes) -> bool:
    if len(head) < 512 or b"\0" not in head:
        return False
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError):
        return False
    return True


def _zip_members(file: Any, reader: Reader, name: str) -> Iterator[_Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, lambda info=info: _Limited(archive.open(info), reader, f"{name}!{info.filename}")  # type: ignore[misc]


def _stream_members(file: Any, reader: Reader, name: str) -> Iterator[_Member]:
    """A tar, compressed or not, or one compressed file."""
    unpacked = next((how(file) for magic, how in _COMPRESSED if magic.match(file.getvalue())), file)
    stream: Any = _Limited(unpacked, reader, name)
    if not _is_tar(stream.head):
        yield "", lambda: stream
        return
    with tarfile.open(fileobj=stream, mode="r|", ignore_zeros=True) as archive:  # goes on behind damaged headers
        for member in archive:
            if member.isfile():
                yield member.name, partial(archive.extractfile, member)


class _Limited:
    """A stream that ends where the reader has had enough, or where it is damaged."""

    def __init__(self, stream: Any, reader: Reader, name: str) -> None:
        self.stream, self.reader, self.name = stream, reader, name
        self.head = b""
        """The first 512 bytes; reading begins with them."""
        while len(self.head) < 512 and (chunk := self._next(512 - len(self.head))):
            self.head += chunk
        self._unread = self.head

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, none at the end."""
        if self._unread:
            chunk, self._unread = self._unread[:size], self._unread[size:]
            return chunk
        return self._next(size)

    read1 = read

    def _next(self, size: int) -> bytes:
        chunk = b""
        try:
            chunk = self.stream.read1(min(size, _CHUNK, self.reader.left))
        except Exception:  # damaged, see above
            self.reader.skipped.add(self.name)
        if self.reader.left <= 0:
            self.reader.skipped.add(self.name)
        self.reader.left -= len(chunk)
        return chunk

    def __enter__(self) -> _Limited:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _decoded(data: bytes) -> str | None:
    """Text of a file; ``None`` for binaries."""
    for mark, encoding in _WIDE:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    head = data[:4096]
    if b"\0" in head:
        for zeros, letters, encoding in ((1, 0, "utf-16-le"), (0, 1, "utf-16-be")):
            if len(head) > 1 and 0 not in head[letters::2] and 4 * head[zeros::2].count(0) > len(head):
                return data.decode(encoding, errors="replace")
        return None
    return data.decode("utf-8", errors="replace")


def _unescaped(found: re.Match[str]) -> str:
    """What an escape of a JSON string means; strings begin and end lines."""
    escape = found[1]
    if escape is None:
        return "\n"
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPED.get(escape, escape)


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


# ------------------------------------------------------------------------------------------ index
@dataclass(frozen=True, slots=True)
class Index:
    """Sorted hashes of everything below some folders."""

    hashes: array[int]
    skipped: int = 0
    """Files and members of archives that were not read, or not to their end."""

    @classmethod
    def build(cls, roots: Iterable[Path]) -> Index:
        """Read every file that ``roots`` are or hold."""
        found: set[int] = set()
        reader = Reader()
        for path in files_below(roots):
            for _, text in reader.texts(path):
                found |= file_shingles(text)
        return cls(array("Q", sorted(found)), len(reader.skipped))

    def save(self, path: Path) -> None:
        """Write atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        scratch.write_bytes(array("Q", [self.skipped]).tobytes() + self.hashes.tobytes())
        scratch.rename(path)

    @classmethod
    def load(cls, path: Path) -> Index:
        """Read what :meth:`save` wrote."""
        values = array("Q")
        values.frombytes(path.read_bytes())
        return cls(values[1:], values[0])

    def hits(self, wanted: Iterable[int]) -> set[int]:
        """Those of the hashes that are in the index."""
        found = set()
        for value in wanted:
            place = bisect_left(self.hashes, value)
            if place < len(self.hashes) and self.hashes[place] == value:
                found.add(value)
        return found
