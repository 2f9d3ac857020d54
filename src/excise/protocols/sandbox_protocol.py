"""Sandboxes: how untrusted code is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from excise.types import (
    Worker,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a sandbox may use. A limit that the host cannot enforce is an error unless ``lenient``."""

    network: bool = False
    """Whether the network is reachable (only ever for installing)."""
    memory_bytes: int = 4 << 30
    """Resident memory of all processes together."""
    pids: int = 256
    """Processes and threads."""
    cpus: float | None = None
    """Cores' worth of CPU time that all processes together get; ``None`` for as much as there is."""
    disk_bytes: int = 2 << 30
    """Bytes that may be written to all writable mounts and temporary folders together."""
    output_bytes: int = 8 << 20
    """Bytes of stdout and of stderr that are kept; the rest is read and thrown away."""
    lenient: bool = False
    """Run even where a limit cannot be enforced. A backend can also be made lenient for all its sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder inside the sandbox."""

    target: str
    """Absolute path inside."""
    layers: tuple[str, ...]
    """Host folders, topmost first; never changed."""
    writable: bool = False
    """Writes go to the session's own upper layer, which is lost at the end unless snapshotted."""
    live: bool = False
    """The one layer is shared as it is at any time (it holds a socket), never copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """What became of one command."""

    worker: Worker
    """``ok`` when the command ended by itself, whatever its exit code."""
    rc: int
    """Exit code; negative signal number if killed by one."""
    stdout: bytes
    """At most ``Policy.output_bytes``."""
    stderr: bytes
    """Likewise."""
    wall_s: float
    """Wall seconds."""
    cpu_s: float
    """CPU seconds of the process and all its waited-for children."""
    peak_bytes: int = 0
    """Peak memory, where the host tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a sandbox backend can enforce on this machine."""

    available: bool
    """It can be used at all."""
    detail: str = ""
    """Why not, or what it is."""
    how: Mapping[str, str] = field(default_factory=dict)
    """What it enforces and how: ``network_off, memory, pids, cpus, disk, syscalls, separate_uid, kernel`` (its own)."""
    snapshot: bool = False
    """Sessions can be snapshotted into layers, and forked."""
    system_packages: bool = False
    """The distribution's packages can be added to the root file system."""
    advice: str = ""
    """What to do about what is missing."""


class Session(Protocol):
    """One open sandbox. Leaving the ``with`` block kills and removes everything in it."""

    out: Path
    """Host folder that is ``/excise/out`` inside; the one place results come out of."""

    def __enter__(self) -> Session: ...
    def __exit__(self, *exc: object) -> None: ...

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a command. At the timeout everything it started is killed.

        Raises :class:`SandboxError` if the sandbox itself fails.
        """
        ...

    def put(self, path: str, data: bytes | None) -> None:
        """Write a file inside a writable mount (``None`` deletes it)."""
        ...

    def get(self, path: str) -> bytes:
        """Read a file inside. Raises ``FileNotFoundError``."""
        ...

    def snapshot(self, target: str, into: Path) -> None:
        """Copy what was written to the mount ``target`` into the host folder ``into``, as a layer."""
        ...

    def fork(self) -> Session:
        """A second session that begins with what was written to this one's mounts so far; each goes on by itself."""
        ...

    def diff(self, target: str) -> bytes:
        """What was written to the mount ``target``, as a patch that ``git apply`` takes."""
        ...

    def close(self) -> None:
        """End the session; safe to call twice."""
        ...


class Sandbox(Protocol):
    """A way to run untrusted code: bubblewrap, Docker."""

    name: str

    def capabilities(self) -> Capabilities:
        """What it can enforce here."""
        ...

    def system(self) -> str:
        """Name of the root file system, part of every environment's identity; empty for this host's own as it is."""
        ...

    def open(
        self,
        mounts: Sequence[Mount],
        policy: Policy,
        *,
        env: Mapping[str, str],
        cwd: str = "/testbed",
        edits: Mapping[str, bytes | None] | None = None,
        system_packages: Sequence[str] = (),
    ) -> Session:
        """Open a session.

        ``edits`` (absolute path inside a writable mount to new content, ``None`` to delete) are made before any code
        of the project runs. A backend that can adds the distribution's ``system_packages``. Raises
        :class:`SandboxError`, also for a limit that cannot be enforced, and :class:`EnvironmentFailure`
        (``missing_system_lib``) for packages that cannot be had.
        """
        ...
