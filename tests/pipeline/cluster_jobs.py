"""Jobs for the workers of a test cluster; each does something once in a folder that all workers see."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

from excise.config import Settings


def where(settings: Settings, source: str, folder: Path | str) -> tuple[str, int, str]:
    """The machine that does the job, its process, and its cache."""
    return os.environ["HOME"], os.getpid(), str(settings.cache)


def dies_once(settings: Settings, source: str, folder: str) -> str:
    """Kill the worker, the first time."""
    if _first_time(folder, source):
        os.kill(os.getpid(), signal.SIGKILL)
    return os.environ["HOME"]


def hangs_once(settings: Settings, source: str, folder: str) -> str:
    """Never end, the first time."""
    while _first_time(folder, source):
        Path(folder, f"{source}.hung").touch()
        time.sleep(3600)
    return os.environ["HOME"]


def has_no_space_once(settings: Settings, source: str, folder: str) -> str:
    """Fail for want of disk space, the first time."""
    if _first_time(folder, source):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere")
    return os.environ["HOME"]


def _first_time(folder: str, name: str) -> bool:
    try:
        Path(folder, name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
