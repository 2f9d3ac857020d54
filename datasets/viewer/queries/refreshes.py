"""Refreshes of the set (``excise refresh``) from their reports."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.datasets.queries.refreshes import FOLDER, RefreshReport, json_path, read_report, refresh_ids
from excise.datasets.viewer.loaded_set import LoadedSet
from excise.datasets.viewer.queries.filters import Page, page_of
from excise.errors import StoreError

MAX_LISTED = 500
"""Tasks, sources or reasons that a list of the page of one refresh shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSummary:
    """A row of the list of refreshes."""

    refresh_id: str
    """Id of the refresh."""
    started_at: str
    """Start (UTC)."""
    ending: str
    """``done``, ``interrupted``, ``failed``, or ``damaged`` if the report cannot be read."""
    snapshot: int | None = None
    """Snapshot after it."""
    num_tasks: int = 0
    """Tasks of that snapshot."""
    num_came: int = 0
    """Added tasks."""
    num_changed: int = 0
    """Changed tasks."""
    num_went: int = 0
    """Removed tasks."""
    num_quarantined: int = 0
    """Tasks that it put into quarantine."""
    num_reverified: int = 0
    """Tasks that it proved again, or tried to."""
    num_failed: int = 0
    """Sources that failed."""
    wall_s: float = 0.0
    """Wall seconds."""
    cpu_s: float = 0.0
    """CPU seconds of its jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshList:
    """One page of refreshes."""

    page: Page
    """Which page."""
    rows: list[RefreshSummary]
    """The refreshes, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRefresh:
    """Everything about one refresh."""

    report: RefreshReport
    """Its report."""
    known: frozenset[str]
    """Tasks of the report that the set still has."""
    older: str
    """Id of the refresh before; empty if there is none."""
    newer: str
    """Id of the refresh after; empty if there is none."""


_READ: dict[str, tuple[int, RefreshSummary]] = {}
"""Path of a report to its time of change and its summary."""
_LOCK = threading.Lock()


def refresh_list(root: Path, number: str = "", size: int = 50) -> RefreshList:
    """The refreshes of the set in the folder ``root``."""
    names = refresh_ids(root)
    page = page_of(number, len(names), size)
    shown = names[page.offset : page.offset + page.size]
    return RefreshList(page=page, rows=[_summary(root, name) for name in shown])


def _summary(root: Path, refresh_id: str) -> RefreshSummary:
    path = json_path(root, refresh_id)
    damaged = RefreshSummary(refresh_id=refresh_id, started_at="", ending="damaged")
    try:
        changed_at = path.stat().st_mtime_ns
    except OSError:
        return damaged
    with _LOCK:
        known = _READ.get(str(path))
    if known is not None and known[0] == changed_at:
        return known[1]
    try:
        report = read_report(root, refresh_id)
    except StoreError:
        return damaged
    found = RefreshSummary(
        refresh_id=refresh_id,
        started_at=report.started_at,
        ending=report.ending,
        snapshot=report.snapshot,
        num_tasks=report.num_tasks,
        num_came=report.changes.num_came,
        num_changed=report.changes.num_changed,
        num_went=report.changes.num_went,
        num_quarantined=len(report.quarantined),
        num_reverified=len(report.reverified),
        num_failed=sum(bool(source.stage) for source in report.sources),
        wall_s=report.wall_s,
        cpu_s=sum(cost.cpu_s for cost in report.costs),
    )
    with _LOCK:
        _READ[str(path)] = changed_at, found
    return found


def whole_refresh(index: LoadedSet, refresh_id: str) -> WholeRefresh | None:
    """A refresh; ``None`` if it has no report that can be read."""
    names = refresh_ids(index.root)
    if refresh_id not in names:
        return None
    try:
        report = read_report(index.root, refresh_id)
    except StoreError:
        return None
    place, changes = names.index(refresh_id), report.changes
    ids = [*(task.instance_id for task in report.reverified), *changes.came, *changes.changed]
    ids += [name for pair in report.near_duplicates for name in (pair.instance_id, pair.near_duplicate_of)]
    known = index.rows("SELECT instance_id FROM task_rows WHERE list_contains(?, instance_id)", [ids]) if ids else []
    return WholeRefresh(
        report=report,
        known=frozenset(str(row["instance_id"]) for row in known),
        older=_first_readable(index.root, names[place + 1 :]),
        newer=_first_readable(index.root, names[:place][::-1]),
    )


def _first_readable(root: Path, names: Sequence[str]) -> str:
    return next((name for name in names if _summary(root, name).ending != "damaged"), "")


def changed_at(root: Path) -> int:
    """When the newest report was written, in nanoseconds; 0 without reports."""
    folder = root / FOLDER
    return max((path.stat().st_mtime_ns for path in folder.glob("*.json") if path.exists()), default=0)
