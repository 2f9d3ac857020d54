"""``excise refresh``: makes the tasks, proves a part of the published ones again, and reports what came of it."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import excise
from excise.config import Settings
from excise.datasets.queries.costs import profile
from excise.datasets.queries.refreshes import (
    FailureCount,
    RefreshReport,
    SourceReport,
    StageCost,
    last_proved,
    report_json,
    text_path,
    write_report,
)
from excise.datasets.storage.manifest import listed
from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError, StoreError
from excise.pipeline.run.graph import Listener, RunResult, run
from excise.pipeline.run.source_state import SourceState
from excise.pipeline.services.refresh_report import report_text, send_report
from excise.pipeline.services.reverify import Reverification, choose, reverify
from excise.system.files import replace_file, store_errors
from excise.types import WorkerOutcome

logger = logging.getLogger(__name__)
MAX_DETAIL = 2000
"""Maximum number of characters of an explanation in a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """The result of a refresh."""

    run: RunResult
    """What the run made of the sources."""
    report: RefreshReport
    """The report, which is stored."""


def refresh(
    settings: Settings,
    listener: Listener,
    *,
    log: Path | None = None,
    warn: Callable[[str], None] = lambda _: None,
    copy_to: Path | None = None,
) -> RefreshResult:
    """Update a task set from its sources, reverify a part of it, store the report and give it to the report hook.

    ``log`` is the file of the run's log, ``copy_to`` a folder for ``report.json`` and ``report.txt``. ``warn`` gets
    what went wrong with the report, which never fails a refresh.
    Raises :class:`excise.errors.ConfigError` and :class:`excise.errors.StoreError`, after the report says so.
    """
    now = datetime.now(UTC)
    report = RefreshReport(
        refresh_id=f"{now.strftime('%Y%m%dT%H%M%SZ')}-{os.getpid()}",
        started_at=now.isoformat("T", "seconds"),
        wall_s=0.0,
        ending="failed",
        run=log.stem if log else "",
        excise_version=excise.__version__,
    )
    began = time.monotonic()
    try:
        result = run(settings, listener, refresh=True)
    except ExciseError as error:
        report = replace(report, error=str(error)[:MAX_DETAIL], wall_s=round(time.monotonic() - began, 1))
        _publish_report(settings, report, warn, copy_to)
        raise
    proved, problem = Reverification(), None
    try:
        if not result.interrupted:
            proved = _reverify_some(settings, result, report)
    except ExciseError as error:  # what was published is published
        problem = error
    interrupted = result.interrupted or proved.interrupted
    report = replace(
        _described(settings, result, report),
        ending="failed" if problem else "interrupted" if interrupted else "done",
        error=str(problem or "")[:MAX_DETAIL],
        reverified=proved.tasks,
        num_not_reverified=proved.num_left,
        wall_s=round(time.monotonic() - began, 1),
    )
    _publish_report(settings, report, warn, copy_to)
    if problem:
        raise problem
    return RefreshResult(run=replace(result, interrupted=interrupted), report=report)


def _reverify_some(settings: Settings, result: RunResult, report: RefreshReport) -> Reverification:
    """Prove again what the settings ask for, among the tasks that this refresh did not prove."""
    if not settings.refresh.reverify or Snapshot.current(settings.out) is None:
        return Reverification()
    fresh = {*result.report.came, *result.report.changed}
    taskset = TaskSet.open(settings.out)
    excluded = fresh | {entry.instance_id for entry in taskset.quarantines()}
    known = [name for name in taskset.ids() if name not in excluded]
    seed = (settings.seed, report.started_at)
    ids = choose(known, settings.refresh.reverify, last_proved(settings.out), seed)
    return reverify(settings, ids) if ids else Reverification()


def _described(settings: Settings, result: RunResult, report: RefreshReport) -> RefreshReport:
    """The report with what is known of the run and of the set after it."""
    snapshot = Snapshot.current(settings.out)
    found = listed(result.report)
    costs = profile(settings.out, report.run)["stage"] if report.run else []
    return replace(
        report,
        snapshot=snapshot.manifest.number if snapshot else None,
        num_tasks=snapshot.manifest.num_tasks if snapshot else 0,
        changes=found,
        sources=tuple(map(_source_report, result.states)),
        failures=_failures(snapshot) if snapshot else (),
        costs=tuple(
            StageCost(stage=row["stage"], jobs=row["jobs"], cpu_s=row["cpu_s"], wall_s=row["wall_s"]) for row in costs
        ),
        near_duplicates=tuple(result.near_duplicates),
    )


def _source_report(state: SourceState) -> SourceReport:
    failure, counts = state.failure, state.report()
    return SourceReport(
        source=state.name,
        num_tasks=state.num_tasks,
        num_candidates=counts.num_candidates,
        stage=failure.stage if failure else "",
        reason=failure.reason if failure else "",
        detail=failure.detail[:MAX_DETAIL] if failure else "",
        is_infrastructure=failure is not None and failure.worker_outcome is not WorkerOutcome.OK,
        cpu_s=counts.cpu_s,
    )


def _failures(snapshot: Snapshot) -> tuple[FailureCount, ...]:
    """Rejections of a snapshot by stage and reason."""
    counts: Counter[tuple[str, str]] = Counter()
    undecided: Counter[tuple[str, str]] = Counter()
    for rows in snapshot.batches("rejections", ["stage", "reason", "worker_outcome"]):
        for row in rows:
            key = row["stage"], row["reason"]
            counts[key] += 1
            undecided[key] += row["worker_outcome"] != str(WorkerOutcome.OK)
    return tuple(
        FailureCount(stage=stage, reason=reason, count=count, num_undecided=undecided[stage, reason])
        for (stage, reason), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )


def _publish_report(
    settings: Settings, report: RefreshReport, warn: Callable[[str], None], copy_to: Path | None
) -> None:
    """Store the report and send it; what fails is a warning, since the refresh itself is over."""
    text, problems = report_text(report), []
    try:
        write_report(settings.out, report, text)
        place = text_path(settings.out, report.refresh_id)
        if copy_to:
            place = copy_to / "report.txt"
            with store_errors("copy the report of the refresh"):
                replace_file(place, text.encode("utf-8", "replace"))
                replace_file(copy_to / "report.json", report_json(report))
        problems = send_report(settings.refresh, report, place)
    except StoreError as error:
        problems = [f"The report of the refresh was not stored or sent: {error}"]
    for problem in problems:
        logger.warning("report not sent", extra={"detail": problem})
        warn(problem)
