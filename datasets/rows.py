"""Lossless conversion of records to table rows and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from excise.datasets.schema import SWE_BENCH_NAMES, TABLES, Table, field_kinds
from excise.types import (
    Baseline,
    Certificate,
    Difficulty,
    Environment,
    Feature,
    Quarantine,
    Recipe,
    Rejection,
    Repo,
    RepoReport,
    SourceSpec,
    SymbolReport,
    Task,
    TaskStatement,
    Verdict,
    from_dict,
    from_json,
    to_json,
)

Row = dict[str, Any]
"""Column name to value; maps are dicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoRows:
    """All records of one repository; the unit of publication."""

    repo: Repo | None = None
    """The sources; ``None`` if they could not be fetched."""
    spec: SourceSpec | None = None
    """The source as the user named it."""
    report: RepoReport | None = None
    """Counts of the stages."""
    environment: Environment | None = None
    """The environment, if it was built."""
    baseline: Baseline | None = None
    """The baseline, if it was measured."""
    tasks: tuple[Task, ...] = ()
    """Accepted tasks."""
    certificates: tuple[Certificate, ...] = ()
    """The certificate of each task."""
    verdicts: tuple[Verdict, ...] = ()
    """Verdicts on rejected candidates; may repeat those in certificates."""
    rejections: tuple[Rejection, ...] = ()
    """Rejections of the source, its features and candidates."""
    quarantines: tuple[Quarantine, ...] = ()
    """Quarantines of tasks; earlier ones are kept, see :meth:`excise.datasets.storage.store.Writer`."""
    features: tuple[Feature, ...] = ()
    """All features that were found."""
    symbols: tuple[SymbolReport, ...] = ()
    """What became of each definition."""
    statements: tuple[TaskStatement, ...] = ()
    """Statements of the tasks, in all styles."""


def table_rows(name: str, rows: RepoRows) -> dict[str, list[Row]]:
    """Rows of each table, sorted so that equal records give equal files."""
    certificates = {c.instance_id: c for c in rows.certificates}
    tables = {
        "tasks": [_task_row(task, certificates.get(task.instance_id)) for task in rows.tasks],
        "verdicts": [{"repo": name, **_fields(verdict)} for verdict in _all_verdicts(rows)],
        "rejections": [_fields(rejection) for rejection in rows.rejections],
        "repos": [_fields(rows.report) | _fields(rows.repo)] if rows.repo or rows.report else [],
        "environments": [_environment_row(rows.environment, rows.baseline)] if rows.environment else [],
        "quarantines": [quarantine_row(name, quarantine) for quarantine in rows.quarantines],
        "features": [_feature_row(name, feature) for feature in rows.features],
        "symbols": [{"repo": name, **_fields(symbol)} for symbol in rows.symbols],
        "statements": [{"repo": name, **_fields(statement)} for statement in rows.statements],
    }
    return {table: _sorted(TABLES[table], found) for table, found in tables.items()}


def quarantine_row(name: str, quarantine: Quarantine) -> Row:
    """The row of a quarantined task of the repository ``name``."""
    return with_all_columns(TABLES["quarantines"], {"repo": name, **_fields(quarantine)})


def canonical_json(row: Row) -> str:
    """A row as canonical JSON: equal rows give equal texts."""
    return json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def with_all_columns(table: Table, row: Row) -> Row:
    """``row`` with all columns of the table in order; missing values are null."""
    unknown = row.keys() - {c.name for c in table.columns}
    assert not unknown, f"{table.name} has no column {sorted(unknown)}"
    return {c.name: row.get(c.name) for c in table.columns}


def read_rows(table: Table, arrow: Any) -> list[Row]:
    """The rows of a ``pyarrow.Table``, with maps as dicts."""
    maps = [c.name for c in table.columns if c.kind.startswith("map")]
    rows: list[Row] = arrow.to_pylist()
    for row in rows:
        row.update({name: dict(row[name]) for name in maps if row.get(name) is not None})
    return rows


def task_from(row: Mapping[str, Any]) -> Task:
    """The task of a ``tasks`` row."""
    values = _record_values(Task, row) | {"difficulty": _record_values(Difficulty, row)}
    return from_dict(Task, values)


def certificate_from(row: Mapping[str, Any]) -> Certificate | None:
    """The certificate of a ``tasks`` row."""
    return from_json(Certificate, row["certificate"]) if row["certificate"] else None


def verdict_from(row: Mapping[str, Any]) -> Verdict:
    """The verdict of a ``verdicts`` row."""
    return from_dict(Verdict, _record_values(Verdict, row))


def rejection_from(row: Mapping[str, Any]) -> Rejection:
    """The rejection of a ``rejections`` row."""
    return from_dict(Rejection, _record_values(Rejection, row))


def quarantine_from(row: Mapping[str, Any]) -> Quarantine:
    """The quarantine of a ``quarantines`` row."""
    return from_dict(Quarantine, _record_values(Quarantine, row))


def statement_from(row: Mapping[str, Any]) -> TaskStatement:
    """The statement of a ``statements`` row."""
    return from_dict(TaskStatement, _record_values(TaskStatement, row))


def repo_from(row: Mapping[str, Any]) -> Repo | None:
    """The sources of a ``repos`` row; ``None`` if they could not be fetched."""
    return from_dict(Repo, _record_values(Repo, row)) if row["tree"] is not None else None


def report_from(row: Mapping[str, Any]) -> RepoReport | None:
    """The report of a ``repos`` row."""
    return from_dict(RepoReport, _record_values(RepoReport, row)) if row["status"] is not None else None


def environment_from(row: Mapping[str, Any]) -> tuple[Environment, Baseline | None]:
    """The environment and baseline of an ``environments`` row."""
    recipe = from_json(Recipe, row["recipe"])
    values = _record_values(Environment, row) | {"recipe": dataclasses.asdict(recipe)}
    baseline = from_dict(Baseline, _record_values(Baseline, row)) if row["num_runs"] is not None else None
    return from_dict(Environment, values), baseline


def _all_verdicts(rows: RepoRows) -> Iterable[Verdict]:
    verdicts = [*rows.verdicts, *(v for c in rows.certificates for v in c.verdicts)]
    return {to_json(verdict): verdict for verdict in verdicts}.values()


def _task_row(task: Task, certificate: Certificate | None) -> Row:
    row = _fields(task) | _fields(task.difficulty)
    row |= {"environment_setup_commit": task.base_commit, "image_name": ""}
    if certificate:
        row |= {name: getattr(certificate, name) for name in ("flake_rate", "cpu_s", "wall_s", "certificate_id")}
        row["certificate"] = to_json(certificate).decode()
    return row


def _feature_row(name: str, feature: Feature) -> Row:
    row = {"repo": name, **_fields(feature), "num_tests": len(feature.tests)}
    del row["tests"]
    return row


def _environment_row(environment: Environment, baseline: Baseline | None) -> Row:
    recipe = _fields(environment.recipe)
    main = {k: recipe[k] for k in ("python", "requirements", "extras", "test_args", "system_packages", "cutoff")}
    return _fields(baseline) | _fields(environment) | main | {"recipe": to_json(environment.recipe).decode()}


def _fields(record: Any) -> Row:
    """The fields that are columns, with maps sorted by key."""
    if record is None:
        return {}
    row: Row = {}
    record_type: type = type(record)
    for name in field_kinds(record_type):
        value = getattr(record, name)
        plain = dict(sorted(value.items())) if isinstance(value, dict) else value
        row[SWE_BENCH_NAMES.get(name, name)] = list(plain) if isinstance(plain, tuple) else plain
    return row


def _record_values(record: type, row: Mapping[str, Any]) -> Row:
    values = {name: row.get(SWE_BENCH_NAMES.get(name, name)) for name in field_kinds(record)}
    return {name: value for name, value in values.items() if value is not None}


def sort_key(table: Table, row: Row) -> tuple[object, ...]:
    """The place of a row among those of its table."""
    return *(row[name] or 0 if name == "run" else str(row[name]) for name in table.sort_by), canonical_json(row)


def _sorted(table: Table, rows: list[Row]) -> list[Row]:
    return sorted((with_all_columns(table, row) for row in rows), key=lambda row: sort_key(table, row))
