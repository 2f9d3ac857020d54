"""Quarantined tasks: added and released atomically, kept over publications, respected by all readers."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from excise.datasets.exports.registry import export
from excise.datasets.queries.catalogue import query
from excise.datasets.show import render
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.errors import StoreError
from excise.pipeline.services.export_materials import SetMaterials
from excise.types import Quarantine

from .conftest import make_rows, make_task

FIRST, SECOND = (make_task("toolz", name, rank=n)[0].instance_id for n, name in enumerate(("take", "pluck")))


def leak(instance_id: str, leak_id: str = "a1") -> Quarantine:
    return Quarantine(
        instance_id=instance_id, leak_id=leak_id, label="bytecode_recovery", level="L3", detail="A pyc was read.",
        found_in=FIRST, trajectory="t1", steps=("3", "4"), places=("/tmp/x.pyc",), decoder="python -m dis /tmp/x.pyc",
        fingerprint=("00ff",), created_at="2026-01-02T03:04:05Z",
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "set")
    with made.writer() as writer:
        writer.put_repo("toolz", make_rows("toolz", ("take", "pluck", "groupby")))
        writer.put_repo("humanize", make_rows("humanize"))
        writer.publish()
    return made


def test_a_quarantined_task_is_excluded_with_a_reason(store: Store, tmp_path: Path) -> None:
    with store.writer() as writer:
        writer.quarantine([leak(FIRST), leak(SECOND), leak(FIRST)])
        writer.publish()
    tasks = TaskSet.open(store.root)
    assert tasks.quarantines() == tuple(sorted((leak(FIRST), leak(SECOND)), key=lambda q: q.instance_id))
    remaining = {task.instance_id for task in tasks.tasks()}
    assert remaining == set(tasks.ids()) - {FIRST, SECOND}
    assert {task.instance_id for task in tasks.tasks(quarantined=True)} == set(tasks.ids())
    assert tasks.is_intact(FIRST), "the row itself is what was published"
    with SetMaterials(tasks) as materials:
        export(tasks, "jsonl", tmp_path / "out", materials)
    assert FIRST not in "".join(path.read_text() for path in (tmp_path / "out").rglob("*.jsonl"))
    rows = json.loads(query(store.root, "SELECT instance_id, leak_id, steps FROM quarantines ORDER BY ALL", "json"))
    assert {row["instance_id"] for row in rows} == {FIRST, SECOND}
    assert rows[0]["steps"] == ["3", "4"]
    out = io.StringIO()
    render(tasks, FIRST, Console(file=out, width=100))
    assert "QUARANTINED: L3 bytecode_recovery: A pyc was read. (/tmp/x.pyc) Leak a1." in out.getvalue()


def test_a_quarantine_is_kept_over_publications_until_released(store: Store) -> None:
    with store.writer() as writer:
        writer.quarantine([leak(FIRST), leak(FIRST, "b2"), leak(SECOND)])
        writer.publish()
    with store.writer() as writer:
        writer.put_repo("toolz", make_rows("toolz", ("take", "groupby", "last")))
        writer.publish()
    assert {(q.instance_id, q.leak_id) for q in TaskSet.open(store.root).quarantines()} == {
        (FIRST, "a1"),
        (FIRST, "b2"),
    }
    with store.writer() as writer:
        writer.release(FIRST)
        writer.publish()
    tasks = TaskSet.open(store.root)
    assert tasks.quarantines() == ()
    assert len(tasks.tasks()) == len(tasks.ids())


def test_unknown_tasks_are_refused_and_no_change_publishes_nothing(store: Store) -> None:
    number = TaskSet.open(store.root).manifest.number
    with store.writer() as writer:
        with pytest.raises(StoreError, match="No task 'nowhere__0'"):
            writer.quarantine([leak("nowhere__0")])
        writer.quarantine([])
        writer.publish()
    assert TaskSet.open(store.root).manifest.number == number
    with store.writer() as writer:
        writer.quarantine([leak(FIRST)])
        writer.publish()
    with store.writer() as writer:
        writer.quarantine([leak(FIRST)])
        writer.publish()
    assert TaskSet.open(store.root).manifest.number == number + 1


def test_sets_without_the_quarantines_table_can_be_queried(store: Store) -> None:
    snapshot = (store.root / "current").resolve()
    assert not any("quarantines" in entry.tables for entry in TaskSet.open(store.root).entries().values())
    (snapshot / "quarantines" / "_schema.parquet").unlink()
    (snapshot / "quarantines").rmdir()
    assert query(store.root, "SELECT count(*) AS n FROM quarantines", "csv").split() == ["n", "0"]
    assert query(store.root, "SELECT instance_id, steps FROM quarantines", "csv").strip() == "instance_id,steps"
