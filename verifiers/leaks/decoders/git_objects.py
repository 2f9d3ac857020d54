"""Git's storage: loose objects and packs, complete or truncated; deltas are applied if their base is in the pack."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator

from excise.verifiers.leaks.fragments import MAX_PART, DecodingLimits

_TYPES = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_OFS, _REF = 6, 7
_MAX_KEPT = 64 << 20
_MAX_OBJECTS = 200_000


class LooseObject:
    """Decompresses a loose object, which is one zlib stream."""

    name = "git_loose"
    whole = True

    def fits(self, data: bytes) -> bool:
        """Recognise a zlib stream that begins with an object type."""
        if data[:1] != b"\x78" or len(data) < 12:
            return False
        try:
            head = zlib.decompressobj().decompress(data[:256], 16)
        except zlib.error:
            return False
        return head.startswith((b"blob ", b"tree ", b"commit ", b"tag "))

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the object without its header."""
        engine = zlib.decompressobj()
        out = engine.decompress(data, min(MAX_PART, limits.bytes_left))
        limits.partial |= not engine.eof
        yield out.partition(b"\0")[2] or out


class Pack:
    """Extracts the objects of a pack or a bundle, up to the first damaged one."""

    name = "git_pack"
    whole = False  # streams after a damaged object are found by carving

    def fits(self, data: bytes) -> bool:
        """Recognise a pack, or the header of a bundle."""
        return data.startswith(b"PACK\0\0\0") or (data.startswith(b"# v") and b"bundle\n" in data[:40])

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield every object; of a delta without its base, the inserted data."""
        start = data.find(b"PACK\0\0\0")
        if start < 0:
            return
        place = start + 12
        count = min(int.from_bytes(data[start + 8 : start + 12], "big"), _MAX_OBJECTS)
        kept: dict[int | bytes, bytes] = {}
        room = _MAX_KEPT
        for _ in range(count):
            if limits.bytes_left <= 0 or limits.parts_left <= 0 or place >= len(data):
                limits.partial = True
                return
            offset = place
            kind, base, place = _header(data, place)
            engine = zlib.decompressobj()
            body = engine.decompress(data[place:], min(MAX_PART, limits.bytes_left))
            if not engine.eof:
                limits.partial = True
                yield body
                return
            place = len(data) - len(engine.unused_data)
            if kind in {_OFS, _REF}:
                body = _apply(body, kept.get(offset - base if isinstance(base, int) else base))
            if len(body) <= room:
                room -= len(body)
                kept[offset] = body
                for name in [_TYPES[kind]] if kind in _TYPES else [b"blob"]:
                    kept[hashlib.sha1(name + b" %d\0" % len(body) + body, usedforsecurity=False).digest()] = body
            yield body


def _header(data: bytes, place: int) -> tuple[int, int | bytes, int]:
    """Type of the object at ``place``, its delta base (distance in bytes, or digest), and where its stream starts."""
    byte = data[place]
    kind, place = byte >> 4 & 7, place + 1
    while byte & 0x80:
        byte = data[place]
        place += 1
    if kind == _REF:
        return kind, data[place : place + 20], place + 20
    distance = 0
    if kind == _OFS:
        byte = data[place]
        place += 1
        distance = byte & 0x7F
        while byte & 0x80:
            byte = data[place]
            place += 1
            distance = (distance + 1) << 7 | byte & 0x7F
    return kind, distance, place


def _apply(delta: bytes, base: bytes | None) -> bytes:
    """Apply a delta to its base; without a base, return the inserted data, with line breaks in place of copies."""
    place = 0
    for _ in range(2):  # the sizes of base and result
        while delta[place] & 0x80:
            place += 1
        place += 1
    out = bytearray()
    while place < len(delta) and len(out) <= MAX_PART:
        code = delta[place]
        place += 1
        if not code & 0x80:
            out += delta[place : place + code]
            place += code
            continue
        numbers = [0, 0]
        for bit in range(7):
            if code >> bit & 1:
                numbers[bit > 3] |= delta[place] << 8 * (bit if bit < 4 else bit - 4)
                place += 1
        start, size = numbers[0], numbers[1] or 0x10000
        out += base[start : start + size] if base is not None else b"\n"
    return bytes(out)
