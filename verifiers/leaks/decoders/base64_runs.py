"""Base64 inside texts: inline source maps, notebooks, encoded pickles, PEM blocks."""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterator

from excise.verifiers.leaks.fragments import DecodingLimits

_LINE = rb"[A-Za-z0-9+/_-]"
_RUN = re.compile(_LINE + rb"{60,}(?:(?:\r?\n|\\n|\\r\\n)[ \t>#]*" + _LINE + rb"{4,}|={1,2})*")
_BREAKS = re.compile(rb"\\r\\n|\\n|[\s>#=]")
_SHORTEST = b"a" * 60
_CAPITALS = string.ascii_uppercase.encode()
_CAPITAL_SHARE = 0.06
"""Base64 of code, plain or compressed, had never below 0.11; joined words (``not_a_word_list``) have fewer capitals."""
_KINDS = bytes(ord("a") if re.match(_LINE, bytes([letter])) else 0 for letter in range(256))
"""Base64 characters become one letter, so that runs of them are found without a regular expression."""


class Base64:
    """Decodes every run of at least 60 base64 characters."""

    name = "base64"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise 60 consecutive base64 characters."""
        return _SHORTEST in data.translate(_KINDS)

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the decoded runs; short runs of letters alone, and of few capitals, are words, not base64."""
        for found in _runs(data):
            letters = _BREAKS.sub(b"", found[0]).replace(b"-", b"+").replace(b"_", b"/")
            if len(letters) - len(letters.translate(None, _CAPITALS)) < _CAPITAL_SHARE * len(letters):
                continue
            letters = letters[: len(letters) - (len(letters) % 4 == 1)]
            try:
                decoded = base64.b64decode(letters + b"=" * (-len(letters) % 4))
            except (binascii.Error, ValueError):
                continue
            if not letters.isalpha() or len(letters) > 200:
                yield decoded


def _runs(data: bytes) -> Iterator[re.Match[bytes]]:
    kinds, place = data.translate(_KINDS), 0
    while (start := kinds.find(_SHORTEST, place)) >= 0 and (found := _RUN.match(data, start)):
        yield found
        place = found.end()
