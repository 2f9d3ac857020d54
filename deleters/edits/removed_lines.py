"""Edits that delete whole lines, with the blank line that nothing needs then."""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.edits.byte_edits import Edit

_OPENING, _CLOSING = (b"{", b"("), (b"}", b")")
"""What begins and ends a block of lines."""


def removals(source: bytes, spans: Iterable[tuple[int, int]]) -> list[Edit]:
    """The edits that delete spans of bytes; spans with nothing but blanks between them go as one.

    Where a span is whole lines, one of the blank lines around it goes, too: at the end of a file or block that above.
    """
    runs: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if runs and not source[runs[-1][1] : start].strip():
            runs[-1] = runs[-1][0], max(end, runs[-1][1])
        else:
            runs.append((start, end))
    return [_removal(source, start, end) for start, end in runs]


def _removal(source: bytes, start: int, end: int) -> Edit:
    above, below = source[:start], source[end:]
    if above and not above.endswith(b"\n"):
        return Edit(start, end)
    text = above.rstrip()
    blank = above[above.find(b"\n", len(text)) + 1 :]
    is_first = not text or text.endswith(_OPENING)
    if not is_first and (not below.strip() or below.lstrip().startswith(_CLOSING)):
        return Edit(start - len(blank), end if below.strip() else len(source))
    line = below.find(b"\n")
    has_blank_below = line >= 0 and not below[:line].strip()
    return Edit(start, end + line + 1 if has_blank_below and (is_first or blank) else end)
