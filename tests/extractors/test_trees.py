"""Tree hashes equal those of git; archives are unpacked exactly as they were packed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from excise.errors import SourceError
from excise.extractors.fetch.leftovers import clean_export
from excise.extractors.fetch.trees import EMPTY_TREE, git_tree_hash, import_commit, list_files, pack, unpack


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "a.b").mkdir(parents=True)
    (root / "a").mkdir()
    (root / "a" / "x").write_bytes(b"\0\xff\r\n")
    (root / "a.b" / "y").write_text("y")
    (root / "a-c").write_text("")
    (root / "run").write_text("#!")
    (root / "run").chmod(0o755)
    (root / "dangling").symlink_to("nowhere")
    (root / "folder link").symlink_to("a")
    (root / "naïve ☃").write_text("snow")
    (root / "empty").mkdir()
    return root


def git(root: Path, *argv: str) -> str:
    env = {**os.environ, "GIT_DIR": str(root.parent / "git"), "GIT_WORK_TREE": str(root)}
    return subprocess.run(
        ["git", "-c", "core.autocrlf=false", *argv], cwd=root, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_hash_is_gits_own(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", "-A", "-f")
    assert git_tree_hash(tree) == git(tree, "write-tree")
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("x")
    assert git_tree_hash(tree) == git(tree, "write-tree")


def test_import_commit_is_gits_own(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", "-A", "-f")
    who = {"NAME": "excise", "EMAIL": "excise@localhost", "DATE": "946684800 +0000"}
    for key, value in who.items():
        os.environ.update({f"GIT_AUTHOR_{key}": value, f"GIT_COMMITTER_{key}": value})
    try:
        commit = git(tree, "commit-tree", git(tree, "write-tree"), "-m", "Import x 1")
    finally:
        for key in who:
            os.environ.pop(f"GIT_AUTHOR_{key}")
            os.environ.pop(f"GIT_COMMITTER_{key}")
    assert import_commit(git_tree_hash(tree), "Import x 1") == commit


def test_empty_tree(tmp_path: Path) -> None:
    assert git_tree_hash(tmp_path) == EMPTY_TREE


def test_archives_are_deterministic_and_come_back_exactly(tree: Path, tmp_path: Path) -> None:
    first = pack(tree, tmp_path / "1.tar.xz")
    for path in list_files(tree):
        os.utime(tree / path, (1, 1), follow_symlinks=False)
    (tree / "run").chmod(0o711)
    assert pack(tree, tmp_path / "2.tar.xz") == first
    mask = os.umask(0o077)
    try:
        unpack(tmp_path / "1.tar.xz", tmp_path / "back")
    finally:
        os.umask(mask)
    assert git_tree_hash(tmp_path / "back") == git_tree_hash(tree)
    assert (tmp_path / "back" / "run").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "back" / "a-c").stat().st_mode & 0o777 == 0o644


def test_a_damaged_archive_is_refused(tree: Path, tmp_path: Path) -> None:
    pack(tree, tmp_path / "1.tar.xz")
    (tmp_path / "1.tar.xz").write_bytes((tmp_path / "1.tar.xz").read_bytes()[:-20])
    with pytest.raises(SourceError):
        unpack(tmp_path / "1.tar.xz", tmp_path / "back")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("Name: kit\nVersion: 1\n\n# Kit\n\nCall it.\n", "Name: kit\nVersion: 1\n"),
        ("Name: kit\r\nVersion: 1\r\n\r\nText\r\n", "Name: kit\r\nVersion: 1\r\n"),
        (
            "Name: kit\nDescription: Kit\n        \n        Call it.\n        \nLicense: MIT\n",
            "Name: kit\nLicense: MIT\n",
        ),
        ("Name: kit\nLicense: MIT\n        or so\n", "Name: kit\nLicense: MIT\n        or so\n"),
    ],
)
def test_metadata_of_a_release_lose_the_copy_of_its_readme_and_the_list_of_its_files(
    tmp_path: Path, metadata: str, expected: str
) -> None:
    for path in ("PKG-INFO", "kit.egg-info/PKG-INFO", "src/kit.egg-info/PKG-INFO"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(metadata.encode())
    (tmp_path / "README").write_bytes(b"# Kit\n")
    lists = ("SOURCES.txt", "kit.egg-info/SOURCES.txt", "kit.egg-info/scm_file_list.json", "kit.egg-info/top_level.txt")
    for path in lists:
        (tmp_path / path).write_text("kit\n")
    clean_export(tmp_path)
    assert (tmp_path / "SOURCES.txt").exists()
    assert sorted(path.name for path in (tmp_path / "kit.egg-info").iterdir()) == ["PKG-INFO", "top_level.txt"]
    assert {file.read_bytes() for file in tmp_path.rglob("PKG-INFO")} == {expected.encode()}
    assert (tmp_path / "README").read_bytes() == b"# Kit\n"
