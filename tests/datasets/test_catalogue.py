"""SQL over a task set."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from excise.datasets.queries.catalogue import connect, query
from excise.datasets.schema import TABLES
from excise.datasets.storage.set_reference import open_reference
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.errors import StoreError


def test_funnel_and_gates(store_dir: Path) -> None:
    funnel = json.loads(query(store_dir, "SELECT repo, status, num_tasks, valid_share FROM funnel", "json"))
    assert funnel == [
        {"repo": "humanize", "status": "ok", "num_tasks": 4, "valid_share": 0.8},
        {"repo": "toolz", "status": "ok", "num_tasks": 5, "valid_share": 0.833},
        {"repo": "vanished", "status": "source_unavailable", "num_tasks": 0, "valid_share": None},
    ]
    gates = {row["gate"]: row for row in json.loads(query(store_dir, "FROM gates", "json"))}
    assert gates["g6_p2p_pass"]["num_failed"] == 2
    assert gates["g6_p2p_pass"]["main_reason"] == "p2p_breaks"
    assert gates["g5_f2p_fail"]["num_undecided"] == 2
    assert gates["g7_gold"] | {"num_runs": 18, "num_subjects": 9} == gates["g7_gold"]


def test_comments_reach_duckdb(store_dir: Path) -> None:
    with connect(store_dir) as connection:
        sql = "SELECT comment FROM duckdb_columns() WHERE table_name = 'tasks' AND column_name = 'patch'"
        assert connection.execute(sql).fetchone() == ("The gold patch: adds the feature back to the shipped tree.",)


def test_views_sql_works_in_the_folder(store_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store_dir / "current")
    with duckdb.connect() as connection:
        connection.execute(Path("views.sql").read_text(encoding="utf-8"))
        assert connection.execute("SELECT count(*) FROM tasks").fetchone() == (9,)


def test_empty_tables_have_their_columns(tmp_path: Path) -> None:
    with Store(tmp_path).writer() as writer:
        writer.publish()
    for table in (*TABLES, "funnel", "gates"):
        assert query(tmp_path, f"SELECT * FROM {table}", "jsonl") == ""
        assert query(tmp_path, f"SELECT * FROM {table}").endswith("(0 rows)\n")
    header = query(tmp_path, "FROM tasks", "csv")
    assert header.strip().split(",") == [c.name for c in TABLES["tasks"].columns]


SQL = """SELECT 'a, "b"' AS text, 1.5 AS number, [1, NULL] AS list, map {'k': 'é'} AS map, NULL AS nothing,
         true AS yes, 'nan'::DOUBLE AS nan, DATE '2025-01-02' AS day, 1 AS twice, 2 AS twice"""


def test_formats(store_dir: Path) -> None:
    expected = {
        "text": 'a, "b"', "number": 1.5, "list": [1, None], "map": {"k": "é"}, "nothing": None, "yes": True,
        "nan": None, "day": "2025-01-02", "twice": 1, "twice_2": 2,
    }  # fmt: skip
    assert json.loads(query(store_dir, SQL, "json")) == [expected]
    assert json.loads(query(store_dir, SQL, "jsonl")) == expected
    header, row = csv.reader(io.StringIO(query(store_dir, SQL, "csv")))
    assert header == list(expected)
    assert row == ['a, "b"', "1.5", "[1, null]", '{"k": "é"}', "", "true", "", "2025-01-02", "1", "2"]


def test_times_with_a_zone_and_characters_that_control_a_terminal(store_dir: Path) -> None:
    sql = "SELECT TIMESTAMPTZ '2025-01-02 03:04:05+00' AS time, chr(27) || '[31mred' || chr(8238) AS text"
    assert json.loads(query(store_dir, sql, "json"))[0]["time"].startswith("2025-01-0")
    assert "␛[31mred⟨U+202E⟩\n" in query(store_dir, sql)
    assert "text  ␛[31mred⟨U+202E⟩\n" in query(store_dir, sql, width=20)


def test_wide_tables_are_printed_record_by_record(store_dir: Path) -> None:
    assert query(store_dir, "SELECT repo, num_tasks FROM funnel ORDER BY repo LIMIT 2") == (
        "repo      num_tasks\n────────  ─────────\nhumanize          4\ntoolz             5\n(2 rows)\n"
    )
    narrow = query(store_dir, "SELECT instance_id, patch FROM tasks LIMIT 1", width=40)
    assert narrow.startswith("instance_id  humanize__")
    assert "\n             +def " in narrow


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nothing FROM tasks", "nothing"),
        ("SELEC 1", "syntax error"),
        ("  -- only a comment", "empty"),
        ("COPY tasks TO 'x.parquet'", "COPY does not"),
        ("SELECT 1; /* x */ DROP VIEW tasks", "DROP does not"),
        ("ATTACH 'x.db'", "ATTACH does not"),
        ("EXPORT DATABASE 'x'", "EXPORT does not"),
    ],
)
def test_invalid_and_writing_statements_are_refused(
    store_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=message):
        query(store_dir, sql)
    assert os.listdir(tmp_path) == []


def test_reading_statements_of_all_kinds(store_dir: Path) -> None:
    for sql in ("DESCRIBE tasks", "SHOW TABLES", "SUMMARIZE repos", "PIVOT tasks ON tier USING count(*) GROUP BY repo"):
        assert json.loads(query(store_dir, sql, "json"))
    assert "rows)" in query(store_dir, "EXPLAIN SELECT 1") or "row)" in query(store_dir, "EXPLAIN SELECT 1")


def test_unknown_format_and_missing_set(store_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="choose from table, json, csv, jsonl"):
        query(store_dir, "SELECT 1", "xml")
    with pytest.raises(StoreError, match="no task set"):
        query(tmp_path, "SELECT 1")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="is a file: a task set is a folder"):
        query(tmp_path / "file", "SELECT 1")
    with pytest.raises(StoreError, match="neither a folder nor a snapshot's number"):
        open_reference("nosuch", store_dir)


@pytest.fixture
def damaged(store_dir: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the set, and one of its files to damage."""
    copy = tmp_path / "copy"
    shutil.copytree(store_dir, copy, symlinks=True)
    return copy, sorted((copy / "current").resolve().glob("tasks/[!_]*.parquet"))[0]


def with_flipped_bytes(path: Path, first: int, last: int) -> bytes:
    """The file's bytes with those of a range flipped; negative offsets count from the end."""
    data = bytearray(path.read_bytes())
    start, end = (offset % len(data) for offset in (first, last))
    data[start:end] = bytes(byte ^ 0x5A for byte in data[start:end])
    return bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(with_flipped_bytes(path, -600, -100)),
    ],
    ids=["empty", "cut off", "other bytes at the end"],
)
def test_a_damaged_file_is_named_when_connecting(damaged: tuple[Path, Path], damage: Callable[[Path], object]) -> None:
    store, path = damaged
    damage(path)
    with pytest.raises(StoreError, match=r"is damaged.*new folder") as caught:
        connect(store)
    assert str(path) in str(caught.value)
    assert caught.value.reason == "damaged"


def test_a_query_names_the_damaged_file_that_it_reads(damaged: tuple[Path, Path]) -> None:
    store, path = damaged
    group = pq.read_metadata(path).row_group(0)
    path.write_bytes(with_flipped_bytes(path, 4, 4 + sum(group.column(i).total_compressed_size for i in range(3))))
    assert "(1 row)" in query(store, "SELECT 1")
    with pytest.raises(StoreError, match="is damaged") as caught:
        query(store, "SELECT * FROM tasks")
    assert str(path) in str(caught.value)
    with pytest.raises(StoreError, match="syntax error"):
        query(store, "SELEC 1")


def test_a_missing_file_is_an_error(damaged: tuple[Path, Path]) -> None:
    store, path = damaged
    path.unlink()
    with pytest.raises(StoreError, match=f"{path} is missing"):
        query(store, "SELECT count(*) FROM tasks")


def test_damaged_snapshots_say_what_to_do(damaged: tuple[Path, Path]) -> None:
    store, path = damaged
    manifest = path.parents[1] / "manifest.json"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StoreError, match=r"is damaged: .*Restore it from a copy"):
        TaskSet.open(store).tasks()
    fields = json.loads(manifest.read_text())
    del fields["files"]
    manifest.write_text(json.dumps(fields))
    with pytest.raises(StoreError, match=r"manifest.json is damaged: [^.]*\nfiles\n"):
        TaskSet.open(store)
    manifest.write_text('{"schema_version": "two"}')
    with pytest.raises(StoreError, match=r"manifest.json is damaged: .*Restore it from a copy"):
        TaskSet.open(store)
    shutil.rmtree(manifest.parent)
    with pytest.raises(StoreError, match=r"current names a snapshot that is missing, .*Restore it from a copy"):
        TaskSet.open(store)


def test_a_damaged_schema_file_is_named(damaged: tuple[Path, Path]) -> None:
    store, path = damaged
    empty = path.with_name("_schema.parquet")
    empty.write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=f"cannot be read .*{empty}"):
        connect(store)
