"""The schema covers every field of the records, and its documentation is up to date."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from excise.datasets.schema import HISTORY, SWE_BENCH_NAMES, TABLES, VERSION_KEY, arrow_schema
from excise.datasets.schema_docs import render_docs
from excise.types import (
    SCHEMA_VERSION,
    Baseline,
    Difficulty,
    Environment,
    Rejection,
    Repo,
    RepoReport,
    Task,
    Verdict,
)

DOCS = Path(__file__).parents[2] / "docs" / "schema.md"


@pytest.mark.parametrize(
    ("table", "record", "elsewhere"),
    [
        ("tasks", Task, {"difficulty"}),
        ("tasks", Difficulty, set()),
        ("verdicts", Verdict, set()),
        ("rejections", Rejection, set()),
        ("repos", Repo, set()),
        ("repos", RepoReport, set()),
        ("environments", Environment, set()),
        ("environments", Baseline, set()),
    ],
)
def test_every_field_is_a_column(table: str, record: type, elsewhere: set[str]) -> None:
    columns = {c.name for c in TABLES[table].columns}
    fields = {SWE_BENCH_NAMES.get(f.name, f.name) for f in dataclasses.fields(record)}
    assert fields - columns == elsewhere


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda t: t.name)
def test_columns_are_distinct_and_explained(table) -> None:
    names = [c.name for c in table.columns]
    assert len(set(names)) == len(names)
    assert [c.name for c in table.columns if not c.comment] == []
    assert set(table.sort_by) <= set(names)


def test_swe_bench_columns_come_first() -> None:
    expected = [
        "instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement", "hints_text", "created_at",
        "version", "FAIL_TO_PASS", "PASS_TO_PASS", "environment_setup_commit", "image_name",
    ]  # fmt: skip
    assert [c.name for c in TABLES["tasks"].columns][: len(expected)] == expected


def test_arrow_types_and_version() -> None:
    tasks, environments = arrow_schema(TABLES["tasks"], comments=True), arrow_schema(TABLES["environments"])
    assert tasks.field("FAIL_TO_PASS").type == pa.list_(pa.string())
    assert tasks.field("tier").type == pa.int64()
    assert environments.field("durations").type == pa.map_(pa.string(), pa.float64())
    assert tasks.metadata[VERSION_KEY.encode()] == str(SCHEMA_VERSION).encode()
    assert tasks.field("patch").metadata[b"comment"].startswith(b"The gold patch")


def test_the_history_ends_with_this_version() -> None:
    assert HISTORY[-1][0] == SCHEMA_VERSION


def test_the_documentation_is_up_to_date() -> None:
    assert DOCS.read_text(encoding="utf-8") == render_docs(), "python -m excise.datasets.schema_docs > docs/schema.md"
