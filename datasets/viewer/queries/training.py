"""Training runs: curves from their folders and from the rollouts in the set, and what the curriculum asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from excise.datasets.viewer.loaded_set import LoadedSet, Row
from excise.datasets.viewer.rendering.charts import Series

CHARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Pass rate and reward", ("pass@1", "pass@k", "reward")),
    ("Tier of the tasks", ("tier",)),
    ("Tokens of an attempt", ("tokens",)),
    ("Turns of an attempt", ("turns",)),
    ("KL of sampler and policy", ("mismatch_kl",)),
    ("KL of hints", ("hint_kl", "hint_kl_after")),
    ("Engine occupancy", ("engine_occupancy",)),
    ("Engine idle", ("engine_idle",)),
    ("Groups without a signal, hacks, infrastructure errors", ("zero_variance", "hacks", "infra_errors")),
    ("Staleness in versions", ("staleness", "staleness_max")),
    ("Seconds: waiting, learning", ("wait_s", "learn_s")),
    ("Entropy", ("entropy",)),
    ("Curriculum: requests", ("pool/num_requests",)),
)
"""Title of a chart, and the metrics in it. Charts without a value are left out."""
_BY_STEP = """
SELECT step, avg(solved::INT) FILTER (counts) AS "pass@1", avg(reward) FILTER (counts) AS reward, avg(tier) AS tier,
       avg(tokens) AS tokens, avg(turns) AS turns, avg((len(flags) > 0)::INT) AS hacks,
       avg((ending = 'infra_error')::INT) AS infra_errors
FROM rollout_rows WHERE run = ? GROUP BY step ORDER BY step
"""
_RUNS = """
SELECT run, count(*) AS rollouts, max(step) AS steps, avg(solved::INT) AS pass_rate, avg(reward) AS reward,
       count(*) FILTER (len(flags) > 0) AS flagged, count(*) FILTER (len(hints) > 0) AS hinted,
       count(DISTINCT instance_id) AS tasks
FROM rollout_rows GROUP BY run ORDER BY run
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """One training run."""

    name: str
    """Name of its rollouts in the set."""
    folder: Path | None = None
    """Its folder, if ``--runs`` named it."""
    counts: Row = field(default_factory=dict)
    """Sums over its rollouts; empty if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the curriculum asked the generator for."""

    request_id: str
    """Id of the request."""
    record: Row
    """The request."""
    state: str
    """``open``, ``done`` or the exit code."""


def training_runs(index: LoadedSet, folders: Sequence[Path]) -> list[TrainingRun]:
    """Runs with rollouts in the set, or with a folder in ``folders`` or directly below one of them."""
    counted = {str(row["run"]): row for row in index.rows(_RUNS)}
    placed = {_stored_as(folder): folder for folder in run_folders(folders)}
    return [
        TrainingRun(name=name, folder=placed.get(name), counts=counted.get(name, {}))
        for name in sorted(counted.keys() | placed.keys())
    ]


def run_folders(folders: Iterable[Path]) -> Iterator[Path]:
    """Folders of training runs among ``folders`` and the folders directly in them."""
    for folder in folders:
        yield from (path.parent for path in sorted([*folder.glob("metrics.jsonl"), *folder.glob("*/metrics.jsonl")]))


def _stored_as(folder: Path) -> str:
    try:
        return (folder / "stored-as").read_text(encoding="utf-8").strip() or folder.name
    except OSError:
        return folder.resolve().name


def metrics(index: LoadedSet, run: TrainingRun) -> list[Row]:
    """Metrics of each step: those of the run's folder, and where it is not known, those that the rollouts give."""
    if run.folder is not None and (rows := list(_json_lines(run.folder / "metrics.jsonl"))):
        return sorted(rows, key=lambda row: row["step"])
    return index.rows(_BY_STEP, [run.name])


def chart_series(rows: Sequence[Row]) -> Iterator[tuple[str, list[Series]]]:
    """Title and curves of each chart that has values."""
    for title, names in CHARTS:
        curves = []
        for name in names:
            points = tuple(
                (float(row["step"]), float(row[name]))
                for row in rows
                if isinstance(row.get(name), int | float) and abs(row[name]) < 1e300
            )
            if points:
                curves.append(Series(name=name, points=points))
        if curves:
            yield title, curves


def requests(run: TrainingRun) -> list[Request]:
    """The curriculum's requests, in order."""
    if run.folder is None:
        return []
    found = []
    for path in (run.folder / "requests").glob("*.json"):
        try:
            record = json.loads(path.read_bytes())
            code = path.with_suffix(".code")
            state = code.read_text(encoding="utf-8").strip() if code.exists() else ""
        except (OSError, ValueError):
            continue
        if isinstance(record, dict):
            label = {"": "open", "0": "done", "3": "partly done", "-1000": "timed out"}.get(state, f"exit code {state}")
            found.append(Request(request_id=path.stem, record=record, state=label))
    return sorted(found, key=lambda request: request.record.get("number") or 0)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Rows with a step; a line that is being written is ignored."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("step"), int) and abs(row["step"]) < 2**53:
            yield row
