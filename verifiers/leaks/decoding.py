"""Decoding of a file into fragments: every decoder that recognises the data extracts parts, which are decoded in turn.

All input is untrusted. Nothing is unpacked to disk, run, unpickled or unmarshalled; sizes and depth are limited;
damaged input raises no error but sets :attr:`DecodingLimits.partial`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from pathlib import Path

from excise.verifiers.leaks.decoders.all_decoders import CONTAINERS, HIDING, WRAPPINGS, Decoder
from excise.verifiers.leaks.decoders.strings import (
    carve_streams,
    holds_python,
    is_native,
    is_pythonic,
    is_text,
    strings_of,
    text_of,
)
from excise.verifiers.leaks.fragments import MAX_DEPTH, MAX_PART, CodeShape, DecodingLimits, Fragment, FragmentKind


def read_file(path: Path) -> bytes | None:
    """A regular file's bytes, or the first and last :data:`MAX_PART` / 2 of a larger one; ``None`` if unreadable."""
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


def fragments(data: bytes, limits: DecodingLimits, depth: int = 0) -> Iterator[Fragment]:
    """Yield every fragment that can be decoded from ``data``, which is nested in ``depth`` decoders."""
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
        yield Fragment(FragmentKind.TEXT, text)
    for decoder in WRAPPINGS if plain or b"</span>" in text else HIDING:
        if decoder.fits(text):
            yield from _inside(decoder, text, limits, depth)


def _binary(data: bytes, limits: DecodingLimits, depth: int) -> Iterator[Fragment]:
    """Yield a binary's printable strings, text encoded in them (base64, JSON, …), and its compressed streams."""
    native = is_native(data)
    pythonic = holds_python(data) if native else is_pythonic(data)
    if native and not pythonic and limits.only_python:
        return
    strings = strings_of(data) if pythonic or not (limits.only_python or native) else b""
    if strings:
        yield Fragment(FragmentKind.STRINGS, strings)
        for decoder in WRAPPINGS:
            if decoder.fits(strings):
                yield from _inside(decoder, strings, limits, depth)
    for stream in carve_streams(data, limits):
        limits.used.add("carving")
        yield from fragments(stream, limits, depth + 1)


def _inside(decoder: Decoder, data: bytes, limits: DecodingLimits, depth: int) -> Generator[Fragment, None, bool]:
    """Yield the fragments of a decoder's parts. The return value says whether the decoder found any part."""
    parts, apart = decoder.parts(data, limits), False
    while True:
        try:
            part = next(parts)
        except StopIteration:
            return apart
        except Exception:  # parsers raise nearly anything for damaged input
            limits.partial = True
            return apart
        apart = True
        limits.used.add(decoder.name)
        if isinstance(part, CodeShape):
            if limits.take(64 + sum(map(len, part.words))):
                yield Fragment(FragmentKind.CODE, code=part)
        elif limits.take(len(part)):
            yield from fragments(part, limits, depth + 1)
