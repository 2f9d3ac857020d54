"""Durable folders: made under a temporary name, flushed, renamed; made once where several processes want the same."""

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
    """Flush every file and folder below ``folder``, and ``folder`` itself.

    Uses Linux's ``syncfs`` (one call for the whole file system): a layer of an environment has thousands of files.
    Elsewhere each one is flushed by itself.
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

    Raises ``OSError`` where ``target`` exists already and is not empty.
    """
    sync_tree(folder)
    folder.rename(target)
    sync(target.parent)


@contextmanager
def temporary_folder_beside(folder: Path) -> Iterator[Path]:
    """A new folder (mode 755) beside ``folder``, for :func:`publish_folder`; removed when the block ends."""
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
    """``folder``, made by ``make`` unless it is complete already; processes that want it at once wait for one of them.

    ``make`` is given an empty folder beside the final one, which is flushed and renamed when it returns. A folder that
    is there and not complete is replaced. What ``make`` raises is raised, and nothing is left behind.
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
