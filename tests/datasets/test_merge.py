"""Sets of several machines are joined without loss; what differs is reported; diffs and removal of old snapshots."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from excise.datasets.comparison.merge import merge
from excise.datasets.comparison.set_diff import compare
from excise.datasets.rows import RepoRows
from excise.datasets.storage.garbage import Retention, collect
from excise.datasets.storage.set_reference import open_reference
from excise.datasets.storage.snapshot import Snapshot, numbers
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.errors import StoreError

from .conftest import UNAVAILABLE, make_rows, tree
from .made_sets import many_rows


def publish(root: Path, **repos: RepoRows) -> Snapshot:
    with Store(root).writer() as writer:
        for name, rows in repos.items():
            writer.put_repo(name, rows)
        writer.publish()
    snapshot = Snapshot.current(root)
    assert snapshot is not None
    return snapshot


def proven_again(rows: RepoRows) -> RepoRows:
    """The same tasks with other costs, as another machine would certify them."""
    certificates = tuple(replace(c, cpu_s=c.cpu_s + 1, wall_s=1.0) for c in rows.certificates)
    return replace(rows, certificates=certificates)


def test_different_projects_are_taken_over_as_they_are(tmp_path: Path) -> None:
    sha = Store(tmp_path / "a").put_blob(b"toolz sources")
    one = publish(tmp_path / "a", toolz=make_rows("toolz", blob=sha))
    two = publish(tmp_path / "b", humanize=make_rows("humanize"), vanished=UNAVAILABLE)
    found = merge([one, two], tmp_path / "c")
    joined = TaskSet.open(tmp_path / "c")
    assert (len(found.report.came), found.num_repeated, found.conflicts, found.num_blobs) == (10, 0, [], 1)
    assert joined.tasks("toolz") == TaskSet.open(tmp_path / "a").tasks()
    assert joined.tasks("humanize") == TaskSet.open(tmp_path / "b").tasks()
    assert joined.environment("env-humanize") == TaskSet.open(tmp_path / "b").environment("env-humanize")
    assert joined.blob(sha).read_bytes() == b"toolz sources"
    assert {report.repo for report in joined.reports()} == {"toolz", "humanize", "vanished"}
    file = next((tmp_path / "a" / "current" / "tasks").glob("toolz-*"))
    assert file.samefile(tmp_path / "c" / "current" / "tasks" / file.name), "files are linked"
    assert merge([one, two], tmp_path / "c").num_repeated == 10
    assert numbers(tmp_path / "c") == [1], "the same again changes nothing"


def test_one_project_of_two_machines_is_joined_task_by_task(tmp_path: Path) -> None:
    one = publish(tmp_path / "a", toolz=make_rows("toolz", ("take", "pluck", "last")))
    two = publish(tmp_path / "b", toolz=proven_again(make_rows("toolz", ("pluck", "last", "first"))))
    found = merge([one, two], tmp_path / "c")
    joined = TaskSet.open(tmp_path / "c")
    assert len(joined.ids()) == 4
    assert (found.num_repeated, found.conflicts, found.versions) == (2, [], {})
    for source in ("b", "a"):  # the first set's certificates stay
        for task in TaskSet.open(tmp_path / source).tasks():
            assert joined.task(task.instance_id) == task
            assert joined.is_intact(task.instance_id)
            assert len(joined.verdicts(task.instance_id)) == 8
    kept = TaskSet.open(tmp_path / "a")
    assert all(joined.certificate(i) == kept.certificate(i) for i in kept.ids())
    assert len(joined.repos()) == 1


def test_a_task_with_other_contents_is_a_conflict(tmp_path: Path) -> None:
    rows = make_rows("toolz", ("take", "pluck"))
    other = replace(rows, tasks=(replace(rows.tasks[0], problem_statement="Something else."), rows.tasks[1]))
    found = merge([publish(tmp_path / "a", toolz=rows), publish(tmp_path / "b", toolz=other)], tmp_path / "c")
    assert [(c.instance_id, c.columns) for c in found.conflicts] == [
        (rows.tasks[0].instance_id, ("problem_statement",))
    ]
    assert found.conflicts[0].set == str(tmp_path / "b")
    assert TaskSet.open(tmp_path / "c").task(rows.tasks[0].instance_id) == rows.tasks[0]


def test_other_sources_of_a_project_are_kept_beside_it(tmp_path: Path) -> None:
    old, new = many_rows("toolz", 3), many_rows("toolz", 2, version=1)
    assert new.repo is not None
    newer = replace(
        new, repo=replace(new.repo, tree="f" * 40), tasks=tuple(replace(t, tree="f" * 40) for t in new.tasks)
    )
    found = merge([publish(tmp_path / "a", toolz=old), publish(tmp_path / "b", toolz=newer)], tmp_path / "c")
    assert found.versions == {"toolz@ffffffffffff": "toolz"}
    joined = TaskSet.open(tmp_path / "c")
    assert len(joined.tasks("toolz")) == 5
    assert {repo.tree for repo in joined.repos()} == {tree("toolz"), "f" * 40}


def test_a_task_under_two_names_is_kept_once(tmp_path: Path) -> None:
    one = publish(tmp_path / "a", toolz=make_rows("toolz", ("take", "pluck")))
    two = publish(tmp_path / "b", mirror=make_rows("toolz", ("pluck", "last")))
    assert merge([one, two], tmp_path / "c").num_repeated == 1
    joined = TaskSet.open(tmp_path / "c")
    assert len(joined.ids()) == 3
    assert sorted(joined.entries()) == ["mirror", "toolz"]


def test_a_source_that_one_machine_could_fetch(tmp_path: Path) -> None:
    publish(tmp_path / "a", toolz=replace(UNAVAILABLE, rejections=()))
    merge([Snapshot.current(tmp_path / "a"), publish(tmp_path / "b", toolz=make_rows("toolz"))], tmp_path / "c")  # type: ignore[list-item]
    joined = TaskSet.open(tmp_path / "c")
    assert (len(joined.ids()), [r.status for r in joined.reports()]) == (6, ["ok"])


def test_a_diff_names_tasks_columns_and_projects(tmp_path: Path) -> None:
    rows = make_rows("toolz", ("take", "pluck", "last"))
    publish(tmp_path, toolz=rows, gone=many_rows("gone", 1))
    changed = replace(rows.tasks[0], problem_statement="Other.")
    again = proven_again(make_rows("toolz", ("take", "pluck", "first")))
    assert rows.repo is not None
    with Store(tmp_path).writer() as writer:
        later = replace(again, tasks=(changed, *again.tasks[1:]), repo=replace(rows.repo, version="1.3.0"))
        writer.put_repo("toolz", later)
        writer.drop_repo("gone")
        writer.put_repo("humanize", make_rows("humanize", ("ordinal",)))
        writer.publish()
    first, second = (open_reference(text, tmp_path) for text in ("1", str(tmp_path)))
    found = compare(first, second)
    gone = many_rows("gone", 1).tasks[0].instance_id
    ordinal = make_rows("humanize", ("ordinal",)).tasks[0].instance_id
    assert set(found.removed) == {rows.tasks[2].instance_id, gone}
    assert set(found.added) == {again.tasks[2].instance_id, ordinal}
    by_name = {entry.name: entry for entry in found.changed}
    assert by_name.keys() == {rows.tasks[0].instance_id, rows.tasks[1].instance_id}
    assert "problem_statement" in by_name[rows.tasks[0].instance_id].columns
    assert by_name[rows.tasks[1].instance_id].is_only_costs
    assert (found.projects_added, found.projects_removed) == (("humanize",), ("gone",))
    assert [(entry.name, entry.columns) for entry in found.projects_changed] == [("toolz", ("version",))]
    same = compare(first, open_reference(f"{tmp_path}@1", tmp_path))
    assert (same.added, same.removed, same.changed, same.unchanged) == ((), (), (), 4)


def test_old_sets_are_compared_and_merged_with_new_ones(tmp_path: Path, stored) -> None:
    """The stored set has schema version 6 or older: its manifest lists the projects."""
    old = open_reference(str(stored.out), tmp_path)
    assert old.manifest.repos
    merge([old], tmp_path / "new")
    new = open_reference(str(tmp_path / "new"), tmp_path)
    assert not new.manifest.repos
    assert compare(old, new).unchanged == 8
    before, after = stored.taskset, TaskSet.open(tmp_path / "new")
    for instance_id in before.ids():
        assert after.is_intact(instance_id) == before.is_intact(instance_id)
        assert after.kit(instance_id) == before.kit(instance_id) is not None


def test_gc_keeps_what_is_kept_and_what_is_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    blobs = [store.put_blob(f"sources {n}".encode()) for n in range(4)]
    for n, names in enumerate((("take",), ("pluck",), ("last",))):
        publish(tmp_path, toolz=make_rows("toolz", names, blobs[n]))
    (tmp_path / "blobs" / "00").mkdir()
    (tmp_path / "blobs" / "00" / ".left.tmp").write_bytes(b"x" * 1000)
    for path in (tmp_path / "blobs").glob("*/*"):
        os.utime(path, (1, 1))
    young = store.put_blob(b"of a run that has not published yet")
    reader = TaskSet.open(tmp_path, "2")
    plan = collect(tmp_path, Retention(snapshots=1), dry_run=True)
    assert (plan.removed, plan.in_use, plan.num_blobs) == ((1,), (2,), 3)
    assert numbers(tmp_path) == [1, 2, 3]
    done = collect(tmp_path, Retention(snapshots=1))
    assert done == plan
    assert done.freed_bytes > 1000
    assert numbers(tmp_path) == [2, 3]
    assert [store.blobs.has(sha) for sha in [*blobs, young]] == [False, True, True, False, True]
    assert len(reader.tasks()) == 1
    del reader
    assert collect(tmp_path, Retention(snapshots=1, grace_hours=0)).num_blobs == 2
    assert [store.blobs.has(sha) for sha in [*blobs, young]] == [False, False, True, False, False]
    assert TaskSet.open(tmp_path).blob(blobs[2]).exists()


def test_gc_waits_for_no_writer(tmp_path: Path) -> None:
    publish(tmp_path, toolz=make_rows("toolz"))
    with Store(tmp_path).writer(), pytest.raises(StoreError, match="is being written"):
        collect(tmp_path, Retention())
