"""What was refused, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.viewer.loaded_set import LoadedSet, Row
from excise.datasets.viewer.queries.filters import Page, Where, choices_of, page_of
from excise.datasets.viewer.queries.tasks import GateRuns, gates_of

FILTERS = {"repo": "repo", "stage": "stage", "reason": "reason", "kind": "kind"}
"""Names of filters to columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionList:
    """One page of rejections."""

    page: Page
    """Which page."""
    rows: list[Row]
    """The rejections; ``file`` and ``row`` name them."""


def rejection_list(index: LoadedSet, wanted: Mapping[str, str], size: int = 50) -> RejectionList:
    """The rejections that search and filters of an address ask for."""
    where = Where()
    where.search(wanted.get("q", ""))
    where.equals(wanted, FILTERS)
    counted = index.row(f"SELECT count(*) AS n FROM rejection_rows{where.sql}", where.values) or {"n": 0}
    page = page_of(wanted.get("page", ""), int(counted["n"]), size)
    order = "repo, stage, reason, subject, row"
    sql = f"""SELECT * EXCLUDE (haystack, file), parse_filename(file) AS file FROM rejection_rows
              WHERE rowid IN (SELECT rowid FROM rejection_rows{where.sql} ORDER BY {order} LIMIT ? OFFSET ?)
              ORDER BY {order}"""
    return RejectionList(page=page, rows=index.rows(sql, [*where.values, page.size, page.offset]))


def choices(index: LoadedSet) -> dict[str, list[str]]:
    """The values that filters offer, the most frequent first."""
    return choices_of(index, "rejection_rows", FILTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRejection:
    """Everything about one rejection."""

    row: Row
    """All columns."""
    gates: list[GateRuns]
    """Verdicts on the candidate, gate by gate; empty if it was refused before any gate."""


def whole_rejection(index: LoadedSet, file: str, row: int) -> WholeRejection | None:
    """The rejection in a row of a file of the snapshot; ``None`` if there is none."""
    place = index.row("SELECT file, row FROM rejection_rows WHERE parse_filename(file) = ? AND row = ?", [file, row])
    found = index.whole_row(place) if place else None
    if found is None or index.snapshot is None:
        return None
    return WholeRejection(row=found, gates=gates_of(_verdicts(index, index.snapshot, file, row, str(found["subject"]))))


def _verdicts(index: LoadedSet, snapshot: Path, file: str, row: int, subject: str) -> list[Row]:
    places = index.cached("verdict files", lambda: _verdict_files(snapshot)).get(file, [])
    name = next((name for place, name in places if row in place), None)
    if name is None or not (snapshot / "verdicts" / name).exists():
        return []
    sql = "SELECT * FROM read_parquet(?) WHERE instance_id = ? ORDER BY gate, run"
    return index.rows(sql, [str(snapshot / "verdicts" / name), subject])


def _verdict_files(snapshot: Path) -> dict[str, list[tuple[range, str]]]:
    """File of rejections to (rows of one project, the project's file of verdicts) pairs."""
    found: dict[str, list[tuple[range, str]]] = {}
    for entry in Snapshot.open(snapshot).index.entries.values():
        if {"rejections", "verdicts"} <= entry.tables.keys():
            place = entry.tables["rejections"]
            rows = range(place.start, place.start + place.count)
            found.setdefault(place.file, []).append((rows, entry.tables["verdicts"].file))
    return found
