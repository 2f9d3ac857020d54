"""Sandboxes, in which untrusted code runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

from excise.types import WorkerOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits of a sandbox. A limit that the host cannot enforce is an error unless ``lenient``."""

    network: bool = False
    """Whether the network is reachable; only installations use it."""
    memory_bytes: int = 4 << 30
    """Most bytes of resident memory of all processes together."""
    pids: int = 256
    """Most processes and threads."""
    cpus: float | None = None
    """CPU cores that all processes together may use; ``None`` for no limit."""
    disk_bytes: int = 2 << 30
    """Most bytes in all writable mounts and temporary folders together."""
    output_bytes: int = 8 << 20
    """Most bytes of stdout and of stderr that are kept; the rest is discarded."""
    lenient: bool = False
    """Run even if a limit cannot be enforced. A backend can also be lenient for all its sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder inside the sandbox."""

    target: str
    """Absolute path inside the sandbox."""
    layers: tuple[str, ...]
    """Folders of the host, the topmost layer first; they are never changed."""
    writable: bool = False
    """Whether the sandbox may write. Writes go to a layer of the session, which is discarded unless snapshotted."""
    live: bool = False
    """Whether the mount is a live view of its only layer, a host folder or file, instead of a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRequest:
    """What the ``/usr`` of a sandbox contains, besides the programs that all sandboxes have."""

    packages: tuple[str, ...] = ()
    """Packages of the distribution to add, if the backend can."""
    paths: tuple[str, ...] = ()
    """Compiled files, and folders with some, whose shared libraries are needed: those of an interpreter. The ones
    below ``/usr`` are added too."""
    building: bool = False
    """Whether programs are needed that build packages, such as compilers."""


class Start(Enum):
    """How the process of a test run begins. The later ones are cheaper, and serve fewer runs."""

    FRESH = "fresh"
    """As a process of its own."""
    FORKED = "forked"
    """By a fork of a process that has imported the test runner."""
    COLLECTED = "collected"
    """By a fork of a process that has collected the untouched suite. It is refused if an edit needs a fresh import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkServer:
    """A command that a backend may start once and fork for each ``exec`` of it, instead of starting it every time.

    The backend adds the arguments ``--serve N`` to the command and runs it as process 1 of a sandbox, in the session's
    directory. The command prepares what all its runs have in common and then speaks JSON lines on socket number N:

    =========  ======================================================================  ==============================
    sender     line                                                                    meaning
    =========  ======================================================================  ==============================
    command    ``{"ready": true}``, or ``{"ready": false, "reason": …}``               whether it can serve runs
    backend    ``{"env": {…}, "cwd": …, "edited": [path, …]}`` with stdin, stdout,     a run; its mounts are fresh
               stderr as descriptors
    command    ``{"refused": reason}``                                                 the run needs its own process
    command    ``{"status": wait status, "cpu_s": …, "reusable": …}``                  the run has ended entirely
    =========  ======================================================================  ==============================

    Between runs, the backend replaces the content of all writable mounts and of the temporary folders.
    """

    argv: tuple[str, ...]
    """The command."""
    env: Mapping[str, str]
    """Variables of each ``exec`` of the command, in addition to those of the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The result of one command."""

    worker: WorkerOutcome
    """``ok`` if the command ended by itself, with any exit code."""
    rc: int
    """Exit code; for a command that a signal killed, the negative signal number."""
    stdout: bytes
    """Standard output, at most ``Policy.output_bytes``."""
    stderr: bytes
    """Standard error, at most ``Policy.output_bytes``."""
    wall_s: float
    """Wall seconds of the command."""
    cpu_s: float
    """CPU seconds of the process and all its waited-for children."""
    peak_bytes: int = 0
    """Peak memory in bytes; 0 if the host does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a sandbox backend can enforce on this machine."""

    available: bool
    """Whether the backend can be used."""
    detail: str = ""
    """Why it cannot be used, or its version."""
    how: Mapping[str, str] = field(default_factory=dict)
    """Name of each enforced limit to its mechanism. Names: ``network_off``, ``memory``, ``pids``, ``cpus``, ``disk``,
    ``syscalls``, ``separate_uid``, and ``kernel`` if sandboxes have a kernel of their own."""
    snapshot: bool = False
    """Whether sessions can be snapshotted to layers, and forked."""
    system_packages: bool = False
    """Whether packages of the distribution can be added to the root file system."""
    advice: str = ""
    """How the user can get missing capabilities."""


class Session(Protocol):
    """One open sandbox. Leaving the ``with`` block kills and removes everything in it."""

    out: Path
    """Host folder that is ``/excise/out`` inside: the only place from which results are read."""
    forks: bool
    """Whether the command of a fork server is forked here; otherwise it is started like any other."""

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
        """Run a command. After ``timeout_s`` wall seconds, the command and all its processes are killed.

        Raises :class:`SandboxError` if the sandbox itself fails.
        """
        ...

    def put(self, path: str, data: bytes | None) -> None:
        """Write a file in a writable mount; ``None`` deletes it."""
        ...

    def get(self, path: str) -> bytes:
        """Read a file of the sandbox. Raises ``FileNotFoundError``."""
        ...

    def snapshot(self, target: str, into: Path) -> None:
        """Copy the changes in the mount ``target`` to the host folder ``into``, as a layer."""
        ...

    def fork(self) -> Session:
        """A second, independent session that begins with the changes in this one's mounts."""
        ...

    def diff(self, target: str) -> bytes:
        """The changes in the mount ``target``, as a patch for ``git apply``."""
        ...

    def close(self) -> None:
        """End the session; safe to call twice."""
        ...


class Sandbox(Protocol):
    """A backend for sandboxes, such as bubblewrap or Docker."""

    name: str

    def capabilities(self) -> Capabilities:
        """The limits that this backend can enforce on this machine."""
        ...

    def system(self) -> str:
        """Name of the root file system, part of every environment's identity; empty for the host's own."""
        ...

    def open(
        self,
        mounts: Sequence[Mount],
        policy: Policy,
        *,
        env: Mapping[str, str],
        cwd: str = "/testbed",
        edits: Mapping[str, bytes | None] | None = None,
        system: SystemRequest | None = None,
        fork_server: ForkServer | None = None,
    ) -> Session:
        """Open a session.

        ``edits`` maps absolute paths in writable mounts to new contents (``None``: delete the file); they are made
        before any code of the project runs. ``system`` says what ``/usr`` contains. ``fork_server`` is a command that
        is to be run in many such sessions; backends without fork servers ignore it. Raises :class:`SandboxError`, also
        for a limit that cannot be enforced, and :class:`EnvironmentFailure` (``missing_system_lib``) for packages that
        cannot be installed.
        """
        ...
