"""What the lists of pages may be filtered by, and ``WHERE`` clauses from what an address asks for.

The SQL is fixed; what comes from outside is a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from excise.datasets.viewer.loaded_set import LoadedSet

PAGE_SIZE = 50
"""Rows of a page."""
MAX_CHOICES = 400
"""Values that a filter offers."""
MAX_WORDS = 8
"""Words of a search that count."""


@dataclass(slots=True)
class Where:
    """Conditions that must all hold."""

    parts: list[str] = field(default_factory=list)
    """SQL of each condition."""
    values: list[object] = field(default_factory=list)
    """Values of their parameters, in order."""

    def add(self, sql: str, *values: object) -> None:
        """Add a condition."""
        self.parts.append(sql)
        self.values.extend(values)

    def search(self, text: str, column: str = "haystack") -> None:
        """Every word of ``text`` must occur in the column of lower-case text."""
        for word in text.lower().split()[:MAX_WORDS]:
            self.add(f"contains({column}, ?)", word)

    def equals(self, wanted: Mapping[str, str], columns: Mapping[str, str]) -> None:
        """Every named value that is given must be the column's text."""
        for name, column in columns.items():
            if value := wanted.get(name, ""):
                self.add(f"{column}::VARCHAR = ?", value)

    @property
    def sql(self) -> str:
        """The clause, with the word WHERE; empty without conditions."""
        return f" WHERE {' AND '.join(self.parts)}" if self.parts else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a long list."""

    number: int
    """Number of the page, from 1."""
    total: int
    """Number of all rows."""
    size: int = PAGE_SIZE
    """Rows of a page."""

    @property
    def last(self) -> int:
        """Number of the last page."""
        return max(1, -(-self.total // self.size))

    @property
    def offset(self) -> int:
        """Rows before this page."""
        return (self.number - 1) * self.size

    @property
    def first_row(self) -> int:
        """Number of the first row, from 1; 0 without rows."""
        return self.offset + 1 if self.total else 0

    @property
    def last_row(self) -> int:
        """Number of the last row."""
        return min(self.total, self.offset + self.size)

    def neighbours(self) -> Iterator[int | None]:
        """Numbers of pages to link to; ``None`` for a gap."""
        shown = sorted({1, self.last, *range(max(1, self.number - 2), min(self.last, self.number + 2) + 1)})
        for before, number in zip([0, *shown], shown, strict=False):
            if number > before + 1:
                yield None
            yield number


def page_of(text: str, total: int, size: int = PAGE_SIZE) -> Page:
    """The page that an address asks for, or the nearest one that exists."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    last = max(1, -(-total // size))
    return Page(number=min(max(1, number), last), total=total, size=size)


def choices_of(index: LoadedSet, table: str, columns: Mapping[str, str]) -> dict[str, list[str]]:
    """The values that filters offer, the most frequent first; ``columns``: name of each to its column, as SQL."""
    found = {}
    for name, column in columns.items():
        sql = f"SELECT v FROM (SELECT {column}::VARCHAR AS v FROM {table}) GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT ?"
        found[name] = [str(row["v"]) for row in index.rows(sql, [MAX_CHOICES]) if row["v"]]
    return found
