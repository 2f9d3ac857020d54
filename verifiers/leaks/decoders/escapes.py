"""Escaped text: JSON, source maps, ``repr`` of strings, notebooks, URLs, colours of terminals and of TeX."""

from __future__ import annotations

import re
from collections.abc import Iterator

from excise.verifiers.leaks.decoders.strings import affected_lines
from excise.verifiers.leaks.fragments import DecodingLimits

_ESCAPE = re.compile(rb"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)|\"", re.DOTALL)
_MEANS = {b"n": b"\n", b"r": b"\n", b"t": b" ", b"b": b" ", b"f": b" "}
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_LETTERS = re.compile(rb"\\PYZ[a-z]+\{\}")
_BRACES = re.compile(rb"\\PY\{[\w+]*\}\{((?:[^{}]|\{[^{}]*\})*)\}|\\[a-z]+-?\d* ?")
"""Words coloured for TeX, as Pygments writes them; commands of RTF."""
_URL = re.compile(rb"%([0-9a-fA-F]{2})")
_MARKS = (b"\\n", b"\\u00", b"\x1b[", b"\\PY{", b"{\\rtf")


class Escapes:
    """Resolves escapes. A quote becomes a line break, because a list of strings often holds lines of code."""

    name = "escapes"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise escaped line breaks, terminal or TeX colours, RTF, or blanks encoded as in URLs."""
        return any(mark in data for mark in _MARKS) or data.count(b"%20", 0, 1 << 20) > 8

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the text with each kind of escape resolved. Decoding continues with it, for strings inside strings."""
        if data.count(b"%20", 0, 1 << 20) > 8:
            yield _URL.sub(lambda found: bytes([int(found[1], 16)]), data)
        if b"\x1b[" in data:
            yield _COLOUR.sub(b"", data)
        if b"\\PY{" in data or b"{\\rtf" in data[:64]:
            letters = _LETTERS.sub(b" ", data.replace(b"\\PYZus{}", b"_"))
            yield _BRACES.sub(lambda found: found[1] or b"", letters)
        if b"\\n" in data or b"\\u00" in data:
            yield _ESCAPE.sub(_meaning, affected_lines(data, b"\\"))


def _meaning(found: re.Match[bytes]) -> bytes:
    escape = found[1]
    if escape is None:
        return b"\n"
    if len(escape) > 1:
        return chr(int(escape[1:], 16)).encode(errors="replace")
    return _MEANS.get(escape, escape)
