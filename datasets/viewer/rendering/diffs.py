"""A unified diff as tables: both sides of each file next to each other, highlighted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from excise.datasets.viewer.rendering.highlighting import highlighted_lines

MAX_FILE_LINES = 600
"""Lines of one file's diff that are shown; the raw text has all."""
MAX_FILES = 60
"""Files of one diff that are shown."""
_NOTES = {
    "new file mode": "new file",
    "deleted file mode": "deleted",
    "Binary files": "binary",
    "GIT binary": "binary",
}
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """A line of the table: what stands on the left and on the right; a heading has neither."""

    kind: str
    """``same``, ``removed``, ``added``, ``changed`` or ``hunk``."""
    left_number: int | None = None
    """Line number on the left."""
    left: str = ""
    """Left line as HTML."""
    right_number: int | None = None
    """Line number on the right."""
    right: str = ""
    """Right line as HTML."""
    heading: str = ""
    """What git wrote after the hunk's line numbers."""


@dataclass(slots=True, kw_only=True)
class DiffFile:
    """The diff of one file."""

    path: str
    """Path of the file."""
    note: str = ""
    """``new file``, ``deleted``, ``binary`` or nothing."""
    num_added: int = 0
    """Number of lines only on the right."""
    num_removed: int = 0
    """Number of lines only on the left."""
    num_cut: int = 0
    """Number of lines that are not shown."""
    rows: list[DiffRow] = field(default_factory=list)
    """The table."""


def parse_diff(patch: str) -> list[DiffFile]:
    """The files of a unified diff, in order. Text that is no diff gives none; nothing raises an error."""
    return [_file(lines) for lines in list(_files(patch.split("\n")))[:MAX_FILES]]


def count_files(patch: str) -> int:
    """Number of files of a unified diff."""
    return sum(1 for _ in _files(patch.split("\n")))


def _files(lines: Sequence[str]) -> Iterator[list[str]]:
    current: list[str] = []
    for number, line in enumerate(lines):
        begins = line.startswith("diff --git ") or (
            line.startswith("--- ")
            and number + 1 < len(lines)
            and lines[number + 1].startswith("+++ ")
            and any(old.startswith("@@") for old in current)
        )
        if begins and current:
            yield current
            current = []
        current.append(line)
    if any(line.startswith(("diff --git ", "--- ", "@@")) for line in current):
        yield current


def _file(lines: list[str]) -> DiffFile:
    start = next((n for n, line in enumerate(lines) if line.startswith("@@")), len(lines))
    found = DiffFile(path=_path(lines[:start]), note=_note(lines[:start]))
    body = lines[start:]
    found.num_added = sum(line.startswith("+") for line in body)
    found.num_removed = sum(line.startswith("-") for line in body)
    found.num_cut = max(0, len(body) - MAX_FILE_LINES)
    hunk: list[str] = []
    for line in [*body[:MAX_FILE_LINES], "@@"]:
        if line.startswith("@@") and hunk:
            found.rows += _hunk_rows(hunk, found.path)
            hunk = []
        hunk.append(line)
    return found


def _path(header: Sequence[str]) -> str:
    for mark in ("+++ ", "--- "):
        for line in header:
            if line.startswith(mark) and not line.startswith(f"{mark}/dev/null"):
                return re.sub(r'^"?[ab]/', "", line[4:].partition("\t")[0]).rstrip('"')
    first = header[0] if header else ""
    return first.rpartition(" b/")[2] or first


def _note(header: Sequence[str]) -> str:
    text = "\n".join(header)
    return ", ".join(dict.fromkeys(note for mark, note in _NOTES.items() if mark in text))


def _hunk_rows(lines: list[str], path: str) -> Iterator[DiffRow]:
    match = _HUNK.match(lines[0])
    left_number, right_number = (int(match[1]), int(match[2])) if match else (1, 1)
    yield DiffRow(kind="hunk", heading=(match[3].strip() if match else ""))
    body = [line for line in lines[1:] if line[:1] in {" ", "-", "+"}]
    lefts = iter(highlighted_lines([line[1:] for line in body if line[0] != "+"], path))
    rights = iter(highlighted_lines([line[1:] for line in body if line[0] != "-"], path))
    position = 0
    while position < len(body):
        if body[position][0] == " ":
            yield DiffRow(
                kind="same",
                left_number=left_number,
                left=next(lefts),
                right_number=right_number,
                right=next(rights),
            )
            left_number, right_number, position = left_number + 1, right_number + 1, position + 1
            continue
        end = position
        while end < len(body) and body[end][0] != " ":
            end += 1
        removed = sum(line[0] == "-" for line in body[position:end])
        added = end - position - removed
        pairs = zip_longest(range(removed), range(added))
        for old, new in pairs:
            kind = "changed" if old is not None and new is not None else "removed" if new is None else "added"
            yield DiffRow(
                kind=kind,
                left_number=None if old is None else left_number + old,
                left="" if old is None else next(lefts),
                right_number=None if new is None else right_number + new,
                right="" if new is None else next(rights),
            )
        left_number, right_number, position = left_number + removed, right_number + added, end
