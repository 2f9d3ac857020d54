"""The interfaces that extensions implement. Read this file and you know the program.

Implementations are duck-typed and found by name in the registry of their folder
(``extractors.sources``, ``extractors.languages``, ``envs.sandboxes``, ``deleters``, ``verifiers.gates.all_gates``,
``datasets.exports``): adding one is one new file and one line in that registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from excise.types import CoverageMap, Deletion, Feature, Repo, SourceSpec, Status, Symbol, TestRun, Verdict, Worker

if TYPE_CHECKING:
    from excise.grading_protocols import Grading
    from excise.types import Recipe


# ---------------------------------------------------------------------------------------- sources
@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A source on disk: pristine files, no version control, nothing of it run."""

    repo: Repo
    """The snapshot's record (``tree`` and ``blob`` are filled in by the stage)."""
    root: Path
    """Folder with the files."""


class Source(Protocol):
    """Where repositories come from: git, a PyPI sdist, a directory, an archive, a Debian source."""

    name: str

    def matches(self, spec: SourceSpec) -> bool:
        """Whether this source understands ``spec.spec``."""
        ...

    def resolve(self, spec: SourceSpec, cache: Path) -> str:
        """The pinned form of ``spec.spec`` as of now (cheap; may ask the network).

        Equal answers mean equal content, so a refresh does nothing. Raises :class:`SourceError`.
        """
        ...

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:
        """Put the files of a pinned source into the empty folder ``into``.

        Never runs code of the project. Raises :class:`SourceError`.
        """
        ...


# --------------------------------------------------------------------------------------- language
@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One parsed source file."""

    path: str
    """Path inside the repository."""
    source: bytes
    """Its bytes."""
    symbols: tuple[Symbol, ...]
    """Definitions in order of ``start``; the first is the module itself."""
    has_error: bool = False
    """The parser met a syntax error: nothing is deleted here."""


class Codebase(Protocol):
    """All parsed files of a repository and who refers to what; made by a :class:`Language`."""

    @property
    def modules(self) -> Mapping[str, Module]:
        """Path to parsed file."""
        ...

    def symbols(self) -> Mapping[str, Symbol]:
        """Symbol id to symbol, tests included."""
        ...

    def is_test(self, path: str) -> bool:
        """Whether the file belongs to the tests (test files, conftest, their helpers)."""
        ...

    def callees(self, symbol_id: str) -> frozenset[str]:
        """Symbols that the body of this one refers to, as far as names can be resolved."""
        ...

    def callers(self, symbol_id: str) -> frozenset[str]:
        """Symbols that refer to this one (module ids for references at module level)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRunRequest:
    """Which tests to run, and how; the answer is a :class:`~excise.types.TestRun`."""

    __test__ = False

    ids: Sequence[str] | None = None
    """Ids of the tests to run, ``None`` for all. One that does not report gets the status ``MISSING``."""
    excluded: Sequence[str] = ()
    """Ids of tests that are never run."""
    shuffle_seed: int | None = None
    """Seed of a random order of the tests; ``None`` keeps the order of the project."""
    load_stress: bool = False
    """Imitate a busy machine: pause the interpreter at random, so that tests that depend on timing fail."""
    timeout_s: float = 600.0
    """Wall seconds for the whole run."""
    test_timeout_s: float = 60.0
    """Wall seconds for each test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageRequest:
    """Which tests to run under coverage, and how; the answer is a :class:`~excise.types.CoverageMap`."""

    env_id: str
    """Environment, as recorded in the map."""
    timeout_s: float
    """Wall seconds for the whole run."""
    test_timeout_s: float = 60.0
    """Wall seconds for each test."""
    fork: bool = True
    """Run each test in a forked process of its own. Without, all tests share one process: faster where starting is
    slow, but code whose result an earlier test cached is not seen to run."""
    ids: Sequence[str] | None = None
    """Ids of the tests to map, ``None`` for all."""
    slow: Sequence[str] = ()
    """Ids of long tests: measured by the collector that takes longer to start and then runs faster."""


class Language(Protocol):
    """One programming language: parsing, running tests, mapping coverage."""

    name: str
    suffixes: tuple[str, ...]
    inside: Path
    """Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""

    @property
    def grading(self) -> Grading:
        """How graders run the tests of this language."""
        ...

    def parse(self, root: Path, paths: Iterable[str], tests: Iterable[str] = (), names: Iterable[str] = ()) -> Codebase:
        """Parse those of the files ``paths`` (relative to ``root``) that can be read.

        ``tests`` are known test ids, and ``names`` the import names that the project installs: both tell files of the
        tests from the project's code.
        """
        ...

    def run_tests(self, session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
        """Run tests in an open sandbox. Never raises for what tests do."""
        ...

    def map_coverage(
        self, session: Session, recipe: Recipe, codebase: Codebase, request: CoverageRequest
    ) -> tuple[CoverageMap, dict[str, Status]]:
        """Run every requested test on its own under coverage and map lines to symbols.

        Also returns the status of each test when it ran alone. Raises :class:`EnvironmentFailure`.
        """
        ...


# ---------------------------------------------------------------------------------------- sandbox
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


# ---------------------------------------------------------------------------------------- deleter
class Deleter(Protocol):
    """Takes a feature out of a codebase; the rest stays byte-identical."""

    name: str
    version: int

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """Plan the deletion of ``feature`` (of the symbols in ``only`` alone, while delta-debugging).

        ``hide`` are the test ids to take out of the visible tests; the predicted tests if empty.
        Raises :class:`DeletionRefused` with a machine-readable reason.
        """
        ...


# ------------------------------------------------------------------------------------------ gates
@dataclass(slots=True, kw_only=True)
class GateReport:
    """What a gate returns: verdict rows, and whether the candidate may go on."""

    verdicts: list[Verdict] = field(default_factory=list)
    """One row per run."""

    @property
    def passed(self) -> bool:
        """Every verdict passed."""
        return all(v.outcome.value == "PASSED" for v in self.verdicts)


class Gate(Protocol):
    """One condition that a task must meet, proved by execution. The subject is ``verifiers.candidate.Candidate``."""

    name: str
    claim: str

    def check(self, candidate: object) -> GateReport:
        """Prove or refute the claim in fresh sandboxes."""
        ...


# ---------------------------------------------------------------------------------------- exports
class Exporter(Protocol):
    """Writes a task set in another tool's format."""

    name: str

    def export(self, rows: Iterator[Mapping[str, object]], into: Path) -> None:
        """Write ``rows`` (task rows with all columns) into the folder ``into``."""
        ...
