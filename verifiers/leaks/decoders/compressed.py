"""Files that are one compressed stream: gzip, bzip2, xz and lzma, Zstandard, zlib, Brotli."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator

from excise.verifiers.leaks.decoders.strings import decompress_at, is_text
from excise.verifiers.leaks.fragments import MAX_PART, DecodingLimits

_ZSTD = b"\x28\xb5\x2f\xfd"
_ALONE = re.compile(rb"\x5d\0\0[\0-\xff]{2}(?:\xff{8}|[\0-\xff]{5}\0{3})")
_MAGIC = re.compile(rb"\x1f\x8b\x08|\xfd7zXZ\0|BZh[1-9](?:1AY&SY|\x17rE8P\x90)|\x28\xb5\x2f\xfd")
_MAX_STREAMS = 1000
_CHUNK = 1 << 12
_HEAD = 256
"""Number of bytes of which a stream of Brotli has some that are not ASCII."""
MIN_TEXT = 32
"""Number of bytes of a text from which on a damaged stream of Brotli is taken for one."""


class Compressed:
    """Decompresses one stream or several in sequence, up to the first damage."""

    name = "compressed"
    whole = True

    def fits(self, data: bytes) -> bool:
        """Recognise the format by its first bytes."""
        return _MAGIC.match(data) is not None or _ALONE.match(data) is not None

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the decompressed data; only its beginning if it is too large or damaged."""
        if data.startswith(_ZSTD):
            text, is_sound = _decompressed(data, "zstd", limits)
            limits.partial |= not is_sound
            yield text
            return
        out, place = bytearray(), 0
        for _ in range(_MAX_STREAMS):
            stream, used, sound = decompress_at(data, place, limits)
            out += stream
            place += used
            limits.partial |= not sound
            if not sound or place >= len(data) or len(out) >= MAX_PART or not self.fits(data[place : place + 16]):
                break
        yield bytes(out)


class Brotli:
    """Decompresses a stream of Brotli, whose format has no mark: what can be decompressed is one."""

    name = "brotli"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Whether it is no plain text; other data fails within its first bytes."""
        return not data[:_HEAD].isascii()

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the decompressed data; of a damaged stream its beginning, if that is text."""
        out, is_sound = _decompressed(data, "brotli", limits)
        if out and (is_sound or (len(out) >= MIN_TEXT and is_text(out))):
            limits.partial |= not is_sound
            yield out


def _decompressed(data: bytes, codec: str, limits: DecodingLimits) -> tuple[bytes, bool]:
    """What a codec of Arrow makes of a stream, up to the limits, and whether it is sound."""
    import pyarrow

    out = bytearray()
    room = min(MAX_PART, limits.bytes_left)
    with contextlib.suppress(OSError, pyarrow.ArrowException):
        stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(io.BytesIO(data), mode="r"), codec)
        while len(out) < room and (chunk := stream.read(min(_CHUNK, room - len(out)))):
            out += chunk
        limits.partial |= len(out) >= room
        return bytes(out), True
    return bytes(out), False
