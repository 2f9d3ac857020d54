"""Tables in documents: their rows, in Markdown and in the forms of reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from excise.deleters.documents.running_text import indent_of, is_lost_in_cell

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
_QUOTES = re.compile(r"^(``?|['\"]|)(.*)\1$", re.DOTALL)
"""A cell in the marks of code, or in quotes."""
_BAR = re.compile(r"(?<!\\)\|")
_NAME = re.compile(r"[^\w.]*[\w.]+[^\w.]*")
_NAMES_OF_CODE = re.compile(
    r"\b(?:names?|functions?|methods?|class(?:es)?|commands?|decorators?|exceptions?|modules?|symbols?|calls?|api)\b",
    re.IGNORECASE,
)
"""What stands above a column of names."""
MAX_NAME = 200
"""Number of characters from which on a cell is no name."""


class Row(NamedTuple):
    """Consecutive lines of a table."""

    lines: list[str]
    cells: Sequence[str]
    """The texts of its cells; none for a head, and for lines that are no row."""
    titles: Sequence[str] = ()
    """The cells of a head."""


def rows_of(lines: Sequence[str]) -> list[Row] | None:
    """All lines of a paragraph that is a table, as rows; ``None`` if it is none that can be read."""
    if len(lines) > 2 and start_of_table(lines[:2]) == 0:
        head = [Row([lines[0]], (), _between_bars(lines[0])), Row([lines[1]], ())]
        return [*head, *(Row([line], _between_bars(line)) for line in lines[2:])]
    if len(lines) > 2 and _GRID.match(lines[0]) and _GRID.match(lines[-1]):
        return _rows_of_grid(lines)
    if len(lines) > 3 and _BORDER.match(lines[0]) and _BORDER.match(lines[-1]):
        return _rows_of_columns(lines)
    return _rows_of_list(lines) if _LISTED.match(lines[0]) else None


def rows_left(
    rows: Sequence[Row], pattern: re.Pattern[str], cases: Collection[str] = ()
) -> list[tuple[list[str], list[str]]]:
    """(lines, those that are left) of each row of a table: one whose first cell, or the one in a column of names, is a
    name that is gone goes, if others stay; so does a name in a cell that is a list of names. ``cases`` are texts that
    mean what is gone where they are a whole first cell."""

    def is_gone(cell: str) -> bool:
        found = pattern.search(cell)
        return found is not None and is_only(cell, found)

    column = column_of_names(rows)
    gone = [
        any(map(is_gone, {*row.cells[:1], *row.cells[column : column + 1]}))
        or any(_QUOTES.sub(r"\2", cell) in cases for cell in row.cells[:1])
        for row in rows
    ]
    if all(is_lost for row, is_lost in zip(rows, gone, strict=True) if row.cells):
        gone = [False] * len(rows)
    return [
        (row.lines, [] if is_lost else [line for line in row.lines if not is_lost_in_cell(line, pattern)])
        for row, is_lost in zip(rows, gone, strict=True)
    ]


def start_of_table(lines: Sequence[str]) -> int:
    """The number of the first line that is the head of a Markdown table; that of all lines if none is."""
    pairs = enumerate(pairwise(lines))
    return next((at for at, (head, below) in pairs if "|" in head and _DELIMITER.match(below)), len(lines))


def column_of_names(rows: Sequence[Row]) -> int:
    """The number of the first column of names of code, by its title, each another one: what the rows are about; 0 if
    there is none."""
    titles = next((row.titles for row in rows if row.titles), ())
    columns = zip(titles, *(row.cells for row in rows if row.cells), strict=False)
    for number, (title, *cells) in enumerate(columns):
        are_names = all(len(cell) <= MAX_NAME and _NAME.fullmatch(_plain(cell)) for cell in cells)
        if _NAMES_OF_CODE.search(title) and are_names and len(set(cells)) == len(cells):
            return number
    return 0


def is_only(cell: str, found: re.Match[str]) -> bool:
    """Whether a cell has no words but those that were found in it, their arguments and the target of a link."""
    return re.search(r"\w", _plain(f"{cell[: found.start()]} {cell[found.end() :]}")) is None


def _plain(cell: str) -> str:
    """A cell without arguments, targets of links and roles."""
    return _ARGUMENTS.sub("", _LINK.sub("", _ROLE.sub("", cell)))


def _between_bars(line: str) -> list[str]:
    return [cell.strip() for cell in _BAR.split(line.strip().removeprefix("|"))]


def _joined(cells: Sequence[Sequence[str]]) -> list[str]:
    """The cells of a row whose text stands in several lines."""
    return [" ".join(filter(None, column)) for column in zip(*cells, strict=False)]


def _rows_of_grid(lines: Sequence[str]) -> list[Row]:
    found = [Row([lines[0]], ())]
    own: list[str] = []
    head_end = next((number for number, line in enumerate(lines) if _GRID.match(line) and "=" in line), 0)
    for number, line in enumerate(lines[1:], 1):
        own.append(line)
        if _GRID.match(line):
            cells = _joined([_between_bars(each) for each in own[:-1]])
            found.append(Row(own, (), cells) if number <= head_end else Row(own, cells))
            own = []
    return found


def _rows_of_columns(lines: Sequence[str]) -> list[Row] | None:
    borders = [number for number, line in enumerate(lines) if _BORDER.match(line)]
    if len(borders) not in {2, 3} or any(not line.strip(" -") for line in lines):
        return None  # a row of cells that span others
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    ends = [*starts[1:], None]
    rows: list[list[str]] = []
    for line in lines[borders[-2] + 1 : borders[-1]]:
        if line[starts[0] : ends[0]].strip() or not rows:
            rows.append([])
        rows[-1].append(line)

    def cells_of(own: Sequence[str]) -> list[str]:
        return _joined([[line[s:e].strip() for s, e in zip(starts, ends, strict=True)] for line in own])

    head = Row(list(lines[: borders[-2] + 1]), (), cells_of(lines[1 : borders[-2]]))
    return [head, *(Row(own, cells_of(own)) for own in rows), Row(list(lines[borders[-1] :]), ())]


def _rows_of_list(lines: Sequence[str]) -> list[Row] | None:
    found: list[Row] = []
    for line in lines:
        own, depth = _LISTED.match(line), indent_of(line) - indent_of(lines[0])
        if own is not None and not depth:
            found.append(Row([line], [own["cell"].strip()]))
        elif found and depth > 0:
            found[-1].lines.append(line)
        else:
            return None
    head = found[0]  # nearly always
    return [Row(head.lines, ()), *found[1:]]
