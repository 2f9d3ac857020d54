"""Hexadecimal dumps: what ``xxd``, ``xxd -p``, ``hexdump -C`` and ``bytes.hex`` write."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from excise.verifiers.leaks.fragments import DecodingLimits

_RUN = re.compile(rb"[0-9a-fA-F]{60,}(?:(?:\r?\n|\\n)[ \t>#]*[0-9a-fA-F]{2,})*")
_GROUP = rb"(?:[0-9a-fA-F]{2}){1,8}"
_LINE = re.compile(rb"[ \t>#]*[0-9a-fA-F]{6,16}:?[ \t]+(" + _GROUP + rb"(?:[ \t]{1,2}" + _GROUP + rb"){0,15})\b")
"""A line with an offset, and the bytes from there on."""
_SHORTEST = b"0" * 60
_DIGITS = bytes(ord("0") if chr(letter) in string.hexdigits else 1 for letter in range(256))
"""Hexadecimal digits become one digit, so that runs of them are found without a regular expression."""
_PRINTABLE = string.printable.encode()
_PACKED = (b"\x1f\x8b", b"PK", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"\x78")
"""The first bytes of what is packed."""
_TEXT_SHARE = 0.95
"""Share of the bytes of a text that can be printed: hashes have 0.7."""


class HexDump:
    """Decodes every run of at least 60 hexadecimal digits, and dumps with offsets, that hold text or what is packed."""

    name = "hex"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise 60 consecutive digits, or a line with an offset at the beginning of a line."""
        return _SHORTEST in data.translate(_DIGITS) or b"\n00000010" in data or b"\n0000010" in data

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the decoded runs and dumps."""
        dumped = bytearray()
        for line in data.splitlines() if b"\n00000010" in data or b"\n0000010" in data else ():
            if found := _LINE.match(line):
                dumped += bytes.fromhex(re.sub(rb"[ \t]", b"", found[1]).decode())
        if _is_telling(bytes(dumped)):
            yield bytes(dumped)
        kinds, place = data.translate(_DIGITS), 0
        while (start := kinds.find(_SHORTEST, place)) >= 0 and (found := _RUN.match(data, start)):
            digits = re.sub(rb"[^0-9a-fA-F]", b"", found[0].replace(b"\\n", b""))
            decoded = bytes.fromhex(digits[: len(digits) & ~1].decode())
            if _is_telling(decoded):
                yield decoded
            place = found.end()


def _is_telling(decoded: bytes) -> bool:
    """Whether bytes are text, or packed: hashes and numbers are neither."""
    if not decoded or decoded.startswith(_PACKED):
        return bool(decoded)
    return len(decoded) - len(decoded.translate(None, _PRINTABLE)) >= _TEXT_SHARE * len(decoded)
