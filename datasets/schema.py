"""The tables of a task set, generated from the records in :mod:`excise.types`.

A column is a field of a record: its type comes from the annotation, its comment from the docstring under the field.
Renamed, flattened and joined columns are defined here only. :mod:`excise.datasets.schema_docs`
prints ``docs/schema.md``.
"""

from __future__ import annotations

import ast
import dataclasses
import glob
import inspect
import types as builtin_types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from excise.types import (
    SCHEMA_VERSION,
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
    SymbolReport,
    Task,
    TaskStatement,
    Verdict,
)

VERSION_KEY = "excise.schema_version"
"""Key in the metadata of every Parquet file."""

HISTORY = (
    (1, "First version: `tasks`, `verdicts`, `rejections`, `repos`, `environments`."),
    (
        2,
        "`environments`: locks have `hashes`, third-party packages a `shared_id`; `uncollected` files.",
    ),
    (3, "`quarantines`: tasks that are excluded because of a leak. Certificates have a digest."),
    (4, "`environments`: `starved`, load-stress runs of the original project."),
    (5, "`repos`: `num_repeated` and `num_disagreeing`, candidates whose forked test runs were repeated."),
    (6, "`tasks`: `needs`, details that the hidden tests need, and where a solver finds them."),
    (
        7,
        "`features` and `symbols`: what could be deleted, and why the rest cannot. `index/` in a snapshot lists the "
        "projects, no longer the manifest; a file may hold rows of several projects.",
    ),
    (
        8,
        "`statements`: every task's statements in several styles. `quarantines`: `gate` and `reason`, for tasks whose "
        "certificate no longer holds. `tasks`: `similar_share`. `predicted_rates`: what `excise difficulty` predicts.",
    ),
)
"""(version, what changed), oldest first. Raise ``SCHEMA_VERSION`` in ``excise.types.tasks`` and add a line."""

SWE_BENCH_NAMES = {"fail_to_pass": "FAIL_TO_PASS", "pass_to_pass": "PASS_TO_PASS"}
"""Field of :class:`Task` to its column name in SWE-bench."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of one table."""

    name: str
    """Name in Parquet and SQL."""
    kind: str
    """``string``, ``int``, ``float``, ``bool``, ``list<string>`` or ``map<string, …>``."""
    text: str = ""
    """Description of the column; empty if it is the docstring of a field of a record."""
    field: tuple[type, str] | None = None
    """Record and name of that field. Its docstring is read only where it is asked for: the source has to be parsed."""

    @property
    def comment(self) -> str:
        """Description of the column."""
        return field_comments(self.field[0]).get(self.field[1], "") if self.field is not None else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table."""

    name: str
    """Name of the folder and the view."""
    comment: str
    """Description of a row."""
    columns: tuple[Column, ...]
    """Columns in order."""
    sort_by: tuple[str, ...]
    """Columns by which rows are sorted; ties are broken by the rest of the row."""

    def column(self, name: str) -> Column:
        """The column called ``name``."""
        return next(c for c in self.columns if c.name == name)


@cache
def field_comments(record: type) -> dict[str, str]:
    """Field name to the docstring under it; empty if the source code is not available (frozen applications)."""
    try:
        body = ast.parse(inspect.cleandoc(inspect.getsource(record))).body[0]
    except OSError:
        return {}
    assert isinstance(body, ast.ClassDef)
    comments = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            comments[field.target.id] = " ".join(str(ast.literal_eval(text.value)).split())
    return comments


@cache
def field_kinds(record: type) -> dict[str, str]:
    """Field name to column type, for fields that can be stored in a column unchanged."""
    hints = get_type_hints(record)
    kinds = {field.name: _kind(hints[field.name]) for field in dataclasses.fields(record)}
    return {name: kind for name, kind in kinds.items() if kind}


def _kind(annotation: Any) -> str:
    if isinstance(annotation, builtin_types.UnionType):
        (annotation, *others) = [part for part in get_args(annotation) if part is not type(None)]
        if others:
            return ""
    scalars = {str: "string", int: "int", float: "float", bool: "bool"}
    if get_origin(annotation) is tuple:
        return "list<string>" if get_args(annotation) == (str, ...) else ""
    if get_origin(annotation) is dict:
        return f"map<string, {_kind(get_args(annotation)[1])}>"
    if isinstance(annotation, builtin_types.GenericAlias) or not isinstance(annotation, type):
        return ""
    return "string" if issubclass(annotation, StrEnum) else scalars.get(annotation, "")


def columns_of(record: type, *only: str, skip: tuple[str, ...] = ()) -> Iterator[Column]:
    """Columns for the fields of a record that a column can hold, or for the fields ``only``, in order."""
    kinds = field_kinds(record)
    for name in only or kinds:
        if name not in skip:
            yield Column(name=SWE_BENCH_NAMES.get(name, name), kind=kinds[name], field=(record, name))


def _text(name: str, text: str) -> Column:
    return Column(name=name, kind="string", text=text)


_SWE_BENCH_FIRST = (
    "instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement", "hints_text", "created_at",
    "version", "fail_to_pass", "pass_to_pass",
)  # fmt: skip
_REPO = _text("repo", "Name of the project.")

TASKS = Table(
    name="tasks",
    comment="One certified task. The first columns are those of SWE-bench.",
    columns=(
        *columns_of(Task, *_SWE_BENCH_FIRST),
        _text("environment_setup_commit", "Same as base_commit: the environment is built from the original sources."),
        _text("image_name", "Always empty: environments are built from recipes, not from images."),
        *columns_of(Task, skip=_SWE_BENCH_FIRST),
        *columns_of(Difficulty),
        _text("certificate", "The whole certificate as JSON."),
        _text("certificate_id", "Content hash of the certificate."),
        *columns_of(Certificate, "flake_rate", "cpu_s", "wall_s"),
    ),
    sort_by=("instance_id",),
)
VERDICTS = Table(
    name="verdicts",
    comment="The result of one run of one gate on a task or a candidate, rejected candidates included.",
    columns=(_REPO, *columns_of(Verdict)),
    sort_by=("instance_id", "gate", "run"),
)
REJECTIONS = Table(
    name="rejections",
    comment="A source, feature or candidate that was rejected, with the reason. Every rejection has a row.",
    columns=tuple(columns_of(Rejection)),
    sort_by=("stage", "subject", "reason"),
)
REPOS = Table(
    name="repos",
    comment="One source: its fetched sources (empty if they could not be fetched) and the counts of each stage.",
    columns=(*columns_of(Repo), *columns_of(RepoReport, skip=("repo", "source"))),
    sort_by=("repo", "source"),
)
ENVIRONMENTS = Table(
    name="environments",
    comment="One installed environment, with the baseline test results of the original project.",
    columns=(
        *columns_of(Environment),
        _text("recipe", "The whole recipe as JSON."),
        *columns_of(Recipe, "python", "requirements", "extras", "test_args", "system_packages", "cutoff"),
        *columns_of(Baseline, skip=("env_id",)),
    ),
    sort_by=("env_id",),
)
QUARANTINES = Table(
    name="quarantines",
    comment="One task that is excluded because of one leak, or since its certificate no longer holds. It stays in "
    "`tasks`; readers skip it by default.",
    columns=(_REPO, *columns_of(Quarantine)),
    sort_by=("instance_id", "leak_id"),
)
FEATURES = Table(
    name="features",
    comment="One feature that was found, whether or not it was tried. `tasks.feature_id` says which became tasks.",
    columns=(
        _REPO,
        *columns_of(Feature, skip=("tests",)),
        Column(name="num_tests", kind="int", text="Number of trusted tests that execute the feature."),
    ),
    sort_by=("repo", "feature_id"),
)
SYMBOLS = Table(
    name="symbols",
    comment="One definition outside tests: the features that hold it, or the reason why none does.",
    columns=(_REPO, *columns_of(SymbolReport)),
    sort_by=("repo", "symbol"),
)
STATEMENTS = Table(
    name="statements",
    comment="One statement of one task in one style. `tasks.problem_statement` is the deterministic specification.",
    columns=(_REPO, *columns_of(TaskStatement)),
    sort_by=("instance_id", "style", "author"),
)
TABLES: Mapping[str, Table] = {
    t.name: t for t in (TASKS, VERDICTS, REJECTIONS, REPOS, ENVIRONMENTS, QUARANTINES, FEATURES, SYMBOLS, STATEMENTS)
}
"""All tables by name."""


def arrow_schema(table: Table, *, comments: bool = False) -> Any:
    """The ``pyarrow.Schema`` of a table; with ``comments``, each field has its comment as metadata."""
    import pyarrow as pa

    scalars = {"string": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}

    def arrow_type(kind: str) -> Any:
        if kind.startswith("map"):
            return pa.map_(pa.string(), scalars[kind.removesuffix(">").partition(", ")[2]])
        return pa.list_(pa.string()) if kind == "list<string>" else scalars[kind]

    fields = [
        pa.field(c.name, arrow_type(c.kind), metadata={"comment": c.comment} if comments else None)
        for c in table.columns
    ]
    return pa.schema(fields, metadata={VERSION_KEY: str(SCHEMA_VERSION)})


def empty_column(column: Column) -> str:
    """The SQL of a column without values."""
    kinds = {"string": "VARCHAR", "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "list<string>": "VARCHAR[]"}
    kinds |= {f"map<string, {value}>": f"MAP(VARCHAR, {kinds[value]})" for value in ("string", "int", "float")}
    return f'NULL::{kinds[column.kind]} AS "{column.name}"'


def empty_view(table: Table) -> str:
    """``CREATE VIEW`` of a table without rows, for sets that have no file of the table."""
    columns = ", ".join(map(empty_column, table.columns))
    return f"CREATE OR REPLACE VIEW {table.name} AS SELECT {columns} WHERE false;\n"


def sql_string(text: str) -> str:
    """A text as a string of DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


def sql_pattern(folder: Path | None, pattern: str) -> str:
    """A pattern of files below a folder (``None`` for the current one) as a string of DuckDB's SQL."""
    return sql_string(f"{glob.escape(str(folder))}/{pattern}" if folder else pattern)
