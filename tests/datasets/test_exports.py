"""Exports in other tools' formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.datasets.exports import EXPORTERS, export, exporter
from excise.datasets.schema import TABLES
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError


def test_every_registered_exporter_can_be_made() -> None:
    assert {exporter(name).name for name in EXPORTERS} == set(EXPORTERS)


def test_unknown_format() -> None:
    with pytest.raises(ConfigError, match="choose from jsonl"):
        exporter("xml")


def test_jsonl_has_the_rows(store_dir: Path, tmp_path: Path) -> None:
    taskset = TaskSet.open(store_dir)
    assert export(taskset, "jsonl", tmp_path / "new") == 9
    rows = [json.loads(line) for line in (tmp_path / "new" / "tasks.jsonl").open(encoding="utf-8")]
    assert rows == taskset.task_rows()
    assert list(rows[0]) == [c.name for c in TABLES["tasks"].columns]
    assert isinstance(rows[0]["FAIL_TO_PASS"], list)
    assert export(taskset, "jsonl", tmp_path / "new", repo="humanize") == 4
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["tasks.jsonl"]
