"""Tables in documents: their rows, in Markdown and in the forms of reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from excise.deleters.documents.running_text import indent_of

_DELIMITER = re.compile(r"\s*(?:\|\s*)?:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$|\s*\|\s*:?-+:?\s*\|\s*$")
"""The line of a Markdown table below its head."""
_GRID = re.compile(r"\s*\+(?:[-=]+\+)+\s*$")
"""A line between two rows of a grid."""
_BORDER = re.compile(r"\s*=+(?: +=+)+\s*$")
"""A line around the rows, or below the head, of a table without other lines."""
_LISTED = re.compile(r"\s*\* - (?P<cell>.*)$")
"""The first cell of a row of a ``list-table``."""
_LINK = re.compile(r"\]\([^()\s]*\)|\]\[[^\[\]]*\]|`_{1,2}")
"""The end of a link, with its target."""
_ROLE = re.compile(r":\w+(?::\w+)?:(?=[\s`])")
"""What stands before a link in reStructuredText."""
_ARGUMENTS = re.compile(r"\([^()]*\)")


class Row(NamedTuple):
    """Consecutive lines of a table."""

    lines: list[str]
    cell: str | None
    """The text of its first cell; ``None`` for a head, and for lines that are no row."""


def rows_of(lines: Sequence[str]) -> list[Row] | None:
    """All lines of a paragraph that is a table, as rows; ``None`` if it is none that can be read."""
    if len(lines) > 2 and "|" in lines[0] and _DELIMITER.match(lines[1]):
        return [*(Row([line], None) for line in lines[:2]), *(Row([line], _first_of_bars(line)) for line in lines[2:])]
    if len(lines) > 2 and _GRID.match(lines[0]) and _GRID.match(lines[-1]):
        return _rows_of_grid(lines)
    if len(lines) > 3 and _BORDER.match(lines[0]) and _BORDER.match(lines[-1]):
        return _rows_of_columns(lines)
    return _rows_of_list(lines) if _LISTED.match(lines[0]) else None


def is_only(cell: str, found: re.Match[str]) -> bool:
    """Whether a cell has no words but those that were found in it, their arguments and the target of a link."""
    rest = f"{cell[: found.start()]} {cell[found.end() :]}"
    return re.search(r"\w", _ARGUMENTS.sub("", _LINK.sub("", _ROLE.sub("", rest)))) is None


def _first_of_bars(line: str) -> str:
    return re.split(r"(?<!\\)\|", line.strip().removeprefix("|"))[0].strip()


def _rows_of_grid(lines: Sequence[str]) -> list[Row]:
    found = [Row([lines[0]], None)]
    own: list[str] = []
    head_end = next((number for number, line in enumerate(lines) if _GRID.match(line) and "=" in line), 0)
    for number, line in enumerate(lines[1:], 1):
        own.append(line)
        if _GRID.match(line):
            cell = " ".join(filter(None, map(_first_of_bars, own[:-1])))
            found.append(Row(own, None if number <= head_end else cell))
            own = []
    return found


def _rows_of_columns(lines: Sequence[str]) -> list[Row] | None:
    borders = [number for number, line in enumerate(lines) if _BORDER.match(line)]
    if len(borders) not in {2, 3} or any(not line.strip(" -") for line in lines):
        return None  # a row of cells that span others
    start = indent_of(lines[0])
    end = lines[0].index(" ", start)
    found = [Row(list(lines[: borders[-2] + 1]), None)]
    for line in lines[borders[-2] + 1 : borders[-1]]:
        first = line[start:end].strip()
        if first or len(found) == 1:
            found.append(Row([line], first))
        else:
            found[-1].lines.append(line)
    return [*found, Row(list(lines[borders[-1] :]), None)]


def _rows_of_list(lines: Sequence[str]) -> list[Row] | None:
    found: list[Row] = []
    for line in lines:
        own, depth = _LISTED.match(line), indent_of(line) - indent_of(lines[0])
        if own is not None and not depth:
            found.append(Row([line], own["cell"].strip()))
        elif found and depth > 0:
            found[-1].lines.append(line)
        else:
            return None
    head = found[0]  # nearly always
    return [Row(head.lines, None), *found[1:]]
