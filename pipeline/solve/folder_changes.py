"""What a program changed in a folder of the host: a diff of hostile content, read without following any link."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import stat
import tempfile
from pathlib import Path

from excise.envs.sandbox.session_base import diff_folders
from excise.verifiers.grading.intake import MAX_DIFF_BYTES
from excise.verifiers.shipped_tree import scrubbed

MAX_CHANGED_BYTES = 32 << 20
"""Maximum size of all changed files together, before and after."""
MAX_CHANGED_FILES = 10_000
"""Maximum number of changed files."""
MAX_ENTRIES = 500_000
"""Maximum number of files and links in the folder."""


class TooManyChanges(Exception):
    """The changes are too large for a diff that a grader could accept."""


def folder_diff(before: Path, after: Path, language: str) -> str:
    """The diff of two folders, without ``.git`` and artefacts; cut off above the grader's limit.

    Special files count as missing. Folders that the program made unreadable are made readable. Raises
    :class:`TooManyChanges`, and :class:`SandboxError` if the folders cannot be compared.
    """
    old, new = _files(before), _files(after)
    changed = [path for path in old.keys() | new.keys() if _differs(old.get(path), new.get(path))]
    changed = sorted(frozenset(changed) - scrubbed(changed, language))
    sizes = (found.lstat().st_size for path in changed for found in (old.get(path), new.get(path)) if found)
    if len(changed) > MAX_CHANGED_FILES or sum(sizes) > MAX_CHANGED_BYTES:
        raise TooManyChanges
    with tempfile.TemporaryDirectory(prefix="excise-changes-") as scratch:
        for name, files in (("a", old), ("b", new)):
            (Path(scratch) / name).mkdir()
            for path in changed:
                if path in files:
                    _copy(files[path], Path(scratch, name, path))
        return diff_folders(Path(scratch))[: MAX_DIFF_BYTES + 1].decode("utf-8", "surrogateescape")


def _files(root: Path) -> dict[str, Path]:
    """Relative path to regular files and links below a folder. A folder that is a link or missing has none."""
    found: dict[str, Path] = {}
    if root.is_symlink() or not root.is_dir():
        return found
    below = [root]
    while below:
        folder = below.pop()
        with contextlib.suppress(OSError):
            folder.chmod(stat.S_IMODE(folder.lstat().st_mode) | 0o700)
        with os.scandir(folder) as entries:
            for entry in entries:
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    if folder != root or entry.name != ".git":
                        below.append(path)
                elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                    found[path.relative_to(root).as_posix()] = path
                    if len(found) > MAX_ENTRIES:
                        raise TooManyChanges
    return found


def _differs(one: Path | None, other: Path | None) -> bool:
    if one is None or other is None:
        return True
    if one.is_symlink() or other.is_symlink():
        return not (one.is_symlink() and other.is_symlink() and os.readlink(one) == os.readlink(other))
    first, second = one.lstat(), other.lstat()
    if first.st_size != second.st_size or (first.st_mode ^ second.st_mode) & 0o100:
        return True
    _make_readable(other)
    return not filecmp.cmp(one, other, shallow=False)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    _make_readable(source)
    shutil.copyfile(source, target, follow_symlinks=False)
    if not target.is_symlink():
        target.chmod(0o755 if source.lstat().st_mode & 0o100 else 0o644)


def _make_readable(path: Path) -> None:
    if not path.is_symlink() and not os.access(path, os.R_OK):
        with contextlib.suppress(OSError):
            path.chmod(stat.S_IMODE(path.lstat().st_mode) | 0o400)
