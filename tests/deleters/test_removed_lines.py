"""Whole lines that are deleted leave one blank line where there was one."""

from __future__ import annotations

import pytest

from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.edits.removed_lines import removals

TEXT = b"head\n\none\n\ntwo\n\nblock {\n\n\tthree\n\n\tfour\n}\n\nlast\n"


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ((b"one\n",), TEXT.replace(b"one\n\n", b"")),
        ((b"one\n", b"two\n"), TEXT.replace(b"one\n\ntwo\n\n", b"")),
        ((b"two\n", b"last\n"), TEXT.replace(b"two\n\n", b"").replace(b"\n\nlast\n", b"\n")),
        ((b"\tthree\n",), TEXT.replace(b"\n\tthree\n\n", b"\n")),
        ((b"\tfour\n",), TEXT.replace(b"\n\tfour\n", b"")),
        ((b"\tthree\n", b"\tfour\n"), TEXT.replace(b"\n\tthree\n\n\tfour\n", b"\n")),
        ((b"head\n",), TEXT.removeprefix(b"head\n\n")),
    ],
)
def test_blank_lines(gone: tuple[bytes, ...], left: bytes) -> None:
    spans = [(TEXT.index(part), TEXT.index(part) + len(part)) for part in gone]
    assert apply_edits(TEXT, removals(TEXT, spans)) == left
