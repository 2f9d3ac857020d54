"""Compaction changes where rows are, never what they are; snapshots that somebody reads are kept."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from excise.datasets.queries.catalogue import query
from excise.datasets.rows import RepoRows, canonical_json
from excise.datasets.schema import TABLES
from excise.datasets.storage import compaction, writer
from excise.datasets.storage.manifest import SnapshotReport
from excise.datasets.storage.retention import KEEP_RUNS, KEEP_SNAPSHOTS, kept_numbers, remove_expired
from excise.datasets.storage.snapshot import Snapshot, numbers
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.errors import StoreError
from excise.types import Quarantine

from .conftest import SOURCES, make_rows
from .made_sets import many_rows


def contents(root: Path) -> dict[str, list[str]]:
    """Every row of every table, and per project, as comparable texts."""
    snapshot = Snapshot.current(root)
    assert snapshot is not None
    found = {table: sorted(map(canonical_json, snapshot.rows(table))) for table in TABLES}
    for name in snapshot.index.entries:
        for table in TABLES:
            found[f"{name}/{table}"] = [canonical_json(row) for row in snapshot.rows(table, name)]
        found[f"{name}/hashes"] = sorted(f"{i} {digest}" for i, digest in snapshot.index.tasks(name).items())
    return found


def files(root: Path, table: str = "tasks") -> list[Path]:
    return [path for path in (root / "current" / table).iterdir() if path.name != "_schema.parquet"]


def quarantined(instance_id: str) -> Quarantine:
    return Quarantine(
        instance_id=instance_id, leak_id="a", label="x", level="L1", detail="x", found_in=instance_id, trajectory="t"
    )


def nights(draw: random.Random) -> Iterator[tuple[dict[str, RepoRows], str]]:
    """Random projects that each night makes again, and one that it drops."""
    names = [f"project-{n}" for n in range(9)]
    for _ in range(4):
        put = {name: many_rows(name, draw.randint(0, 4), version=draw.randint(0, 2)) for name in draw.sample(names, 4)}
        yield put, draw.choice(names)


@pytest.mark.parametrize(("seed", "max_small", "target_rows", "batch"), [(0, 1, 30, 2), (1, 2, 10**9, 3)])
def test_rows_are_the_same_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, max_small: int, target_rows: int, batch: int
) -> None:
    """The same random nights with and without compaction: equal contents after each."""
    plain = list(published_nights(tmp_path / "plain", seed))
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "MAX_SMALL", max_small)
        patch.setattr(compaction, "TARGET_ROWS", target_rows)
        patch.setattr(compaction, "ROW_GROUP_ROWS", 3)
        patch.setattr(writer, "PUT_BEFORE_JOINING", batch)
        patch.setattr(writer, "INDEX_PROJECTS", 3)
        assert list(published_nights(tmp_path / "joined", seed)) == plain
    assert len(files(tmp_path / "plain")) > len(files(tmp_path / "joined"))


def published_nights(root: Path, seed: int) -> Iterator[tuple[SnapshotReport, dict[str, list[str]]]]:
    """What each night reports, and what the set holds after it."""
    for put, dropped in nights(random.Random(seed)):
        with Store(root).writer() as store_writer:
            for name, rows in put.items():
                store_writer.put_repo(name, rows)
            store_writer.drop_repo(dropped)
            for name in store_writer.names()[:2]:
                store_writer.quarantine(map(quarantined, sorted(store_writer.task_ids(name))[:1]))
            report = store_writer.publish()
        yield report, contents(root)


def test_many_projects_are_few_files_and_one_change_writes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MAX_SMALL", 8)
    with Store(tmp_path).writer() as store_writer:
        for n in range(30):
            store_writer.put_repo(f"project-{n:02}", many_rows(f"project-{n:02}", 3))
        store_writer.publish()
    assert len(files(tmp_path)) == 1
    before = contents(tmp_path)
    with Store(tmp_path).writer() as store_writer:
        for n in range(30):
            store_writer.put_repo(f"project-{n:02}", many_rows(f"project-{n:02}", 3))
        report = store_writer.publish()
    assert (report.unchanged, numbers(tmp_path)) == (90, [1]), "the same rows again are no change"
    with Store(tmp_path).writer() as store_writer:
        store_writer.put_repo("project-07", many_rows("project-07", 2, version=1))
        assert len(store_writer.publish().went) == 3
    assert len(files(tmp_path)) == 2, "one without the old rows, one with the new ones"
    after = contents(tmp_path)
    assert {k: v for k, v in after.items() if "/" in k and "07" not in k} == {
        k: v for k, v in before.items() if "/" in k and "07" not in k
    }
    assert query(tmp_path, "SELECT count(*) AS n FROM tasks", "csv").split() == ["n", "89"]


def test_compacting_by_hand_changes_no_row(tmp_path: Path) -> None:
    with Store(tmp_path).writer() as store_writer:
        for name in SOURCES:
            store_writer.put_repo(name, make_rows(name))
        store_writer.publish()
    before, tasks = contents(tmp_path), TaskSet.open(tmp_path).tasks()
    with Store(tmp_path).writer() as store_writer:
        store_writer.compact()
        assert store_writer.publish().unchanged == 10
    assert contents(tmp_path) == before
    assert [len(files(tmp_path, table)) for table in ("tasks", "verdicts", "repos")] == [1, 1, 1]
    after = TaskSet.open(tmp_path)
    assert after.tasks() == tasks
    assert all(after.is_intact(task.instance_id) and after.task(task.instance_id) == task for task in tasks)
    with Store(tmp_path).writer() as store_writer:
        store_writer.compact()
        store_writer.publish()
    assert numbers(tmp_path) == [1, 2], "nothing is left to join"


def test_files_of_different_versions_are_not_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row keeps the columns that it was written with, or its hash would not be that of the published row."""
    with Store(tmp_path).writer() as store_writer:
        store_writer.put_repo("humanize", make_rows("humanize"))
        store_writer.publish()
    old = files(tmp_path)[0]
    table = pq.read_table(old)
    monkeypatch.setattr(compaction, "MAX_SMALL", 0)
    pq.write_table(table.drop_columns(["needs"]), old)
    with Store(tmp_path).writer() as store_writer:
        store_writer.put_repo("toolz", make_rows("toolz"))
        store_writer.publish()
    assert sorted("needs" in pq.read_schema(path).names for path in files(tmp_path)) == [False, True]


def publish(root: Path, *names: str) -> None:
    with Store(root).writer() as store_writer:
        store_writer.put_repo("toolz", make_rows("toolz", names))
        store_writer.publish()


def test_a_snapshot_that_is_read_is_not_removed(tmp_path: Path) -> None:
    for names in (("take",), ("take", "pluck"), ("last",), ("first",), ("groupby",)):
        publish(tmp_path, *names)
    reader = TaskSet.open(tmp_path, as_of="2")
    assert remove_expired(tmp_path, snapshots=1, runs=0) == [1, 3, 4]
    assert numbers(tmp_path) == [2, 5]
    assert len(reader.tasks()) == 2
    del reader
    assert remove_expired(tmp_path, snapshots=1, runs=0) == [2]
    assert numbers(tmp_path) == [5]


def test_a_copied_snapshot_reads_and_holds_nothing(tmp_path: Path) -> None:
    """Its end closes no file of another object."""
    publish(tmp_path, "take")
    publish(tmp_path, "take", "pluck")
    snapshot = Snapshot.at(tmp_path, "1")
    assert snapshot is not None
    copy = pickle.loads(pickle.dumps(snapshot))
    assert (copy.lease, len(copy.rows("tasks"))) == (None, 1)
    del copy
    assert remove_expired(tmp_path, snapshots=1, runs=0) == []
    del snapshot
    assert remove_expired(tmp_path, snapshots=1, runs=0) == [1]


def test_the_last_snapshot_of_each_run_is_kept_longer(tmp_path: Path) -> None:
    for run in range(3):
        with Store(tmp_path).writer() as store_writer:
            for name in ("take", "pluck", "last", "first", "groupby"):
                store_writer.put_repo("toolz", make_rows("toolz", (name,) if run % 2 else (name, "frequencies")))
                store_writer.publish()
    assert numbers(tmp_path) == [5, 10, 13, 14, 15]
    manifests = [Snapshot.open(tmp_path / "snapshots" / str(n)).manifest for n in numbers(tmp_path)]
    assert kept_numbers(manifests, snapshots=2, runs=2) == {10, 14, 15}
    assert KEEP_SNAPSHOTS < KEEP_RUNS


def test_earlier_snapshots_are_read_by_number_or_time(tmp_path: Path) -> None:
    publish(tmp_path, "take")
    publish(tmp_path, "take", "pluck")
    first, second = (Snapshot.open(tmp_path / "snapshots" / n).manifest for n in "12")
    assert len(TaskSet.open(tmp_path, "1").tasks()) == 1
    assert len(TaskSet.open(tmp_path, "9999-01-01").tasks()) == 2
    assert query(tmp_path, "SELECT count(*) AS n FROM tasks", "csv", as_of="1").split() == ["n", "1"]
    at_first = Snapshot.at(tmp_path, first.created_at)
    assert at_first is not None
    assert at_first.manifest.number == (1 if first.created_at < second.created_at else 2)
    with pytest.raises(StoreError, match=r"no snapshot 7\. Kept are: 1 \(.*\), 2 \(.*\)\."):
        TaskSet.open(tmp_path, "7")
    with pytest.raises(StoreError, match="no snapshot 1999-12-31"):
        TaskSet.open(tmp_path, "1999-12-31")
    with pytest.raises(StoreError, match="neither a snapshot's number nor a date"):
        TaskSet.open(tmp_path, "yesterday")


def test_unknown_projects_have_no_rows(tmp_path: Path) -> None:
    with Store(tmp_path).writer() as store_writer:
        store_writer.put_repo("toolz", RepoRows())
        store_writer.publish()
    snapshot = Snapshot.current(tmp_path)
    assert snapshot is not None
    assert snapshot.rows("tasks", "toolz") == snapshot.rows("tasks", "nowhere") == []
    assert snapshot.index.owner("nowhere__1") is None
