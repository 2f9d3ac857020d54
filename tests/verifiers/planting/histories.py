"""Git repositories and their parts, made by git, that contain the source (leak level L4)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_ENV = {
    "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@x", "GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@x",
}  # fmt: skip


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "init.defaultBranch=main", *arguments], cwd=root, env=_ENV, check=True,
                   capture_output=True, timeout=60)  # fmt: skip


def _repository(source: bytes, folder: Path) -> Path:
    """A repository with the file in its history only."""
    root = folder.parent / f"{folder.name}-work"
    root.mkdir()
    git(root, "init", "-q")
    (root / "module.py").write_bytes(b"import os\n\n" + source)
    (root / "other.py").write_bytes(source[: len(source) // 3])
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    (root / "module.py").write_bytes(b"import os\n")
    git(root, "commit", "-qam", "two")
    return root


def _keep(root: Path, folder: Path) -> None:
    shutil.copytree(root / ".git", folder / "copy.git")


def git_loose(source: bytes, folder: Path) -> None:
    _keep(_repository(source, folder), folder)


def git_packed(source: bytes, folder: Path) -> None:
    root = _repository(source, folder)
    git(root, "repack", "-adfq", "--depth=50")
    git(root, "prune-packed")
    _keep(root, folder)


def git_deltas(source: bytes, folder: Path) -> None:
    root = _repository(source, folder)
    for number in range(4):
        lines = source.splitlines(keepends=True)
        at = number * len(lines) // 4
        (root / "module.py").write_bytes(b"".join([*lines[:at], b"# %d\n" % number, *lines[at:]]))
        git(root, "commit", "-qam", str(number))
    (root / "module.py").write_bytes(b"")
    git(root, "commit", "-qam", "gone")
    git(root, "gc", "-q", "--aggressive", "--prune=now")
    _keep(root, folder)


def git_bundle(source: bytes, folder: Path) -> None:
    git(_repository(source, folder), "bundle", "create", "-q", str(folder / "all.bundle"), "--all")


def git_torn_pack(source: bytes, folder: Path) -> None:
    root = _repository(source, folder)
    git(root, "repack", "-adq")
    (pack,) = (root / ".git" / "objects" / "pack").glob("*.pack")
    data = pack.read_bytes()
    (folder / "tmp_pack_x7").write_bytes(data[: len(data) - 20])


def git_carved(source: bytes, folder: Path) -> None:
    root = _repository(source, folder)
    git(root, "repack", "-adq")
    (pack,) = (root / ".git" / "objects" / "pack").glob("*.pack")
    (folder / "disk.img").write_bytes(b"\0" * 700 + pack.read_bytes()[12:])


def git_stash(source: bytes, folder: Path) -> None:
    root = _repository(b"x = 1\n", folder)
    (root / "module.py").write_bytes(source)
    git(root, "stash", "-q")
    git(root, "stash", "drop", "-q")
    _keep(root, folder)


HISTORIES = (git_loose, git_packed, git_deltas, git_bundle, git_torn_pack, git_carved, git_stash)
