"""Blank lines that a removal leaves where code had none, or fewer."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from excise.deleters.deletion_record import Changed

_OPENING, _CLOSING = (b"{", b"[", b"("), (b"}", b"]", b")")


class _Run(NamedTuple):
    """Blank lines, ``lines[start:stop]``, with the lines around them; empty ones at both ends of a file."""

    above: bytes
    start: int
    stop: int
    below: bytes


def evened(changed: Changed, code: Container[str]) -> Changed:
    """The changed files, those of code with no more blank lines between two lines that a removal brought together than
    one of the two had on that side, or one."""
    return {
        path: (before, after if path not in code or after is None else without_odd(before, after))
        for path, (before, after) in changed.items()
    }


def without_odd(before: bytes, after: bytes) -> bytes:
    """One file; see :func:`evened`. Before a closing bracket and at the end, only that side counts; so it does after an
    opening one and at the beginning."""
    known: set[tuple[bytes, int, bytes]] = set()
    most_below: dict[bytes, int] = {}
    most_above: dict[bytes, int] = {}
    for above, start, stop, below in _runs(before.splitlines(keepends=True)):
        size = stop - start
        known.add((above, size, below))
        most_below[above] = max(size, most_below.get(above, 0))
        most_above[below] = max(size, most_above.get(below, 0))
    lines = after.splitlines(keepends=True)
    kept: list[bytes] = []
    end = 0
    for above, start, stop, below in _runs(lines):
        kept += lines[end:start]
        size = allowed = stop - start
        if size and (above, size, below) not in known:
            follows, precedes = most_below.get(above, 0), most_above.get(below, 0)
            if not below or below.lstrip().startswith(_CLOSING):
                allowed = precedes
            elif not above or above.endswith(_OPENING):
                allowed = follows
            else:
                allowed = max(follows, precedes, 1)
        kept += lines[start : start + min(size, allowed)]
        end = stop
    return b"".join([*kept, *lines[end:]])


def _runs(lines: list[bytes]) -> Iterator[_Run]:
    """The blank lines between each line of code and the next; of most, none."""
    above, end = b"", 0
    for number, line in enumerate(lines):
        if line.strip():
            yield _Run(above, end, number, line.rstrip())
            above, end = line.rstrip(), number + 1
    yield _Run(above, end, len(lines), b"")
