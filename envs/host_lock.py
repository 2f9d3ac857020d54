"""Locks between all processes of one user on this machine."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def host_folder() -> Path:
    """Where findings about this machine, and locks, are kept; one folder per user, closed to others."""
    folder = Path(tempfile.gettempdir()) / f"excise-host.{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        folder = Path(tempfile.mkdtemp(prefix="excise-host."))
    return folder


@contextmanager
def host_lock(name: str) -> Iterator[None]:
    """Hold the lock of that name; released when its process ends, however that happens."""
    path = host_folder() / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.lock"
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
