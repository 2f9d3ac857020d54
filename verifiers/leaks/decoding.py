"""Reading a file to its pieces: every decoder that fits takes it apart, and what comes out is read likewise.

Strangers wrote all of it. Nothing is unpacked whole to disk, nothing is run, unpickled or unmarshalled, sizes and depth
are limited, and no damage is an error: what cannot be read is noted in :class:`Limits`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from pathlib import Path

from excise.verifiers.leaks.decoders.all_decoders import CONTAINERS, HIDING, WRAPPINGS, Decoder
from excise.verifiers.leaks.decoders.strings import (
    carved,
    holds_python,
    is_native,
    is_pythonic,
    is_text,
    strings_of,
    text_of,
)
from excise.verifiers.leaks.fragments import MAX_DEPTH, MAX_PART, Code, Kind, Limits, Piece


def read_file(path: Path) -> bytes | None:
    """A regular file's bytes: the first and last of one that is too large; ``None`` if it cannot be read."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            if status.st_size <= MAX_PART:
                return file.read(MAX_PART)
            head = file.read(MAX_PART // 2)
            file.seek(-(MAX_PART // 2), os.SEEK_END)
            return head + file.read(MAX_PART // 2)
    except OSError:
        return None


def pieces(data: bytes, limits: Limits, depth: int = 0) -> Iterator[Piece]:
    """Everything that can be read in ``data``."""
    if not data:
        return
    if depth > MAX_DEPTH:
        limits.partial = True
        return
    for decoder in CONTAINERS:
        if decoder.fits(data):
            apart = yield from _inside(decoder, data, limits, depth)
            if apart and decoder.whole:
                return
    if not is_text(data):
        yield from _binary(data, limits, depth)
        return
    text = text_of(data)
    plain = not limits.only_python or is_pythonic(text)
    if plain:
        yield Piece(Kind.TEXT, text)
    for decoder in WRAPPINGS if plain or b"</span>" in text else HIDING:
        if decoder.fits(text):
            yield from _inside(decoder, text, limits, depth)


def _binary(data: bytes, limits: Limits, depth: int) -> Iterator[Piece]:
    """Strings, what lies behind them in base64 or JSON, and compressed streams anywhere in it."""
    native = is_native(data)
    pythonic = holds_python(data) if native else is_pythonic(data)
    if native and not pythonic and limits.only_python:
        return
    strings = strings_of(data) if pythonic or not (limits.only_python or native) else b""
    if strings:
        yield Piece(Kind.STRINGS, strings)
        for decoder in WRAPPINGS:
            if decoder.fits(strings):
                yield from _inside(decoder, strings, limits, depth)
    for stream in carved(data, limits):
        limits.used.add("carving")
        yield from pieces(stream, limits, depth + 1)


def _inside(decoder: Decoder, data: bytes, limits: Limits, depth: int) -> Generator[Piece, None, bool]:
    """What a decoder makes of ``data``, read further; whether it made anything of it."""
    parts, apart = decoder.parts(data, limits), False
    while True:
        try:
            part = next(parts)
        except StopIteration:
            return apart
        except Exception:  # there is hardly an exception that parsers do not raise for what strangers broke
            limits.partial = True
            return apart
        apart = True
        limits.used.add(decoder.name)
        if isinstance(part, Code):
            if limits.take(64 + sum(map(len, part.words))):
                yield Piece(Kind.CODE, code=part)
        elif limits.take(len(part)):
            yield from pieces(part, limits, depth + 1)
