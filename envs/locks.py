"""Folders of the cache that several workers may want to make at once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that may not exist yet: whoever waits finds it made."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o711)  # layers are open to all: keep other users out of their names at least
    with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
        flock(lock, LOCK_EX)
        yield


@contextmanager
def scratch_beside(folder: Path) -> Iterator[Path]:
    """A folder beside the final one; gone afterwards, whatever happened."""
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    work.chmod(0o755)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
