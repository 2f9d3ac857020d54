"""Records come back exactly as they were written."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import excise
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.errors import StoreError

from .conftest import UNAVAILABLE, make_rows, make_task

TOOLZ = make_rows(
    "toolz", ("pluck", "groupby", "frequencies", "last", "first"), hashlib.sha256(b"toolz sources").hexdigest()
)


@pytest.fixture
def taskset(store_dir: Path) -> TaskSet:
    return TaskSet.open(store_dir)


def test_records_are_lossless(taskset: TaskSet) -> None:
    assert taskset.tasks("toolz") == tuple(sorted(TOOLZ.tasks, key=lambda t: t.instance_id))
    assert taskset.repo("toolz") == TOOLZ.repo
    assert taskset.environment("env-toolz") == (TOOLZ.environment, TOOLZ.baseline)
    assert taskset.rejections("toolz") == TOOLZ.rejections
    assert taskset.reports() == (make_rows("humanize").report, TOOLZ.report, UNAVAILABLE.report)
    for task, certificate in zip(TOOLZ.tasks, TOOLZ.certificates, strict=True):
        assert taskset.task(task.instance_id) == task
        assert taskset.certificate(task.instance_id) == certificate
        assert set(map(repr, taskset.verdicts(task.instance_id))) == set(map(repr, certificate.verdicts))


def test_verdicts_on_refused_candidates(taskset: TaskSet) -> None:
    assert set(map(repr, taskset.verdicts(TOOLZ.verdicts[0].instance_id))) == set(map(repr, TOOLZ.verdicts))


def test_ids_repos_and_rejections(taskset: TaskSet) -> None:
    assert taskset.ids() == tuple(task.instance_id for task in taskset.tasks())
    assert len(taskset.ids()) == 9
    assert [repo.repo for repo in taskset.repos()] == ["humanize", "toolz"]
    assert len(taskset.rejections()) == 3


def test_tasks_without_recorded_calls_are_tests_only(taskset: TaskSet) -> None:
    assert taskset.tests_only() == set(taskset.ids())


def test_the_public_name() -> None:
    assert excise.TaskSet is TaskSet


def test_blob(taskset: TaskSet) -> None:
    assert taskset.blob(taskset.repo("toolz").blob).read_bytes() == b"toolz sources"


def test_unknown_ids_suggest_close_ones(taskset: TaskSet) -> None:
    real = taskset.ids()[0]
    with pytest.raises(StoreError, match=f"Did you mean {real}"):
        taskset.task(real[:-1])
    with pytest.raises(StoreError, match="Did you mean toolz"):
        taskset.tasks("tools")
    with pytest.raises(StoreError, match="Did you mean env-toolz"):
        taskset.environment("env-tools")
    with pytest.raises(StoreError, match=r"No repository 'zzz' in this task set\. The set has 3 of them"):
        taskset.repo("zzz")
    with pytest.raises(StoreError, match="No task or candidate"):
        taskset.verdicts("zzz")


def test_a_source_that_could_not_be_fetched(taskset: TaskSet) -> None:
    assert taskset.tasks("vanished") == ()
    with pytest.raises(StoreError, match="could not be fetched: No such project"):
        taskset.repo("vanished")


def test_no_task_set_yet(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StoreError, match="excise generate"):
            TaskSet.open(folder)


def test_a_task_without_certificate(tmp_path: Path) -> None:
    task, _ = make_task("toolz", "take")
    rows = make_rows("toolz", ())
    bare = type(rows)(repo=rows.repo, tasks=(task,))
    with Store(tmp_path).writer() as writer:
        writer.put_repo("toolz", bare)
        writer.publish()
    assert TaskSet.open(tmp_path).task(task.instance_id) == task
    with pytest.raises(StoreError, match="without a certificate"):
        TaskSet.open(tmp_path).certificate(task.instance_id)
