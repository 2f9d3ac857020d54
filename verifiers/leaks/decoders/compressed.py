"""Files that are one compressed stream: gzip, bzip2, xz and lzma, Zstandard, zlib."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
from collections.abc import Callable, Iterator
from typing import Any

from excise.verifiers.leaks.pieces import MAX_PART, Limits

_CHUNK = 1 << 16


def _zstd(file: Any) -> Any:
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")


STREAMS: tuple[tuple[re.Pattern[bytes], Callable[[Any], Any]], ...] = (
    (re.compile(rb"\x1f\x8b\x08"), lambda file: gzip.GzipFile(fileobj=file)),
    (re.compile(rb"\xfd7zXZ\x00|\x5d\0\0[\x01-\xff]?[\0\x80]"), lzma.LZMAFile),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), bz2.BZ2File),
    (re.compile(rb"\x28\xb5\x2f\xfd"), _zstd),
)
"""What such a file begins with, and what reads it."""


class Compressed:
    """One stream, as far as it is sound."""

    name = "compressed"
    whole = True

    def fits(self, data: bytes) -> bool:
        """By its first bytes."""
        return any(magic.match(data) for magic, _ in STREAMS)

    def parts(self, data: bytes, limits: Limits) -> Iterator[bytes]:
        """What was compressed; the beginning of what is too large."""
        open_stream = next(how for magic, how in STREAMS if magic.match(data))
        out = bytearray()
        room = min(MAX_PART, limits.bytes_left)
        try:
            stream = open_stream(io.BytesIO(data))
            while len(out) < room and (chunk := stream.read(min(_CHUNK, room - len(out)))):
                out += chunk
        except Exception:  # damaged: each of the readers has exceptions of its own
            limits.partial = True
        limits.partial |= len(out) >= room
        yield bytes(out)
