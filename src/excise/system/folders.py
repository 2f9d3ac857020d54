"""Atomic, durable creation of folders, once if several processes need the same one."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from excise.system.files import sync
from excise.system.locks import folder_lock


def sync_tree(folder: Path) -> None:
    """Flush ``folder`` and everything below it to the disk.

    On Linux one call of ``syncfs`` flushes the whole file system, since a layer of an environment has thousands of
    files; elsewhere each file is flushed by itself.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if _syncfs is not None and _syncfs(descriptor) == 0:
            return
    finally:
        os.close(descriptor)
    for path in folder.rglob("*"):
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            sync(path)
    sync(folder)


_syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


def publish_folder(folder: Path, target: Path) -> None:
    """Flush a finished folder and rename it to ``target``, on the same file system.

    Raises ``OSError`` if ``target`` exists and is not empty.
    """
    sync_tree(folder)
    folder.rename(target)
    sync(target.parent)


@contextmanager
def temporary_folder_beside(folder: Path) -> Iterator[Path]:
    """Make a folder (mode 755) in the parent of ``folder``, for :func:`publish_folder`; removed when the block ends."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    work.chmod(0o755)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def make_folder_once(
    folder: Path, make: Callable[[Path], None], *, is_complete: Callable[[Path], bool] = Path.is_dir
) -> Path:
    """Make ``folder`` by calling ``make``, unless it is complete already, and return it.

    ``make`` gets an empty temporary folder, which is flushed and renamed to ``folder`` when it returns. An incomplete
    ``folder`` is replaced. Of several processes that call this at once, one calls ``make`` and the others wait. If
    ``make`` raises, the temporary folder is removed.
    """
    if is_complete(folder):
        return folder
    with folder_lock(folder):
        if not is_complete(folder):
            with temporary_folder_beside(folder) as work:
                make(work)
                shutil.rmtree(folder, ignore_errors=True)
                publish_folder(work, folder)
    return folder
