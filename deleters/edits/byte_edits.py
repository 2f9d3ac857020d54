"""Edits: replacements of byte spans of one file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from excise.errors import DeletionRefused


class Edit(NamedTuple):
    """Replaces the bytes ``start:end`` by ``replacement``."""

    start: int
    end: int
    replacement: bytes = b""


def merged(edits: Iterable[Edit]) -> list[Edit]:
    """The edits, sorted and without overlaps.

    An edit inside a larger one is dropped, and overlapping removals are joined. Raises :class:`DeletionRefused` if two
    overlapping edits both have a replacement.
    """
    result: list[Edit] = []
    for edit in sorted(set(edits), key=lambda e: (e.start, -e.end, e.replacement)):
        last = result[-1] if result else None
        if last is None or edit.start >= last.end:
            result.append(edit)
        elif edit.end <= last.end:
            continue
        elif edit.replacement and last.replacement:
            raise DeletionRefused(
                f"two replacements overlap at bytes {edit.start} and {last.start}", reason="edits_overlap"
            )
        else:
            result[-1] = Edit(last.start, edit.end, last.replacement or edit.replacement)
    return result


def apply_edits(source: bytes, edits: Iterable[Edit]) -> bytes:
    """Apply the edits to ``source``; bytes outside their spans are unchanged."""
    pieces: list[bytes] = []
    position = 0
    for edit in merged(edits):
        pieces += [source[position : edit.start], edit.replacement]
        position = edit.end
    pieces.append(source[position:])
    return b"".join(pieces)
