"""Publication: atomic, incremental, deterministic, locked; a crash leaves the previous snapshot."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from excise.datasets.rows import RepoRows
from excise.datasets.schema import TABLES, VERSION_KEY
from excise.datasets.storage import manifest as manifest_module
from excise.datasets.storage.store import Store
from excise.datasets.storage.writer import slug
from excise.datasets.taskset import TaskSet
from excise.errors import StoreError
from excise.system.files import file_sha256, store_errors
from excise.types import SCHEMA_VERSION

from .conftest import UNAVAILABLE, make_rows


def publish(root: Path, **repos: RepoRows):
    with Store(root).writer() as writer:
        for name, rows in repos.items():
            writer.put_repo(name, rows)
        return writer.publish()


def snapshots(root: Path) -> list[str]:
    return sorted(p.name for p in (root / "snapshots").iterdir())


def test_partial_runs_accumulate_and_are_reported(tmp_path: Path) -> None:
    first = publish(tmp_path, toolz=make_rows("toolz", ("take", "pluck")))
    second = publish(tmp_path, humanize=make_rows("humanize", ("ordinal",)))
    third = publish(tmp_path, toolz=make_rows("toolz", ("pluck", "last")))
    assert (len(first.came), first.unchanged) == (2, 0)
    assert (len(second.came), second.unchanged, second.went) == (1, 2, ())
    assert (len(third.came), len(third.went), third.unchanged, third.changed) == (1, 1, 2, ())
    assert len(TaskSet.open(tmp_path).tasks()) == 3
    assert TaskSet.open(tmp_path).manifest.parent == 2


def test_a_changed_row_of_the_same_id_is_reported(tmp_path: Path) -> None:
    rows = make_rows("toolz", ("take",))
    publish(tmp_path, toolz=rows)
    bare = RepoRows(repo=rows.repo, report=rows.report, tasks=rows.tasks)
    assert publish(tmp_path, toolz=bare).changed == (rows.tasks[0].instance_id,)


def test_publishing_without_a_change_makes_no_snapshot(tmp_path: Path) -> None:
    publish(tmp_path, toolz=make_rows("toolz"), vanished=UNAVAILABLE)
    report = publish(tmp_path, toolz=make_rows("toolz"))
    assert (report.came, report.changed, report.went, report.unchanged) == ((), (), (), 6)
    assert snapshots(tmp_path) == ["1"]


def test_unchanged_files_are_links_to_the_previous_snapshot(tmp_path: Path) -> None:
    publish(tmp_path, toolz=make_rows("toolz"))
    publish(tmp_path, humanize=make_rows("humanize"))
    old, new = (next((tmp_path / "snapshots" / n / "tasks").glob("toolz-*")) for n in "12")
    assert old.samefile(new)


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    rows = make_rows("toolz")
    shuffled = RepoRows(
        repo=rows.repo, report=rows.report, environment=rows.environment, baseline=rows.baseline,
        tasks=rows.tasks[::-1], certificates=rows.certificates[::-1], verdicts=rows.verdicts[::-1],
        rejections=rows.rejections[::-1], features=rows.features[::-1], symbols=rows.symbols[::-1],
        statements=rows.statements[::-1],
    )  # fmt: skip
    publish(tmp_path / "a", toolz=rows)
    publish(tmp_path / "b", toolz=shuffled)
    first, second = (TaskSet.open(tmp_path / n).manifest.files for n in "ab")
    assert first == second
    assert {path.split("/")[0] for path in first} == {*(TABLES.keys() - {"quarantines"}), "index"}


def test_the_manifest_describes_every_file(tmp_path: Path) -> None:
    publish(tmp_path, toolz=make_rows("toolz"))
    manifest, current = TaskSet.open(tmp_path).manifest, tmp_path / "current"
    for path, facts in manifest.files.items():
        assert file_sha256(current / path) == facts.sha256
        assert (current / path).stat().st_size == facts.bytes
        assert parquet.read_metadata(current / path).num_rows == facts.rows
    on_disk = {str(p.relative_to(current)) for p in current.glob("*/*.parquet") if p.name != "_schema.parquet"}
    assert on_disk == set(manifest.files)


def test_repositories_can_be_dropped(tmp_path: Path) -> None:
    publish(tmp_path, toolz=make_rows("toolz"), humanize=make_rows("humanize"))
    with Store(tmp_path).writer() as writer:
        writer.drop_repo("toolz")
        writer.drop_repo("never there")
        assert writer.names() == ("humanize",)
        assert len(writer.publish().went) == 6
    assert {task.repo for task in TaskSet.open(tmp_path).tasks()} == {"humanize"}


def test_unpublished_data_is_discarded(tmp_path: Path) -> None:
    publish(tmp_path, toolz=make_rows("toolz", ("take",)))
    with Store(tmp_path).writer() as writer:
        writer.put_repo("humanize", make_rows("humanize"))
    assert len(TaskSet.open(tmp_path).tasks()) == 1
    assert snapshots(tmp_path) == ["1"]


def test_errors_of_the_caller_pass_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), Store(tmp_path).writer():
        (tmp_path / "nothing").read_bytes()


def test_a_task_belongs_to_one_repository(tmp_path: Path) -> None:
    with Store(tmp_path).writer() as writer:
        writer.put_repo("toolz", make_rows("toolz"))
        with pytest.raises(StoreError, match=r"toolz-git: task toolz__\w+ is already in this set, from toolz"):
            writer.put_repo("toolz-git", make_rows("toolz"))


def test_a_second_writer_gets_an_error_that_names_the_lock_holder(tmp_path: Path) -> None:
    with Store(tmp_path).writer(), pytest.raises(StoreError, match=f"process {os.getpid()} on ") as caught:
        Store(tmp_path).writer().__enter__()
    assert caught.value.reason == "locked"
    publish(tmp_path, toolz=make_rows("toolz"))


WRITER_PROGRAM = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
from conftest import make_rows
from excise.datasets.storage import store as module, writer as switching
if sys.argv[3] == "switch":
    switching.replace_link = lambda *a: os.kill(os.getpid(), 9)
with module.Store(sys.argv[1]).writer() as writer:
    writer.put_repo("toolz", make_rows("toolz"))
    if sys.argv[3] == "write":
        os.kill(os.getpid(), 9)
    writer.publish()
"""


@pytest.mark.parametrize("moment", ["write", "switch"])
def test_a_killed_writer_leaves_the_previous_snapshot(tmp_path: Path, moment: str) -> None:
    publish(tmp_path, humanize=make_rows("humanize"))
    here = str(Path(__file__).parent)
    killed = subprocess.run([sys.executable, "-c", WRITER_PROGRAM, str(tmp_path), here, moment], check=False)
    assert killed.returncode == -9
    assert {task.repo for task in TaskSet.open(tmp_path).tasks()} == {"humanize"}
    assert len(snapshots(tmp_path)) > 1, "the killed writer left something behind"
    publish(tmp_path, toolz=make_rows("toolz", ("take",)))
    assert len(TaskSet.open(tmp_path).tasks()) == 5
    assert all(name.isdigit() for name in snapshots(tmp_path))
    assert len(snapshots(tmp_path)) == 2


def test_a_reader_keeps_its_snapshot(tmp_path: Path) -> None:
    publish(tmp_path, toolz=make_rows("toolz", ("take",)))
    before = TaskSet.open(tmp_path)
    publish(tmp_path, toolz=make_rows("toolz", ("last", "first")))
    assert len(before.tasks()) == 1
    assert len(TaskSet.open(tmp_path).tasks()) == 2
    shutil.rmtree(tmp_path / "snapshots" / "1")  # by hand: excise removes no snapshot that is read
    with pytest.raises(StoreError, match="Open the task set again"):
        before.tasks()


def test_a_newer_schema_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path, toolz=make_rows("toolz"))
    file = next((tmp_path / "current" / "tasks").glob("toolz-*"))
    table = parquet.read_table(file)
    parquet.write_table(table.replace_schema_metadata({VERSION_KEY: "99"}), file)
    with pytest.raises(StoreError, match=r"schema version 99.*Upgrade excise"):
        TaskSet.open(tmp_path).tasks()
    monkeypatch.setattr(manifest_module, "SCHEMA_VERSION", 0)
    with pytest.raises(StoreError, match=f"schema version {SCHEMA_VERSION}, this excise reads up to 0"):
        TaskSet.open(tmp_path)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    publish(tmp_path, toolz=make_rows("toolz"))
    file = next((tmp_path / "current" / "tasks").glob("toolz-*"))
    file.write_bytes(b"PAR1 nonsense")
    with pytest.raises(StoreError, match=f"{file.name} is damaged"):
        TaskSet.open(tmp_path).tasks()
    (tmp_path / "current" / "manifest.json").write_text("{}")
    with pytest.raises(StoreError, match=r"manifest\.json is damaged"):
        TaskSet.open(tmp_path)


def test_a_full_disk_is_explained(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=r"Cannot publish .*free some space.*intact") as caught,
        store_errors("publish"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device", "tasks.parquet")
    assert caught.value.reason == "disk_full"
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    with pytest.raises(StoreError, match=r"\(copy\.parquet\)"), store_errors("publish"):
        raise OSError(errno.ENOSPC, "No space left on device", "tasks.parquet", None, "copy.parquet")


def test_a_full_disk_leaves_the_previous_snapshot(tmp_path: Path) -> None:
    """A real limit on file size stands in for the disk: the write fails in the middle of a file."""
    publish(tmp_path, humanize=make_rows("humanize"))
    limited = WRITER_PROGRAM.replace("import os", "import resource, signal, os", 1) + "\n"
    limit = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
    code = limited.replace("with module.Store", limit + "with module.Store")
    here = str(Path(__file__).parent)
    completed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), here, "none"], check=False, capture_output=True, text=True
    )
    assert "StoreError: Cannot" in completed.stderr
    assert len(TaskSet.open(tmp_path).tasks()) == 4
    assert snapshots(tmp_path) == ["1"]


def test_a_file_whose_writing_was_interrupted_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with Store(tmp_path).writer() as writer:
        with monkeypatch.context() as patched:
            patched.setattr(parquet.ParquetWriter, "write_table", interrupted)  # once the file is there
            with pytest.raises(KeyboardInterrupt):
                writer.put_repo("toolz", make_rows("toolz"))
        writer.put_repo("toolz", make_rows("toolz"))  # as a run does when it ends early
        writer.publish()
    assert len(TaskSet.open(tmp_path).tasks()) == 6


def test_a_file_at_the_path_of_the_set_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "set").write_text("")
    with pytest.raises(StoreError, match="choose another"):
        publish(tmp_path / "set", toolz=make_rows("toolz"))


def test_blobs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sha = store.put_blob(b"archive")
    (tmp_path / "same").write_bytes(b"archive")
    assert store.put_blob(tmp_path / "same") == sha
    path = store.blobs.path(sha)
    assert path == tmp_path / "blobs" / sha[:2] / f"{sha}.tar.xz"
    assert path.read_bytes() == b"archive"
    path.write_bytes(b"ARCHIVE")
    with pytest.raises(StoreError, match="is damaged"):
        store.blobs.path(sha)
    for unknown in ("0" * 64, "../../etc/passwd"):
        with pytest.raises(StoreError) as caught:
            store.blobs.path(unknown)
        assert caught.value.reason == "unknown_blob"


def test_slugs_are_readable_and_distinct() -> None:
    names = ["toolz", "pytoolz/toolz", "pytoolz-toolz", "../etc", "", "x" * 200, "_schema", "A b", ".hidden", "é"]
    slugs = [slug(name) for name in names]
    assert slugs[0] == "toolz"
    assert len(set(slugs)) == len(names)
    assert not any("/" in s or s.startswith((".", "_")) for s in slugs)
