"""Texts of any encoding, strings of binaries, and compressed streams inside other data."""

from __future__ import annotations

import bz2
import codecs
import lzma
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excise.verifiers.leaks.fragments import MAX_PART, DecodingLimits

_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 4096
_LINE_END = ord("\n")
_STRINGS = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]{3,}")
_WIDE_STRINGS = re.compile(rb"(?:[\t\n\r\x20-\x7e]\0){8,}")
_STREAMS = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08[\0-\x1f]|BZh[1-9]1AY&SY|\xfd7zXZ\0")
_MAX_TRIES = 2000
_PROBE = 256
_MIN_STREAM = 40


def _wide_encoding(data: bytes) -> str:
    """The codec of a UTF-16 or UTF-32 text; empty for anything else."""
    for mark, encoding in _WIDE:
        if data.startswith(mark):
            return encoding
    head = data[:_HEAD]
    if b"\0" in head and len(head) > 1:
        for zeros, letters, encoding in ((1, 0, "utf-16-le"), (0, 1, "utf-16-be")):
            if 0 not in head[letters::2] and 4 * head[zeros::2].count(0) > len(head):
                return encoding
    return ""


def is_text(data: bytes) -> bool:
    """Whether the beginning has no NUL and few control characters, or is UTF-16 or UTF-32."""
    if _wide_encoding(data):
        return True
    head = data[:_HEAD]
    return b"\0" not in head and len(head.translate(None, _CONTROL)) >= 0.9 * len(head)


_CONTROL = bytes(c for c in range(32) if c not in b"\t\n\r\f\x08\x1b")


def text_of(data: bytes) -> bytes:
    """Convert a text to UTF-8."""
    encoding = _wide_encoding(data)
    return data.decode(encoding, errors="replace").encode() if encoding else data


def strings_of(data: bytes) -> bytes:
    """The printable strings of a binary, UTF-16 ones included, one per line."""
    found = _STRINGS.findall(data)
    if b"\0" in data:
        found += [wide[::2] for wide in _WIDE_STRINGS.findall(data)]
    return b"\n".join(found)


_NATIVE = (
    b"\x7fELF",
    b"!<arch>\n",
    b"\xde\x12\x04\x95",
    b"\x95\x04\x12\xde",
    b"\xca\xfe\xba\xbe",
    b"\xda\xda\xfe\xca",
    b"\x89PNG",
    b"\0\1\0\0",
    b"OTTO",
)
"""Signatures of programs, libraries, message catalogues, Java classes and modules, images and fonts."""
_STRONG = (b"\ndef ", b" def ", b"self.", b"elif ", b" is None", b" is not None", b"lambda ")
_WEAK = (b"return ", b"import ", b"__init__", b"for ", b"None")
_COMPILED = (b"__pyx_", b"CPyDef_")
_SOURCE = (b"\ndef ", b"\n    def ", b"\n        self.", b" is not None")


def is_native(data: bytes) -> bool:
    """Whether the data is of a binary format that seldom holds Python code (:data:`_NATIVE`)."""
    return data.startswith(_NATIVE)


def is_pythonic(data: bytes) -> bool:
    """Whether the data contains words that Python code nearly always has, or a mark of Cython or mypyc."""
    strong = sum(mark in data for mark in _STRONG)
    return strong > 1 or (strong == 1 and any(mark in data for mark in _WEAK)) or any(m in data for m in _COMPILED)


def holds_python(data: bytes) -> bool:
    """Whether a program or library was compiled from Python or contains lines of it; single words are no evidence."""
    return any(mark in data for mark in (*_COMPILED, *_SOURCE))


def line_spans(text: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First byte and end of each line, line feeds included; a text without a byte has one line."""
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _LINE_END) + 1
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    return np.append(0, ends[:-1]), ends


def affected_lines(text: bytes, marks: bytes) -> bytes:
    """The lines that have one of the bytes ``marks``, or the whole text if these are a quarter: the rest needs no
    decoding."""
    letters = np.frombuffer(text, dtype=np.uint8)
    starts, ends = line_spans(text)
    hits = np.flatnonzero(np.logical_or.reduce([letters == mark for mark in marks]))
    chosen = np.unique(np.searchsorted(ends, hits, side="right"))
    if 4 * len(chosen) >= len(ends):
        return text
    return b"".join(text[starts[line] : ends[line]] for line in chosen)


def carve_streams(data: bytes, limits: DecodingLimits) -> Iterator[bytes]:
    """Yield compressed streams found at any position, up to their first damage; the search continues after each one."""
    place, tries = 0, 0
    while tries < _MAX_TRIES and (found := _STREAMS.search(data, place)):
        place = found.start() + 1
        tries += 1
        stream, used, _ = decompress_at(data, found.start(), limits)
        if len(stream) >= _MIN_STREAM:
            place = found.start() + used
            yield stream
    limits.partial |= tries == _MAX_TRIES


def _decompressor(data: bytes, start: int) -> Any:
    first = data[start]
    if first == 0x78:
        return zlib.decompressobj()
    if first == 0x1F:
        return zlib.decompressobj(wbits=31)
    return bz2.BZ2Decompressor() if first == 0x42 else lzma.LZMADecompressor(memlimit=256 << 20)


def decompress_at(data: bytes, start: int, limits: DecodingLimits) -> tuple[bytes, int, bool]:
    """The decompressed stream at ``start``, its length in ``data`` (at least 1), and whether it is complete."""
    engine = _decompressor(data, start)
    room = max(0, min(MAX_PART, limits.bytes_left))
    out = bytearray()
    place, size = start, _PROBE
    try:
        while place < len(data) and len(out) < room and not engine.eof:
            chunk = data[place : place + size]
            place += len(chunk)
            out += engine.decompress(chunk, room - len(out))
            while not engine.eof and len(out) < room and (rest := _rest(engine)):
                out += engine.decompress(rest, room - len(out))
            size = min(4 * size, 1 << 20)
    except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError, MemoryError):
        pass  # no stream, or a damaged one, whose beginning is kept
    return bytes(out), max(1, place - start - len(getattr(engine, "unused_data", b""))), engine.eof


def _rest(engine: Any) -> bytes:
    """Input that zlib has not read because the output was full; other decompressors buffer it internally."""
    return bytes(getattr(engine, "unconsumed_tail", b""))
