"""Durable files and folders: complete or absent, and made once."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from excise.errors import StoreError
from excise.system.files import link_or_copy, replace_file, replace_lines, replacement, store_errors, tells_full_disk
from excise.system.folders import make_folder_once, publish_folder, sync_tree, temporary_folder_beside
from excise.system.locks import exclusive, folder_lock, host_folder, host_lock, is_locked


def test_a_replaced_file_has_the_new_content_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    replace_file(path, b"one")
    replace_lines(path, ["two", "three"])
    assert path.read_bytes() == b"two\nthree\n"
    assert os.listdir(path.parent) == ["file"]


def test_a_replacement_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with replacement(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_errors_of_files_name_the_remedy() -> None:
    with pytest.raises(StoreError, match=r"Cannot write it \(/proc/none\)"), store_errors("write it"):
        Path("/proc/none").write_text("x")


def test_a_hard_link_is_made_where_the_file_system_has_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    link_or_copy(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a").samefile(tmp_path / "b")


def test_a_copy_has_its_name_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    def interrupted(_: Path, target: Path) -> None:
        target.write_bytes(b"")
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", no_link)
    (tmp_path / "a").write_bytes(b"x")
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy2", interrupted)
        with pytest.raises(KeyboardInterrupt):
            link_or_copy(tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "b").exists()
    link_or_copy(tmp_path / "a", tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert (tmp_path / "b").read_bytes() == b"x"


def test_a_published_folder_replaces_no_full_one(tmp_path: Path) -> None:
    for name in ("work", "target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    with pytest.raises(OSError, match="not empty"):
        publish_folder(tmp_path / "work", tmp_path / "target")
    assert (tmp_path / "target" / "file").read_text() == "target"


def test_a_tree_is_flushed_with_and_without_one_call_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    (tmp_path / "link").symlink_to("nowhere")
    sync_tree(tmp_path)
    flushed: list[Path] = []
    monkeypatch.setattr("excise.system.folders._syncfs", None)
    monkeypatch.setattr("excise.system.folders.sync", flushed.append)
    sync_tree(tmp_path)
    assert set(flushed) == {tmp_path, tmp_path / "folder", tmp_path / "folder" / "file"}


def test_a_folder_wanted_by_several_is_made_once(tmp_path: Path) -> None:
    made: list[int] = []

    def make(work: Path) -> None:
        made.append(1)
        (work / "file").write_text("x")
        time.sleep(0.2)

    threads = [threading.Thread(target=make_folder_once, args=(tmp_path / "folder", make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert (tmp_path / "folder" / "file").read_text() == "x"
    assert sorted(os.listdir(tmp_path)) == ["folder", "folder.lock"]


def test_a_folder_whose_making_fails_is_not_there(tmp_path: Path) -> None:
    def make(work: Path) -> None:
        (work / "file").write_text("x")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        make_folder_once(tmp_path / "folder", make)
    assert os.listdir(tmp_path) == ["folder.lock"]


def test_an_incomplete_folder_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    done = make_folder_once(
        tmp_path / "folder", lambda work: (work / "done").touch(), is_complete=lambda folder: (folder / "done").exists()
    )
    assert os.listdir(done) == ["done"]


def test_a_temporary_folder_is_gone_afterwards(tmp_path: Path) -> None:
    with temporary_folder_beside(tmp_path / "deep" / "folder") as work:
        assert work.stat().st_mode & 0o777 == 0o755
    assert os.listdir(tmp_path / "deep") == []


def test_a_lock_names_its_owner_and_is_released(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    with exclusive(path):
        assert is_locked(path)
        with pytest.raises(StoreError, match=f"process {os.getpid()} on") as caught, exclusive(path):
            pass
        assert caught.value.reason == "locked"
    assert not is_locked(path)


@pytest.mark.parametrize("kind", ["folder", "host"])
def test_a_waiting_lock_is_held_by_one_at_a_time(tmp_path: Path, kind: str) -> None:
    held: list[str] = []

    def hold() -> None:
        with folder_lock(tmp_path / "folder") if kind == "folder" else host_lock(str(tmp_path)):
            held.append("begin")
            time.sleep(0.05)
            held.append("end")

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held == ["begin", "end"] * 3


def test_a_lock_that_is_taken_is_left_where_nobody_waits(tmp_path: Path) -> None:
    with host_lock(str(tmp_path)) as held, host_lock(str(tmp_path), wait=False) as again:
        assert (held, again) == (True, False)
    with host_lock(str(tmp_path), wait=False) as free:
        assert free


def test_the_folder_of_this_machine_is_closed_to_others() -> None:
    assert host_folder().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("text", "is_full"),
    [
        ("[Errno 28] No space left on device: '/a/b'", True),
        ("OSError(28, 'No space left on device')", True),
        ("error: failed to write\nCaused by:\n  No space left on device (os error 28)\n", True),
        ("go: writing: no space left on device", True),
        ("fatal: sha1 file 'a' write error. Out of diskspace", True),
        ("dpkg: error (No space left on device)", True),
        ("error: No space left on device: No such file or directory", False),
        ("error: patch failed: No space left on device:1", False),
        ("test: no space is left", False),
    ],
)
def test_a_full_disk_is_told_from_files_with_its_words(text: str, is_full: bool) -> None:
    assert tells_full_disk(text) is is_full
