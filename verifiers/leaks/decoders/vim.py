"""Swap files of vim: data blocks that store their lines in reverse order."""

from __future__ import annotations

from collections.abc import Iterator

from excise.verifiers.leaks.fragments import DecodingLimits

_HEADER = 22
_MAX_LINES = 100_000


class VimSwap:
    """Reads the lines of a swap file's data blocks."""

    name = "vim"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise the file by its first bytes."""
        return data.startswith(b"b0VIM ")

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the lines of all blocks, in file order, as one part."""
        size = int.from_bytes(data[12:16], "little")
        size = size if 1024 <= size <= 1 << 20 else 4096
        lines: list[bytes] = []
        for start in range(0, len(data), size):
            block = data[start : start + size]
            if block[:2] == b"ad":
                lines += _lines(block)
        yield b"\n".join(lines)


def _lines(block: bytes) -> Iterator[bytes]:
    """Yield the lines of a data block. Its index holds their offsets; the first line is stored last."""
    end = int.from_bytes(block[12:16], "little")
    count = min(int.from_bytes(block[16:24], "little"), _MAX_LINES)
    for number in range(count):
        at = 24 + 4 * number
        if at + 4 > len(block):
            return
        start = int.from_bytes(block[at : at + 4], "little") & 0x7FFFFFFF
        if start < 24 or start > len(block):
            continue
        stop = block.find(b"\0", start, min(end, len(block)))
        yield block[start : stop if stop >= 0 else len(block)]
