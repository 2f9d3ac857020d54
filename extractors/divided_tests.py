"""What dividers of tests share in languages with braces: changes of files, and the refusal of a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Undividable(Exception):
    """Raised for a test that cannot be divided; the message is the reason."""


class Edit(NamedTuple):
    """A change of a file, by bytes."""

    start: int
    end: int
    text: bytes


def edited(source: bytes, edits: Iterable[Edit]) -> bytes:
    """A file, or a part of it, with changes; those within others are left out."""
    result, place = bytearray(), 0
    for edit in sorted(set(edits), key=lambda each: (each.start, each.end > each.start, -each.end, each.text)):
        if edit.start >= place:
            result += source[place : edit.start] + edit.text
            place = edit.end
    return bytes(result + source[place:])
