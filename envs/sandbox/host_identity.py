"""Identity and state of the host's system, for cache keys."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from excise.envs.interpreters import find_interpreters
from excise.protocols import Sandbox

_DATABASES = ("/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite", "/var/lib/pacman/local", "/lib/apk/db/installed")
_FOLDERS = ("/usr/lib", "/usr/local/lib", "/usr/local/bin", "/usr/local/include", "/usr/include", "/usr/bin")


@cache
def rootfs_identity() -> str:
    """Distribution, release and C library of the system that sandboxes see: ``debian-12-glibc-2.36``."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    library, version = platform.libc_ver()
    return f"{release.get('ID', 'linux')}-{release.get('VERSION_ID', '')}-{library}-{version}"


def system_identity(sandbox: Sandbox) -> tuple[str, str, str]:
    """Return what compiled files depend on besides the interpreter: host system, backend, and the backend's system."""
    return rootfs_identity(), sandbox.name, sandbox.system()


def host_state(databases: Sequence[str] = _DATABASES, folders: Sequence[str] = _FOLDERS) -> str:
    """Return a hash that changes when an interpreter, a library or a program is installed on the host.

    Cached failures that something missing on the host may have caused are retried after a change.
    """
    digest = hashlib.sha256(repr([i.version for i in find_interpreters()]).encode())
    for name in (*databases, *folders):
        try:
            facts = Path(name).stat()
        except OSError:
            continue
        digest.update(f"{name} {facts.st_mtime_ns} {facts.st_size}".encode())
    return digest.hexdigest()[:16]
