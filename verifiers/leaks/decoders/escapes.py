"""Strings with escapes: JSON, source maps, ``repr`` of texts, notebooks. What they mean is a text like any other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from excise.verifiers.leaks.decoders.strings import touched
from excise.verifiers.leaks.pieces import Limits

_ESCAPE = re.compile(rb"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)|\"", re.DOTALL)
_MEANS = {b"n": b"\n", b"r": b"\n", b"t": b" ", b"b": b" ", b"f": b" "}
_URL = re.compile(rb"%([0-9a-fA-F]{2})")


class Escapes:
    """The text with its escapes resolved; quotes end lines, as the strings of a list are lines of code."""

    name = "escapes"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Line breaks are written as escapes, or blanks as in URLs."""
        return b"\\n" in data or data.count(b"%20", 0, 1 << 20) > 8 or b"\\u00" in data

    def parts(self, data: bytes, limits: Limits) -> Iterator[bytes]:
        """The text without escapes: once where they are an exception, again for strings in strings."""
        if data.count(b"%20", 0, 1 << 20) > 8:
            yield _URL.sub(lambda found: bytes([int(found[1], 16)]), data)
        if b"\\n" in data or b"\\u00" in data:
            yield _ESCAPE.sub(_meaning, touched(data, lambda line: b"\\" in line))


def _meaning(found: re.Match[bytes]) -> bytes:
    escape = found[1]
    if escape is None:
        return b"\n"
    if len(escape) > 1:
        return chr(int(escape[1:], 16)).encode(errors="replace")
    return _MEANS.get(escape, escape)
