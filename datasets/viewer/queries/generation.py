"""Runs of ``excise generate`` and ``refresh`` from their logs, also while they run."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from excise.system.run_log import FOLDER


@dataclass(slots=True, kw_only=True)
class SourceProgress:
    """Where one source is."""

    source: str
    """The source as it was given."""
    stage: str = "waiting"
    """Stage that was begun last."""
    running: int = 0
    """Jobs that have begun and not ended."""
    since: str = ""
    """When the last stage began (UTC)."""
    seconds: float = 0.0
    """Wall seconds of all jobs."""
    failed: str = ""
    """Message of the last failure, if there is one."""


@dataclass(slots=True, kw_only=True)
class GenerationRun:
    """One run."""

    name: str
    """Name of the log without its ending."""
    started_at: str = ""
    """When it began (UTC)."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the log says of the beginning and the end."""
    is_running: bool = False
    """Whether it has not ended and its process is alive on this machine."""
    sources: dict[str, SourceProgress] = field(default_factory=dict)
    """Progress by source."""
    problems: list[dict[str, Any]] = field(default_factory=list)
    """The last warnings and errors."""


_READ: dict[str, tuple[int, GenerationRun]] = {}
"""Path of a log to the position up to which it has been read, and the run so far."""
_LOCK = threading.Lock()


def run_names(root: Path) -> list[str]:
    """Names of the runs, newest first."""
    names = (path.stem for path in (root / FOLDER).glob("run-*.jsonl"))
    return sorted((name for name in names if "-worker-" not in name), reverse=True)


def read_run(root: Path, name: str) -> GenerationRun | None:
    """A run from its log; ``None`` if there is none of this name."""
    path = root / FOLDER / f"{name}.jsonl"
    if name not in run_names(root):
        return None
    with _LOCK:
        return _continued(path, name)


def _continued(path: Path, name: str) -> GenerationRun:
    """The run of a log; only what was written since the last call is read."""
    run, key, size = GenerationRun(name=name), str(path), path.stat().st_size
    if key not in _READ or _READ[key][0] > size:
        _READ[key] = 0, run
    position, run = _READ[key]
    for line, end in _lines(path, position):
        _add(run, line)
        _READ[key] = end, run
    run.is_running = "seconds" not in run.facts and _is_alive(name)
    return run


def _add(run: GenerationRun, line: dict[str, Any]) -> None:
    event, source = line.get("event"), line.get("source")
    if line.get("level") in {"warning", "error"}:
        run.problems = [*run.problems, line][-20:]
    if event == "run begun":
        run.started_at = str(line.get("time", ""))
        run.facts |= {key: line[key] for key in ("sources", "workers", "refresh") if key in line}
    elif event == "run ended":
        run.facts |= {key: line[key] for key in ("seconds", "cpu_s", "tasks", "interrupted") if key in line}
    elif isinstance(source, str) and event in {"stage begun", "stage ended", "stage refused"}:
        state = run.sources.setdefault(source, SourceProgress(source=source))
        if event == "stage begun":
            state.stage, state.since = str(line.get("stage", "")), str(line.get("time", ""))
            state.running += 1
        else:
            state.running = max(0, state.running - 1)
            state.seconds += float(line.get("seconds") or 0)
            if event != "stage ended":
                state.failed = str(line.get("reason") or line.get("detail") or event)


def _is_alive(name: str) -> bool:
    """Whether the process that the log's name ends with exists."""
    try:
        os.kill(int(name.rpartition("-")[2]), 0)
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _lines(path: Path, position: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Whole lines from a position on, each with the position after it."""
    with path.open("rb") as file:
        file.seek(position)
        for line in file:
            if not line.endswith(b"\n"):  # being written
                return
            position += len(line)
            if b'"job measured"' in line:
                continue
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record, position
