"""Atomic, durable writes of files.

A file is written under a temporary name in the same folder, flushed to the disk and renamed; then the folder is
flushed. A reader sees the old content or the new one, never a part; a crash or a power failure loses at most the
temporary file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from excise.errors import StoreError

_ADVICE = {
    errno.ENOSPC: ("disk_full", "the disk is full; free some space and run the same command again"),
    errno.EDQUOT: ("disk_full", "the disk quota is used up; free some space and run the same command again"),
    errno.EACCES: ("no_permission", "permission denied; check who owns the folder, or choose another one"),
    errno.EPERM: ("no_permission", "not permitted; check who owns the folder, or choose another one"),
    errno.EROFS: ("no_permission", "the file system is read-only; choose another folder"),
    errno.ENOTDIR: ("not_a_folder", "a part of the path is a file, not a folder; choose another folder"),
    errno.EEXIST: ("not_a_folder", "something else of that name is in the way; choose another folder"),
}

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NUMBERS, _WORDS = "|".join(map(str, _FULL)), "|".join(map(os.strerror, _FULL))
_FULL_DISK = re.compile(
    rf"\[Errno (?:{_NUMBERS})\] |OSError\((?:{_NUMBERS}), "
    rf"|(?:{_WORDS}|Out of diskspace)[\s.,;:'\")]*(?:\((?:os error )?\d+\)[\s.'\")]*)?$",
    re.IGNORECASE | re.MULTILINE,
)
"""How messages of programs begin or end when a disk is full; the last words are git's."""


def tells_full_disk(text: str) -> bool:
    """Whether an error's message says that a disk is full: names of files may have the words, too."""
    return _FULL_DISK.search(text) is not None


def is_disk_full(reason: str, detail: str) -> bool:
    """Whether an error is one of a full disk, by its reason or its message."""
    return reason == "disk_full" or tells_full_disk(detail)


@contextmanager
def store_errors(action: str) -> Iterator[None]:
    """Turn an ``OSError`` into a :class:`StoreError` that names the file and says what to do.

    ``action`` completes the sentence "Cannot …", for example ``"write the task set"``.
    """
    try:
        yield
    except OSError as error:
        reason, advice = _ADVICE.get(error.errno or 0, ("store_error", error.strerror or str(error)))
        name = error.filename2 if reason == "disk_full" and error.filename2 else error.filename  # a copy has both
        where = f" ({name})" if name else ""
        raise StoreError(
            f"Cannot {action}{where}: {advice}. What was published before is intact.", reason=reason
        ) from error


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write and flush a file directly, without a temporary name; for folders that are renamed or published later."""
    with path.open("wb") as file:
        file.writelines(chunks)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Write a file atomically. Makes the parent folder if needed."""
    with replacement(path) as file:
        file.write(data)


def replace_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines (given without line ends) to a file atomically; see :func:`replace_file`."""
    with replacement(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


@contextmanager
def replacement(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary binary file that is renamed to ``path`` when the block ends, and removed if the block raises."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync(path.parent)


def replace_link(link: Path, target: str) -> None:
    """Point a symbolic link at ``target`` atomically."""
    temporary = link.with_name(f".{link.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)
    sync(link.parent)


def link_or_copy(source: Path, target: Path) -> None:
    """Make ``target`` a hard link to ``source``, or a flushed copy if the file system supports no such link."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP):
            raise
        part = target.with_name(f".{target.name}")  # the file in its place is whole, also after Ctrl-C
        shutil.copy2(source, part)
        sync(part)
        part.replace(target)


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
