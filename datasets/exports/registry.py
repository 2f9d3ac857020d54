"""Registry of export formats, and the export of a task set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from excise.datasets.exports.set_files import NO_SET, SET, write_set
from excise.datasets.rows import certificate_from, task_from
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError, StoreError
from excise.protocols import ExportedTask, Exporter, ExportMaterials, ExportReport
from excise.system.files import replace_lines, store_errors
from excise.types import Environment, Task

EXPORTERS = {
    "harbor": "excise.datasets.exports.harbor:HarborExporter",
    "huggingface": "excise.datasets.exports.huggingface:HuggingFaceExporter",
    "jsonl": "excise.datasets.exports.jsonl:JsonlExporter",
    "mini-swe-agent": "excise.datasets.exports.mini_swe_agent:MiniSweAgentExporter",
    "nemo-gym": "excise.datasets.exports.nemo_gym:NemoGymExporter",
    "openenv": "excise.datasets.exports.openenv:OpenEnvExporter",
    "r2e-gym": "excise.datasets.exports.r2e_gym:R2eGymExporter",
    "swe-rebench": "excise.datasets.exports.swe_rebench:SweRebenchExporter",
    "swe-smith": "excise.datasets.exports.swe_smith:SweSmithExporter",
    "swebench": "excise.datasets.exports.swebench:SweBenchExporter",
    "verifiers": "excise.datasets.exports.verifiers_taskset:VerifiersExporter",
}
"""Format name to ``module:class``."""
PYTHON_ALONE = frozenset({"r2e-gym", "swe-rebench", "swe-smith"})
"""Formats whose harnesses run pytest, so that tasks in other languages are left out."""
REPORT = "EXPORT.md"
"""File of an export that says what was written, how to use it, and what the format could not carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSelection:
    """The tasks of a set, or of one of its projects, as exporters are given them; see ``ExportedSet``."""

    taskset: TaskSet
    """The set."""
    materials: ExportMaterials
    """Files beside the tables."""
    name: str
    """Short name of the set."""
    repo: str | None = None
    """The project; ``None`` for all."""
    restated: Callable[[Task], Task] = lambda task: task
    """Gives a task the statement that is exported."""
    language: str = ""
    """The only language whose tasks are exported; empty for all."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Number of tasks in other languages that :meth:`tasks` has passed over."""

    def tasks(self) -> Iterator[ExportedTask]:
        """The tasks, sorted by instance id, without quarantined ones."""
        repos = {repo.tree: repo for repo in self.taskset.repos()}
        environments: dict[str, Environment] = {}
        for row in self.taskset.task_rows(self.repo):
            if self.language not in ("", row["language"]):
                self.left_out[row["language"]] += 1
                continue
            task, certificate = self.restated(task_from(row)), certificate_from(row)
            if certificate is None or task.tree not in repos:
                raise StoreError(f"The set has no sources or no certificate of {task.instance_id}.")
            if task.env_id not in environments:
                environments[task.env_id] = self.taskset.environment(task.env_id)[0]
            yield ExportedTask(
                row=row | {"problem_statement": task.problem_statement},
                task=task,
                certificate=certificate,
                repo=repos[task.tree],
                environment=environments[task.env_id],
            )

    def rows(self, table: str) -> Iterator[Mapping[str, Any]]:
        """Rows of a table."""
        if table == "tasks":
            for row in self.taskset.task_rows(self.repo):
                yield row | {"problem_statement": self.restated(task_from(row)).problem_statement}
            return
        left_out = {entry.instance_id for entry in self.taskset.quarantines()} if table == "statements" else set()
        yield from (row for row in self.taskset.rows(table, self.repo) if row.get("instance_id") not in left_out)

    def files(self) -> Iterator[tuple[str, Path]]:
        """The whole set's files."""
        if self.repo is None:
            yield from self.taskset.files()


def exporter(name: str) -> Exporter:
    """The exporter called ``name``. Raises :class:`ConfigError` if there is none."""
    if name not in EXPORTERS:
        raise ConfigError(f"Unknown export format {name!r}: choose from {', '.join(sorted(EXPORTERS))}.")
    module, _, cls = EXPORTERS[name].partition(":")
    instance: Exporter = getattr(import_module(module), cls)()
    return instance


def export(
    taskset: TaskSet,
    name: str,
    into: Path,
    materials: ExportMaterials,
    *,
    repo: str | None = None,
    restated: Callable[[Task], Task] = lambda task: task,
) -> ExportReport:
    """Export all tasks, or those of one repository, into the folder ``into``; write ``EXPORT.md``, and the files of the
    set (:mod:`.set_files`).

    ``restated`` gives a task another statement. Raises :class:`ConfigError` for an unknown format or a folder that
    holds something else, :class:`StoreError` for a set that lacks something.
    """
    chosen = exporter(name)
    _refuse_other_folders(name, into)
    selection = TaskSelection(
        taskset=taskset,
        materials=materials,
        name=set_name(into),
        repo=repo,
        restated=restated,
        language="python" if name in PYTHON_ALONE else "",
    )
    with store_errors(f"export to {into}"):
        into.mkdir(parents=True, exist_ok=True)
        replace_lines(into / REPORT, _unfinished(name))
        report = chosen.export(selection, into)
        if selection.left_out:
            report = _without_others(name, report, selection.left_out)
        if not write_set(selection, into):
            report = replace(report, not_carried=(*report.not_carried, NO_SET))
        replace_lines(into / REPORT, _report_lines(name, report))
    return report


def _without_others(name: str, report: ExportReport, left_out: Counter[str]) -> ExportReport:
    """The report that also says which tasks were left out. Raises :class:`ConfigError` if all were."""
    counts = ", ".join(f"{number} in {language}" for language, number in sorted(left_out.items()))
    if not report.num_tasks:
        others = ", ".join(sorted(EXPORTERS.keys() - PYTHON_ALONE))
        raise ConfigError(f"{name} has a place for tasks in Python alone (here: {counts}). Choose from {others}.")
    text = f"Tasks in other languages, since its harness runs pytest: {counts}."
    return replace(report, not_carried=(*report.not_carried, text))


def _refuse_other_folders(name: str, into: Path) -> None:
    """Raise :class:`ConfigError` for a folder that holds anything but an earlier export in the same format."""
    if not into.exists() or (into.is_dir() and not any(into.iterdir())):
        return
    report = into / REPORT
    if not report.is_file() or report.read_text(errors="replace").partition("\n")[0] != _title(name):
        raise ConfigError(f"{into} holds something that is no export in the format {name}; name a new folder.")


def is_export(name: str, path: Path) -> bool:
    """Whether the folder is an export of a whole set in the format ``name``.

    Raises :class:`ConfigError` for one that was interrupted.
    """
    report = path / REPORT
    text = report.read_text("utf-8", "replace") if report.is_file() else ""
    if text.splitlines() == _unfinished(name):
        raise ConfigError(f"{path} is an export that was interrupted. Run `excise export {name} {path}` again first.")
    return (path / SET).is_dir() and text.startswith(_title(name))


def _unfinished(name: str) -> list[str]:
    """The lines of ``EXPORT.md`` while the export is being written."""
    return [_title(name), "", "Not finished."]


def _title(name: str) -> str:
    return f"# Export ({name})"


def set_name(into: Path) -> str:
    """A short name for an exported set, from the name of its folder: letters, digits, ``-``, ``_`` and ``.``."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", into.absolute().name).strip("-_.")
    return re.sub(r"\.{2,}", ".", name) or "tasks"


def _report_lines(name: str, report: ExportReport) -> list[str]:
    lines = [_title(name), "", f"{report.num_tasks} tasks made by excise. See `docs/formats.md` of excise."]
    if report.run:
        lines += ["", "## Use, in this folder", "", "```sh", *report.run, "```"]
    if report.not_carried:
        lines += ["", "## What this format could not carry", "", *(f"- {text}" for text in report.not_carried)]
    return lines
