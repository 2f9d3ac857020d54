"""Registry of export formats for task sets."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError
from excise.protocols import Exporter
from excise.system.files import store_errors

EXPORTERS = {
    "jsonl": "excise.datasets.export_jsonl:JsonlExporter",
}
"""Format name to ``module:class``."""


def exporter(name: str) -> Exporter:
    """The exporter called ``name``. Raises :class:`ConfigError` if there is none."""
    if name not in EXPORTERS:
        raise ConfigError(f"Unknown export format {name!r}: choose from {', '.join(sorted(EXPORTERS))}.")
    module, _, cls = EXPORTERS[name].partition(":")
    instance: Exporter = getattr(import_module(module), cls)()
    return instance


def export(taskset: TaskSet, name: str, into: Path, repo: str | None = None) -> int:
    """Export all tasks, or those of one repository, into the folder ``into``. Returns their number."""
    rows = taskset.task_rows(repo)
    with store_errors(f"export to {into}"):
        into.mkdir(parents=True, exist_ok=True)
        exporter(name).export(iter(rows), into)
    return len(rows)
