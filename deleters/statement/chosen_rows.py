"""Which rows of the tables of hidden tests a statement shows: with an error, with something empty, of each form."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from excise.types import content_id

MAX_ROW, MAX_LINE, MAX_CHARS = 300, 160, 1200
"""Number of characters of a row, of a line around the table, and of all that is shown of a test."""
ROWS_FOR_EACH_SHOWN = 2
"""Number of rows of a table for each one that is shown, at least."""
MAX_ROWS = 5
"""Number of rows of a table that are shown, at most."""
_LITERAL = re.compile(r"""\"(?:[^"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|\b\d[\w.]*""")
"""What rows of one form differ in: texts, characters and numbers."""
MIN_ROWS = 3
"""Number of rows from which on one is shown though none is special."""


class Row(NamedTuple):
    """A row of a table of a test."""

    start: int
    """Where it starts, in bytes."""
    text: str
    """Its source, indented by one tab or four blanks."""
    is_error: bool
    """Whether what it expects is an error."""
    is_empty: bool
    """Whether a value in it is empty."""
    names: frozenset[str] = frozenset()
    """Names in it."""


def chosen_rows(rows: Collection[Row], number: int) -> list[Row]:
    """The rows, of the ``number`` of a table, that are shown: one with an error, one with something empty, and of many
    one of each form; which one of several alike depends on their texts alone."""
    ordered = sorted((row for row in rows if len(row.text) <= MAX_ROW), key=lambda row: content_id("row", row.text))
    special = [row for row in ordered if row.is_error][:1]
    special += [row for row in ordered if row.is_empty and row not in special][:1]
    forms: dict[str, Row] = {}
    for row in ordered:
        forms.setdefault(_LITERAL.sub("0", row.text), row)
    plain = [row for row in forms.values() if not row.is_error and row not in special]
    found = [*special, *(plain if len(ordered) >= MIN_ROWS else [])]
    return sorted(found[: min(MAX_ROWS, number // ROWS_FOR_EACH_SHOWN)], key=lambda row: row.start)


def shown_table(lines: Collection[str], use: str, comment: str = "//") -> str:
    """The text of a table with the line that uses each row, if there is one; empty if it is too long."""
    shown = "\n".join([*lines, *([f"{comment} each row: {use}"] if use else [])])
    return shown if len(shown) <= MAX_CHARS and "```" not in shown else ""
