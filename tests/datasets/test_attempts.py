"""Attempts of agents: one file each, one view over all runs, and scores that are the same in SQL and Python."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import pytest

from excise.datasets.attempts import ATTEMPTS, AttemptRow, finished_attempts, score_run, write_attempt
from excise.datasets.catalogue import query
from excise.errors import StoreError


def row(run: str, task: str, number: int, **changes: object) -> AttemptRow:
    plain = {"string": "", "int": None, "float": None, "bool": False, "list<string>": ()}
    fields = {column.name: plain[column.kind] for column in ATTEMPTS.columns}
    known = {"run": run, "attempt_id": f"{task}-{number}", "instance_id": task, "number": number}
    numbers = {"reward": 0.0, "partial": 0.0, "wall_s": 1.0, "grade_s": 1.0}
    return AttemptRow(**{**fields, **numbers, **known, **changes})  # type: ignore[arg-type]


def test_every_field_is_a_column_with_a_comment() -> None:
    assert [column.name for column in ATTEMPTS.columns] == [field.name for field in dataclasses.fields(AttemptRow)]
    assert all(column.comment for column in ATTEMPTS.columns)


def test_sets_without_attempts_have_empty_views(store_dir: Path) -> None:
    for view in ("attempts", "pass_at_k", "effort"):
        assert query(store_dir, f"SELECT count(*) AS n FROM {view}", "jsonl") == '{"n": 0}\n'
    with pytest.raises(StoreError, match="no attempts of a run 'x'. Runs: none"):
        score_run(store_dir, "x")


def test_scores_are_the_same_in_sql_and_python(store_dir: Path) -> None:
    chance = random.Random(7)
    for run, counts in (("one", (8, 5, 16)), ("other", (1, 1, 3))):
        for task, count in zip("abc", counts, strict=True):
            for number in range(1, count + 1):
                solved = chance.random() < 0.4
                amounts = {"completion_tokens": chance.randrange(50), "cost": chance.random()}
                write_attempt(store_dir, row(run, task, number, solved=solved, **amounts))
    for run in ("one", "other"):
        found = score_run(store_dir, run)
        shown = json.loads(query(store_dir, f"SELECT * FROM pass_at_k WHERE run = '{run}'", "json"))
        assert {entry["k"]: entry["pass_at_k"] for entry in shown} == pytest.approx(found.pass_at)
        assert {entry["k"]: entry["standard_error"] for entry in shown} == pytest.approx(found.error)
        for kind, curve in (("tokens", found.effort), ("cost", found.cost_effort)):
            sql = f"SELECT amount, score FROM effort WHERE run = '{run}' AND kind = '{kind}' ORDER BY amount"
            shown = json.loads(query(store_dir, sql, "json"))
            assert [(entry["amount"], entry["score"]) for entry in shown] == [
                (pytest.approx(amount), pytest.approx(score)) for amount, score in curve
            ]
    assert sorted(score_run(store_dir, "one").pass_at) == [1, 2, 4, 8, 16]
    assert [task.instance_id for task in score_run(store_dir, "one", ["b"]).tasks] == ["b"]


def test_attempts_without_tokens_have_no_curves(store_dir: Path) -> None:
    write_attempt(store_dir, row("command", "a", 1, solved=True))
    found = score_run(store_dir, "command", lost={"b": 2})
    assert (found.pass_at, found.effort, found.cost_effort, found.mean_cost) == ({1: 1.0}, (), (), None)
    assert [(task.instance_id, task.num_attempts, task.num_lost) for task in found.tasks] == [("a", 1, 0), ("b", 0, 2)]
    assert finished_attempts(store_dir, "command") == {"a-1"}
