"""Advisory file locks between processes (``flock``). The kernel releases a lock when its process ends.

===================== ========================================== =============================
lock                  protects                                   when another process holds it
===================== ========================================== =============================
:func:`exclusive`     a file or folder with one writer           raises, and names the process
:func:`folder_lock`   a folder of the cache while it is made     waits
:func:`host_lock`     a resource of this machine, by its name    waits
:func:`lease`         a file that readers use, from removal      shares it
:func:`unleased`      a file that is to be removed               says so
===================== ========================================== =============================
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from excise.errors import StoreError
from excise.system.files import store_errors


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` for the block, without waiting.

    Raises :class:`StoreError` if another process holds it (reason ``locked``; the message names the process), or if the
    file cannot be written.
    """
    with store_errors("lock the task set"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"{path.parent} is being written by {_owner(descriptor)}. Wait for it to end, or end it.",
                reason="locked",
            ) from None
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat("T", "seconds")}
        with store_errors("lock the task set"):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(owner).encode(), 0)
        yield
    finally:
        os.close(descriptor)


class Lease:
    """A shared lock that is held as long as this object exists; the file is not removed meanwhile."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        """A copy, or this object in another process, holds nothing."""
        return _no_lease, ()


def _no_lease() -> None:
    return None


def lease(path: Path) -> Lease | None:
    """Share the lock of ``path`` with all of its readers; ``None`` where the file system has no locks.

    Raises :class:`FileNotFoundError` if the file is being removed.
    """
    held = Lease(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    try:
        fcntl.flock(held._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileNotFoundError(errno.ENOENT, "is being removed", str(path)) from None
    except OSError:
        return None
    if os.fstat(held._descriptor).st_nlink == 0:
        raise FileNotFoundError(errno.ENOENT, "was removed", str(path))
    return held


@contextmanager
def unleased(path: Path) -> Iterator[bool]:
    """Whether nobody holds a lease on ``path``; then nobody gets one in the block, either."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_free = False
        except OSError:  # the file system has no locks
            is_free = True
        else:
            is_free = True
        yield is_free
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file ``path`` right now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def waiting_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock file ``path`` for the block; waits until it is free.

    Without ``wait`` the block also runs if the lock is taken; the yielded value is whether this process holds it.
    """
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which need not exist; waits until it is free.

    The parent folder is made, with a mode that lets other users open what is in it but not list it: layers are
    readable by all users, because sandboxes run under uids of their own, and only their names protect them.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o711)
    with waiting_lock(folder.with_name(f"{folder.name}.lock")):
        yield


def host_folder() -> Path:
    """The folder for locks and cached facts about this machine; one per user (mode 700), in the temporary folder."""
    folder = Path(tempfile.gettempdir()) / f"excise-host.{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        folder = Path(tempfile.mkdtemp(prefix="excise-host."))
    return folder


@contextmanager
def host_lock(name: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold a named lock shared by all processes of this user on this machine; see :func:`waiting_lock`."""
    with waiting_lock(host_folder() / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.lock", wait=wait) as held:
        yield held


def _owner(descriptor: int) -> str:
    try:
        owner = json.loads(os.pread(descriptor, 1000, 0))
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
