"""Rows of other tools' sets (``excise import``) and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from excise.datasets.viewer.loaded_set import LoadedSet, Row
from excise.datasets.viewer.queries.filters import Page, Where, choices_of, page_of

FILTERS = {"set": "imported_set", "status": "status", "reason": "reason", "repo": "repo"}
"""Names of filters to columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportList:
    """One page of imported rows."""

    page: Page
    """Which page."""
    rows: list[Row]
    """The rows, those that are no task of this set first."""
    counts: list[tuple[str, str, int]]
    """Status, reason and number of all rows that the filters let through, most first."""


def import_list(index: LoadedSet, wanted: Mapping[str, str], size: int = 50) -> ImportList:
    """The rows that search and filters of an address ask for."""
    where = Where()
    where.search(wanted.get("q", ""))
    where.equals(wanted, FILTERS)
    counted = index.rows(
        f"""SELECT status, reason, count(*) AS n FROM import_rows{where.sql}
            GROUP BY ALL ORDER BY n DESC, status, reason""",
        where.values,
    )
    page = page_of(wanted.get("page", ""), sum(int(row["n"]) for row in counted), size)
    sql = f"""SELECT * EXCLUDE (haystack) FROM import_rows{where.sql}
              ORDER BY status = 'imported', imported_set, place LIMIT ? OFFSET ?"""
    return ImportList(
        page=page,
        rows=index.rows(sql, [*where.values, page.size, page.offset]),
        counts=[(str(row["status"]), str(row["reason"]), int(row["n"])) for row in counted],
    )


def choices(index: LoadedSet) -> dict[str, list[str]]:
    """The values that filters offer, the most frequent first."""
    return choices_of(index, "import_rows", FILTERS)


def whole_import(index: LoadedSet, imported_set: str, place: str) -> Row | None:
    """All columns of an imported row, and ``is_task``: whether the set has its task. ``None`` if there is none."""
    sql = "SELECT file, row FROM import_rows WHERE imported_set = ? AND place = ?"
    named = index.row(sql, [imported_set, place])
    found = index.whole_row(named) if named else None
    if found is None:
        return None
    has_task = index.row("SELECT 1 FROM task_rows WHERE instance_id = ?", [found["instance_id"]])
    return found | {"is_task": has_task is not None}
