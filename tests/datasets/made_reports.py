"""Reports of refreshes, and attempts of agents, that tests look at."""

from __future__ import annotations

from typing import Any

from excise.datasets.queries.attempts import AttemptRow
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


def made_attempt(run: str, number: int, *, solved: bool, **more: Any) -> AttemptRow:
    """An attempt of a run at one of two tasks, by turns; each used 100 completion tokens more than the one before."""
    tokens = 100 * (number + 1)
    task = f"task-{number % 2}"
    values: dict[str, Any] = {
        "run": run, "attempt_id": f"{task}-{number}", "instance_id": task, "number": number // 2 + 1, "agent": "model",
        "agent_detail": "", "model": "some/model", "style": "specification", "solved": solved,
        "reward": float(solved), "partial": 0.0, "reasons": (), "flags": (), "ending": "finished", "detail": "",
        "steps": 3, "prompt_tokens": 10 * tokens, "completion_tokens": tokens, "cost": tokens / 1e4,
        "wall_s": float(number), "grade_s": 1.0, "started_at": "2026-01-02T03:04:05+00:00", "statement": "Do it.",
        "diff": "", "transcript": "", "excise_version": "0.1.0",
    }  # fmt: skip
    return AttemptRow(**(values | more))
