"""Reports of refreshes that tests look at."""

from __future__ import annotations

from typing import Any

from excise.datasets.queries.refreshes import RefreshReport
from excise.datasets.storage.manifest import SnapshotReport, listed


def made_report(
    refresh_id: str, *, came: tuple[str, ...] = (), went: tuple[str, ...] = (), **more: Any
) -> RefreshReport:
    """A report of a refresh that ended, with further fields as given."""
    values: dict[str, Any] = {
        "refresh_id": refresh_id, "started_at": "2026-01-02T03:30:00+00:00", "wall_s": 12.5, "ending": "done",
        "snapshot": 3, "num_tasks": 8, "changes": listed(SnapshotReport(came=came, went=went, unchanged=6)),
        "excise_version": "0.1.0",
    }  # fmt: skip
    return RefreshReport(**(values | more))
