"""Attempts of agents: one file each, one view over all runs, and scores that are the same in SQL and Python."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import shutil
from pathlib import Path

import pytest

from excise.datasets.queries.attempts import (
    ATTEMPTS,
    AttemptRow,
    finished_attempts,
    merge_rows,
    score_run,
    write_attempt,
)
from excise.datasets.queries.catalogue import query
from excise.errors import StoreError

from ..conftest import ROOT


@pytest.fixture
def own_set(store_dir: Path, tmp_path: Path) -> Path:
    """A task set without attempts, for one test."""
    shutil.copytree(store_dir, tmp_path / "set", symlinks=True, ignore=shutil.ignore_patterns("attempts"))
    return tmp_path / "set"


def row(run: str, task: str, number: int, **changes: object) -> AttemptRow:
    plain = {"string": "", "int": None, "float": None, "bool": False, "list<string>": ()}
    fields = {column.name: plain[column.kind] for column in ATTEMPTS.columns}
    known = {"run": run, "attempt_id": f"{task}-{number}", "instance_id": task, "number": number}
    numbers = {"reward": 0.0, "partial": 0.0, "wall_s": 1.0, "grade_s": 1.0}
    return AttemptRow(**{**fields, **numbers, **known, **changes})  # type: ignore[arg-type]


def test_every_field_is_a_column_with_a_comment() -> None:
    assert [column.name for column in ATTEMPTS.columns] == [field.name for field in dataclasses.fields(AttemptRow)]
    assert all(column.comment for column in ATTEMPTS.columns)


def test_sets_without_attempts_have_empty_views(own_set: Path) -> None:
    for view in ("attempts", "pass_at_k", "effort"):
        assert query(own_set, f"SELECT count(*) AS n FROM {view}", "jsonl") == '{"n": 0}\n'
    with pytest.raises(StoreError, match=r"no attempts of a run 'x'\. Runs: none"):
        score_run(own_set, "x")


def test_scores_are_the_same_in_sql_and_python(own_set: Path) -> None:
    chance = random.Random(7)
    for run, counts in (("one", (8, 5, 16)), ("other", (1, 1, 3))):
        for task, count in zip("abc", counts, strict=True):
            for number in range(1, count + 1):
                solved = chance.random() < 0.4
                amounts = {"completion_tokens": chance.randrange(50), "cost": chance.random()}
                write_attempt(own_set, row(run, task, number, solved=solved, **amounts))
    for run in ("one", "other"):
        found = score_run(own_set, run)
        shown = json.loads(query(own_set, f"SELECT * FROM pass_at_k WHERE run = '{run}'", "json"))
        assert {entry["k"]: entry["pass_at_k"] for entry in shown} == pytest.approx(found.pass_at)
        assert {entry["k"]: entry["standard_error"] for entry in shown} == pytest.approx(found.error)
        for kind, curve in (("tokens", found.effort), ("cost", found.cost_effort)):
            sql = f"SELECT amount, score FROM effort WHERE run = '{run}' AND kind = '{kind}' ORDER BY amount"
            shown = json.loads(query(own_set, sql, "json"))
            assert [(entry["amount"], entry["score"]) for entry in shown] == [
                (pytest.approx(amount), pytest.approx(score)) for amount, score in curve
            ]
    assert sorted(score_run(own_set, "one").pass_at) == [1, 2, 4, 8, 16]
    assert [task.instance_id for task in score_run(own_set, "one", ["b"]).tasks] == ["b"]


def test_the_manuals_query_has_scores_and_curves(own_set: Path) -> None:
    (sql,) = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/solving.md").read_text(encoding="utf-8"), re.DOTALL)
    write_attempt(own_set, row("priced", "a", 1, solved=True, completion_tokens=7, cost=0.5))
    write_attempt(own_set, row("unpriced", "a", 1, solved=False, completion_tokens=3))
    found = json.loads(query(own_set, sql, "json"))
    assert [(entry["run"], sorted(entry["curves"])) for entry in found] == [
        ("priced", ["cost", "seconds", "tokens"]), ("unpriced", ["seconds", "tokens"]),
    ]  # fmt: skip


def test_rows_are_merged_once(own_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = own_set / "attempts/one"

    def ids() -> list[str]:
        shown = query(own_set, "SELECT attempt_id AS id FROM attempts ORDER BY 1", "json")
        return [entry["id"] for entry in json.loads(shown)]

    def killed(_: Path) -> None:
        raise KeyboardInterrupt

    for number in (1, 2, 3):
        write_attempt(own_set, row("one", "a", number, solved=True))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda path, **_: killed(path) if path.suffix == ".parquet" else None)
        with pytest.raises(KeyboardInterrupt):
            merge_rows(own_set, "one")
    write_attempt(own_set, row("one", "a", 4))
    for _ in range(2):  # with the files that the killed merge left, and without
        assert ids() == ["a-1", "a-2", "a-3", "a-4"]
        assert finished_attempts(own_set, "one") == {"a-1", "a-2", "a-3", "a-4"}
        merge_rows(own_set, "one")
    assert sorted(path.name for path in folder.glob("**/*.parquet")) == ["000001.parquet", "a-4.parquet"]
    write_attempt(own_set, row("one", "a", 5))
    merge_rows(own_set, "one")
    assert sorted(path.name for path in folder.glob("**/*.parquet")) == ["000001.parquet", "000002.parquet"]
    assert ids() == ["a-1", "a-2", "a-3", "a-4", "a-5"]


def test_attempts_without_tokens_have_no_curves(own_set: Path) -> None:
    write_attempt(own_set, row("command", "a", 1, solved=True))
    found = score_run(own_set, "command", lost={"b": 2})
    assert (found.pass_at, found.effort, found.cost_effort, found.mean_cost) == ({1: 1.0}, (), (), None)
    assert [(task.instance_id, task.num_attempts, task.num_lost) for task in found.tasks] == [("a", 1, 0), ("b", 0, 2)]
    assert finished_attempts(own_set, "command") == {"a-1"}
