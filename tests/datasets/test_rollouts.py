"""Rollouts of training runs: one file per step, one view over all runs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from excise.datasets.queries.catalogue import query
from excise.datasets.queries.rollouts import ROLLOUTS, RolloutRow, write_rollouts
from excise.errors import StoreError


def row(run: str, step: int, number: int, **changes: object) -> RolloutRow:
    plain = {"string": "", "int": 0, "float": 0.0, "bool": True, "list<string>": ()}
    fields = {column.name: plain[column.kind] for column in ROLLOUTS.columns}
    known = {"run": run, "step": step, "rollout_id": f"g-{number}", "task_reward": float(number % 2)}
    return RolloutRow(**{**fields, **known, **changes})  # type: ignore[arg-type]


def test_every_field_is_a_column_with_a_comment() -> None:
    assert [column.name for column in ROLLOUTS.columns] == [field.name for field in dataclasses.fields(RolloutRow)]
    assert all(column.comment for column in ROLLOUTS.columns)


def test_rollouts_can_be_joined_with_tasks(store_dir: Path) -> None:
    assert query(store_dir, "SELECT count(*) AS n FROM rollouts", "jsonl") == '{"n": 0}\n'
    ids = json.loads(query(store_dir, "SELECT instance_id FROM tasks ORDER BY ALL LIMIT 1", "json"))
    task = ids[0]["instance_id"]
    write_rollouts(
        store_dir, "first", 1, [row("first", 1, n, instance_id=task, flags=("leak_used",)) for n in range(4)]
    )
    write_rollouts(store_dir, "first", 2, [row("first", 2, n, advantage=None, tier=None) for n in range(3)])
    write_rollouts(store_dir, "first", 2, [row("first", 2, n, advantage=None, tier=None) for n in range(2)])
    write_rollouts(store_dir, "second run", 1, [row("second run", 1, 1)])
    sql = "SELECT run, step, count(*) AS n, avg(task_reward) AS reward FROM rollouts GROUP BY ALL ORDER BY ALL"
    found = json.loads(query(store_dir, sql, "json"))
    assert found == [
        {"run": "first", "step": 1, "n": 4, "reward": 0.5},
        {"run": "first", "step": 2, "n": 2, "reward": 0.5},
        {"run": "second run", "step": 1, "n": 1, "reward": 1.0},
    ]
    joined = query(
        store_dir, "SELECT count(*) AS n FROM rollouts JOIN tasks USING (instance_id) WHERE flags <> []", "jsonl"
    )
    assert joined == '{"n": 4}\n'
    assert [path.name for path in (store_dir / "rollouts" / "first").iterdir() if path.name.startswith(".")] == []


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rollouts").write_text("in the way")
    with pytest.raises(StoreError, match="store rollouts"):
        write_rollouts(tmp_path, "run", 1, [])
