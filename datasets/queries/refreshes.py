"""Reports of ``excise refresh``, beside the snapshots of a task set.

::

    DIR/refreshes/<refresh>.json    the report
    DIR/refreshes/<refresh>.txt     the same for people

They are not part of a snapshot. A report is written after its refresh has published, and never changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from excise.datasets.storage.manifest import SnapshotReport
from excise.datasets.storage.near_duplicates import NearDuplicate
from excise.errors import StoreError
from excise.system.files import replace_file, store_errors
from excise.types import from_json, to_json

FOLDER = "refreshes"
"""Name of the folder in the folder of a task set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReverifiedTask:
    """A published task that a refresh proved again, or tried to."""

    instance_id: str
    """Id of the task."""
    outcome: str
    """``holds``; ``quarantined``; ``unconfirmed``: it failed once, but not when all was built anew; ``undecided``: the
    infrastructure failed, or its environment could not be built."""
    gate: str = ""
    """The gate that did not pass, or what failed before the gates."""
    reason: str = ""
    """Machine-readable code."""
    detail: str = ""
    """A sentence for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What a refresh made of one source."""

    source: str
    """The source as the user named it."""
    num_tasks: int
    """Number of its tasks."""
    num_candidates: int
    """Number of candidates tried."""
    stage: str = ""
    """Stage at which the source failed; empty if it did not."""
    reason: str = ""
    """Machine-readable code of the failure."""
    detail: str = ""
    """A sentence for users."""
    is_infrastructure: bool = False
    """Whether the infrastructure failed, so that nothing was decided."""
    cpu_s: float = 0.0
    """CPU seconds of its tasks, as if nothing had come from the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCount:
    """How many rows of ``rejections`` have a stage and a reason."""

    stage: str
    """The stage."""
    reason: str
    """The reason."""
    count: int
    """Number of rejections."""
    num_undecided: int = 0
    """Number of these for which the infrastructure failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCost:
    """What the jobs of one stage cost in this refresh."""

    stage: str
    """The stage."""
    jobs: int
    """Number of jobs."""
    cpu_s: float
    """CPU seconds."""
    wall_s: float
    """Wall seconds of all jobs, which may overlap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshReport:
    """The report of one ``excise refresh``."""

    refresh_id: str
    """Id of the refresh: its start (UTC) and its process."""
    started_at: str
    """Start (UTC)."""
    wall_s: float
    """Wall seconds."""
    ending: str
    """``done``, ``interrupted`` or ``failed``; a refresh that ends before it publishes changes nothing."""
    error: str = ""
    """What ended a refresh that failed."""
    run: str = ""
    """Name of its log in ``logs/``."""
    snapshot: int | None = None
    """Number of the set's snapshot after the refresh; ``None`` if nothing was ever published."""
    num_tasks: int = 0
    """Number of tasks of that snapshot."""
    changes: SnapshotReport = field(default_factory=SnapshotReport)
    """The tasks that were added, changed and removed."""
    reverified: tuple[ReverifiedTask, ...] = ()
    """The tasks that were proved again."""
    num_not_reverified: int = 0
    """Number of tasks that were to be proved again, for which no time was left."""
    sources: tuple[SourceReport, ...] = ()
    """Every source."""
    failures: tuple[FailureCount, ...] = ()
    """Rejections of the set by stage and reason, the most frequent first."""
    costs: tuple[StageCost, ...] = ()
    """Costs of the jobs of this refresh by stage, the most expensive first; what came from the cache cost nothing."""
    near_duplicates: tuple[NearDuplicate, ...] = ()
    """New tasks that are almost the same as others."""
    excise_version: str = ""
    """Version of excise."""

    @property
    def quarantined(self) -> tuple[ReverifiedTask, ...]:
        """The tasks that this refresh put into quarantine."""
        return tuple(task for task in self.reverified if task.outcome == "quarantined")


def json_path(store: Path, refresh_id: str) -> Path:
    """File of a report."""
    return store / FOLDER / f"{refresh_id}.json"


def text_path(store: Path, refresh_id: str) -> Path:
    """File of a report for people."""
    return store / FOLDER / f"{refresh_id}.txt"


def write_report(store: Path, report: RefreshReport, text: str) -> None:
    """Write a report durably, with its text for people. Raises :class:`StoreError`."""
    with store_errors("store the report of the refresh"):
        replace_file(text_path(store, report.refresh_id), text.encode("utf-8", "replace"))
        replace_file(json_path(store, report.refresh_id), report_json(report))


def report_json(report: RefreshReport) -> bytes:
    """The report as JSON, with the changes as lists of ids."""
    return json.dumps(json.loads(to_json(report)), indent=1, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def refresh_ids(store: Path) -> list[str]:
    """Ids of the refreshes that have a report, newest first."""
    return sorted((path.stem for path in (store / FOLDER).glob("*.json")), reverse=True)


def read_report(store: Path, refresh_id: str) -> RefreshReport:
    """A report. Raises :class:`StoreError` if there is none, or if it is damaged."""
    path = json_path(store, refresh_id)
    with store_errors("read the report of a refresh"):
        data = path.read_bytes()
    try:
        return from_json(RefreshReport, data)
    except ValueError as error:
        raise StoreError(f"{path} is damaged: {error}", reason="damaged") from error


def last_proved(store: Path) -> dict[str, str]:
    """Id of a task to the start of the last refresh that proved it again, or could not decide. Damaged reports count
    for nothing."""
    found: dict[str, str] = {}
    for refresh_id in reversed(refresh_ids(store)):
        try:
            report: dict[str, Any] = json.loads(json_path(store, refresh_id).read_bytes())
            tasks = [task["instance_id"] for task in report["reverified"] if task["outcome"] != "unconfirmed"]
            found |= dict.fromkeys(map(str, tasks), str(report["started_at"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found
