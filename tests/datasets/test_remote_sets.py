"""Sets in an S3-compatible store: a real server, several machines (caches of their own), kills at random moments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from excise.datasets.comparison.set_diff import compare
from excise.datasets.queries.catalogue import query
from excise.datasets.storage import near_duplicates
from excise.datasets.storage.garbage import Retention, collect
from excise.datasets.storage.s3_objects import S3Objects, data_key, is_url
from excise.datasets.storage.set_reference import open_reference
from excise.datasets.storage.store import Store
from excise.datasets.storage.working_copy import local_folder
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError, StoreError

from .conftest import make_rows
from .crashes import KINDS, s3_server, s3_trials


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    """A set that does not exist yet."""
    return f"{server}/{request.node.name.replace('[', '-').rstrip(']')}"


@pytest.fixture
def machine(url: str, tmp_path: Path) -> Callable[[str], Path]:
    """Brings the working copy of a machine up to date, and returns its folder."""
    return lambda name: local_folder(url, tmp_path / name)


def put(root: Path, repo: str, *names: str, blob: str = "") -> None:
    with Store(root).writer() as writer:
        writer.put_repo(repo, make_rows(repo, names or None, blob))
        writer.publish()
        near_duplicates.update(root)


Machine = Callable[[str], Path]


def test_what_one_machine_publishes_another_one_reads(machine: Machine, tmp_path: Path) -> None:
    sha = Store(machine("a")).put_blob(b"toolz sources")
    put(machine("a"), "toolz", "take", "pluck", blob=sha)
    put(machine("b"), "humanize")
    put(machine("a"), "toolz", "take", "last", blob=sha)
    read = TaskSet.open(machine("c"))
    assert (len(read.ids()), read.manifest.number) == (6, 3)
    assert read.tasks() == TaskSet.open(machine("a")).tasks()
    assert read.blob(sha).read_bytes() == b"toolz sources", "fetched when it is needed"
    assert all(read.is_intact(instance_id) for instance_id in read.ids())
    assert query(machine("c"), "SELECT count(*) AS n FROM tasks", "csv").split() == ["n", "6"]
    names = {path.name for path in (machine("c") / near_duplicates.FOLDER).iterdir()}
    assert names == {path.name for path in (machine("a") / near_duplicates.FOLDER).iterdir()}
    assert len(names) == 3


def test_earlier_states_are_fetched(machine: Machine, url: str, tmp_path: Path) -> None:
    for names in (("take",), ("take", "pluck"), ("last",)):
        put(machine("a"), "toolz", *names)
    first = open_reference(f"{url}@1", tmp_path, tmp_path / "new")
    assert first.manifest.num_tasks == 1
    found = compare(first, open_reference(url, tmp_path, tmp_path / "new"))
    assert (len(found.added), len(found.removed)) == (1, 1)
    with pytest.raises(StoreError, match="no snapshot 9"):
        open_reference(f"{url}@9", tmp_path, tmp_path / "new")


def test_of_two_machines_that_publish_at_once_one_is_refused(machine: Machine) -> None:
    put(machine("a"), "toolz", "take")
    slow = machine("b")
    with Store(slow).writer() as writer:
        put(machine("a"), "humanize", "ordinal")
        writer.put_repo("toolz", make_rows("toolz", ("last",)))
        with pytest.raises(StoreError, match="published by another machine meanwhile") as caught:
            writer.publish()
    assert caught.value.reason == "conflict"
    assert len(TaskSet.open(slow).ids()) == 1, "its own readers did not see it either"
    put(machine("b"), "toolz", "last")
    assert len(TaskSet.open(machine("a")).ids()) == 2


def test_the_first_publication_is_conditional_too(machine: Machine) -> None:
    slow = machine("b")
    with Store(slow).writer() as writer:
        put(machine("a"), "humanize", "ordinal")
        writer.put_repo("toolz", make_rows("toolz", ("last",)))
        with pytest.raises(StoreError, match="published by another machine"):
            writer.publish()
    assert {task.repo for task in TaskSet.open(machine("b")).tasks()} == {"humanize"}


def test_damaged_and_missing_objects_are_named(machine: Machine, url: str, tmp_path: Path) -> None:
    put(machine("a"), "toolz", "take")
    manifest = TaskSet.open(machine("a")).manifest
    key = data_key(next(entry.sha256 for path, entry in manifest.files.items() if path.startswith("tasks/")))
    (tmp_path / "other").write_bytes(b"PAR1 nonsense")
    S3Objects(url).upload(tmp_path / "other", key)
    with pytest.raises(StoreError, match=f"{key} is damaged"):
        machine("b")
    S3Objects(url).delete([key])
    with pytest.raises(StoreError, match=f"{key} is missing"):
        machine("b")
    assert not (tmp_path / "b").exists() or not any((tmp_path / "b").glob("sets/*/current"))


def test_gc_removes_objects_that_nothing_needs(machine: Machine, url: str) -> None:
    for names in (("take",), ("pluck",), ("last",)):
        put(machine("a"), "toolz", *names)
    before = {facts.key for facts in S3Objects(url).listing("data")}
    collect(machine("a"), Retention(snapshots=1))
    assert {facts.key for facts in S3Objects(url).listing("data")} == before, "young objects may be another machine's"
    report = collect(machine("a"), Retention(snapshots=1, grace_hours=0))
    after = {facts.key for facts in S3Objects(url).listing("data")}
    assert len(after) < len(before)
    assert report.num_blobs > 0
    assert len(TaskSet.open(machine("new")).tasks()) == 1


def test_a_store_that_does_not_answer(tmp_path: Path, server: str) -> None:
    with pytest.raises(StoreError, match=r"no-such-bucket/set: .*does not exist.*Check the bucket"):
        local_folder("s3://no-such-bucket/set", tmp_path)
    for bad in ("s3://bucket", "gs://bucket/set"):
        assert is_url(bad)
        with pytest.raises(ConfigError, match="s3://bucket/folder"):
            local_folder(bad, tmp_path)


def test_the_command_line_takes_urls(url: str, excise, tmp_path: Path, stored) -> None:
    cache = {"cwd": tmp_path}
    joined = excise("merge", stored.out, "--out", url, "--json", **cache)
    assert joined.returncode == 0, joined.stderr
    asked = excise("query", "SELECT count(*) AS n FROM tasks", "--out", url, "--json", "--as-of", "1", **cache)
    assert json.loads(asked.stdout) == [{"n": 8}]
    same = excise("diff", url, stored.out, "--json", **cache)
    assert json.loads(same.stdout)["unchanged"] == 8
    assert not list(tmp_path.glob("s3*")), "a URL is no folder"


def test_a_killed_writer_shows_all_or_nothing(url: str, tmp_path: Path) -> None:
    """One moment of each kind; ``python -m tests.datasets.crashes --s3`` tries as many as wanted."""
    trials = s3_trials(url, tmp_path, seed=7)
    trials.run("refresh")
    for kind in KINDS:
        trials.run(kind)
    assert sum(trials.outcomes.values()) == 1 + len(KINDS)
