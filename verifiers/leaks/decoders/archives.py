"""Archives: zip (wheels, jars, eggs, programs with an appended zip) and tar."""

from __future__ import annotations

import contextlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from excise.verifiers.leaks.fragments import MAX_PART, DecodingLimits

_TAIL = 1 << 17
_CHUNK = 1 << 16


class Zip:
    """Extracts the members of a zip file; if its directory is damaged, those found by their local headers."""

    name = "zip"
    whole = True

    def fits(self, data: bytes) -> bool:
        """Recognise a header at the beginning, or a directory at the end of a binary file (a program, an installer)."""
        return data.startswith(b"PK\x03\x04") or (b"PK\x05\x06" in data[-_TAIL:] and b"PK\x01\x02" in data)

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield names and contents of the members, and the data before the first one."""
        first = data.find(b"PK\x03\x04")
        try:
            archive = zipfile.ZipFile(io.BytesIO(data))
        except Exception:  # a broken directory: anything can be wrong with it
            limits.partial = True
            yield from _without_directory(data)
            return
        with archive:
            yield archive.comment
            for info in archive.infolist():
                if limits.parts_left <= 0 or limits.bytes_left <= 0:
                    limits.partial = True
                    return
                yield info.filename.encode(errors="replace") + b"\n" + info.comment
                try:
                    with archive.open(info) as member:
                        yield _bounded(member, limits)
                except Exception:  # encrypted, damaged, or of an unknown compression; other members may be readable
                    limits.partial = True
        if first > 0:
            yield data[:first]


def _without_directory(data: bytes) -> Iterator[bytes]:
    """Yield the deflated and stored members, found by their local headers."""
    place = data.find(b"PK\x03\x04")
    while place >= 0 and place + 30 <= len(data):
        method = int.from_bytes(data[place + 8 : place + 10], "little")
        names = sum(int.from_bytes(data[place + at : place + at + 2], "little") for at in (26, 28))
        start = place + 30 + names
        following = data.find(b"PK\x03\x04", place + 4)
        end = following if following >= 0 else len(data)
        if method == 0:
            yield data[start:end]
        elif method == 8:
            engine = zlib.decompressobj(wbits=-15)
            with contextlib.suppress(zlib.error):
                yield engine.decompress(data[start:end], MAX_PART)
        place = following


class Tar:
    """Extracts the members of a tar archive; damaged headers are skipped."""

    name = "tar"
    whole = True

    def fits(self, data: bytes) -> bool:
        """Recognise a header with a correct checksum at the beginning."""
        head = data[:512]
        if len(head) < 512 or b"\0" not in head:
            return False
        try:
            tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
        except (tarfile.TarError, ValueError):
            return False
        return True

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield names and contents of the members."""
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:", ignore_zeros=True) as archive:
            while limits.parts_left > 0 and limits.bytes_left > 0:
                member = archive.next()
                if member is None:
                    return
                yield member.name.encode(errors="replace")
                if member.isfile() and (file := archive.extractfile(member)) is not None:
                    yield _bounded(file, limits)
                archive.members.clear()  # type: ignore[attr-defined]
        limits.partial = True


def _bounded(stream: Any, limits: DecodingLimits) -> bytes:
    """A member's content; only the beginning if it is too large or damaged."""
    out = bytearray()
    room = min(MAX_PART, limits.bytes_left)
    try:
        while len(out) < room and (chunk := stream.read(min(_CHUNK, room - len(out)))):
            out += chunk
    except Exception:  # damaged: what was read before is kept
        limits.partial = True
    limits.partial |= len(out) >= room
    return bytes(out)
