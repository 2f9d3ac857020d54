"""Hexadecimal dumps: what ``xxd``, ``xxd -p``, ``hexdump -C``, ``od -t x1`` and ``bytes.hex`` write."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from excise.verifiers.leaks.fragments import DecodingLimits

_RUN = re.compile(rb"[0-9a-fA-F]{60,}")
_OFFSET = re.compile(rb"[ \t>#]*[0-9a-fA-F]{6,16}:?[ \t]+((?:[0-9a-fA-F]{2}){1,8}(?:[ \t]|$))")
"""The beginning of a line of a dump: an offset, and the first bytes."""
_SECOND = re.compile(rb"\n[ \t>#]*0*(?:10|20):?[ \t]")
"""The beginning of the second line of a dump: its offset, in hexadecimal or octal digits."""
_FURTHER, _LAST = (
    re.compile(rb"[ \t\"',]*\r?\n[ \t>#\"']*([0-9a-fA-F]{%s})(?=[ \t\"',]*(?:\r?\n|\Z))" % number)
    for number in (b"8,", b"2,7")
)
"""What follows a run on the next line: more of it, or its end."""
_SHORTEST = b"0" * 60
_DIGITS = bytes(ord("0") if chr(letter) in string.hexdigits else 1 for letter in range(256))
"""Hexadecimal digits become one digit, so that runs of them are found without a regular expression."""
LINE_BYTES = 16
"""Number of bytes of a line of a dump."""
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
        """Recognise 60 consecutive digits, or the offset of a second line at the beginning of a line."""
        return _SHORTEST in data.translate(_DIGITS) or _SECOND.search(data) is not None

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the decoded runs and dumps."""
        dumped = bytearray()
        for line in data.splitlines() if _SECOND.search(data) else ():
            if found := _OFFSET.match(line):
                dumped += _bytes_of(line[found.start(1) :])
        for decoded in (bytes(dumped), *_runs(data.replace(b"\\n", b"\n"))):
            if _is_telling(decoded):
                yield decoded


def _runs(data: bytes) -> Iterator[bytes]:
    """The bytes of each run of digits, which may go on in further lines of nothing else; the last may be short."""
    kinds, place = data.translate(_DIGITS), 0
    while (start := kinds.find(_SHORTEST, place)) >= 0 and (found := _RUN.match(data, start)):
        digits, place = bytearray(found[0]), found.end()
        while further := _FURTHER.match(data, place):
            digits += further[1]
            place = further.end()
        if last := _LAST.match(data, place):
            digits += last[1]
        yield bytes.fromhex(digits[: len(digits) & ~1].decode())


def _bytes_of(line: bytes) -> bytes:
    """The bytes of a line of a dump: groups of digits up to the first other word, at most :data:`LINE_BYTES`."""
    found = bytearray()
    for group in line.split():
        is_group = len(group) in {2, 4, 8, 16} and not group.translate(_DIGITS).strip(b"0")
        if not is_group or len(found) + len(group) // 2 > LINE_BYTES:
            break
        found += bytes.fromhex(group.decode())
    return bytes(found)


def _is_telling(decoded: bytes) -> bool:
    """Whether bytes are text, or packed: hashes and numbers are neither."""
    if not decoded or decoded.startswith(_PACKED):
        return bool(decoded)
    return len(decoded) - len(decoded.translate(None, _PRINTABLE)) >= _TEXT_SHARE * len(decoded)
