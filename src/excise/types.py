"""The records that travel between stages.

Every record is frozen, has a docstring under each field, and serialises to JSON by
:func:`to_json` / :func:`from_json`. Identity is by content: :func:`content_id`.
Two outcome axes are never mixed: :class:`Worker` says whether the run happened,
:class:`Status` what a test said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

SCHEMA_VERSION = 4
"""Version of the records and of the Parquet schema made from them. History in docs/schema.md."""

T = TypeVar("T")


class Worker(StrEnum):
    """Did the run happen? Only ``OK`` lets the test statuses mean anything."""

    OK = "ok"
    TIMEOUT = "timeout"
    OOM = "oom"
    INFRA_ERROR = "infra_error"
    KILLED = "killed"


class Status(StrEnum):
    """What one test said. A missing test counts as failed, never as passed."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    ERROR = "ERROR"
    XFAIL = "XFAIL"
    MISSING = "MISSING"


class Outcome(StrEnum):
    """What a gate concluded from the statuses."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    UNDECIDED = "UNDECIDED"
    """The worker did not run to its end, so nothing is known about the task."""


class Visibility(StrEnum):
    """How much the agent is given, from most to least."""

    TESTS = "tests"
    SAMPLE_TESTS = "sample_tests"
    DOCSTRING = "docstring"
    SIGNATURE = "signature"
    BEHAVIOUR = "behaviour"


class SymbolKind(StrEnum):
    """The kind of a definition."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    MODULE = "module"


class FeatureKind(StrEnum):
    """The shape of a feature; the rungs of the ladder."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    MODULE = "module"
    MULTI = "multi"
    """Several entry symbols of one file."""
    CROSS_FILE = "cross_file"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """One line of a sources file: where a repository comes from, and what to do with it."""

    spec: str
    """``pypi:name[==version]``, a git URL or path (``git+…``, ``…@rev``), a directory, an archive."""
    limit: int | None = None
    """At most this many tasks from this source; ``None`` takes the run's limit."""
    python: str | None = None
    """Interpreter to use, for example ``3.11``; ``None`` chooses from the manifests."""
    subdir: str = ""
    """Where the project lies inside the repository."""
    extras: tuple[str, ...] = ()
    """Extras to install beside those found."""
    requirements: tuple[str, ...] = ()
    """Requirements to install beside those found."""
    test_args: tuple[str, ...] = ()
    """Arguments for the test runner beside those found."""

    @property
    def name(self) -> str:
        """What identifies the source between runs: as the user wrote it, with its subfolder."""
        return f"{self.spec}#subdirectory={self.subdir.strip('/')}" if self.subdir else self.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """A snapshot of one project's sources."""

    repo: str
    """Name of the project: ``owner/name`` of a forge, else the distribution's or folder's name."""
    base_commit: str
    """The upstream commit; for sources without git, of the import commit (fixed author and date)."""
    tree: str
    """git tree hash of the pristine sources, caches and leftovers left out: the identity of the content."""
    language: str = "python"
    """Name of the language adapter."""
    version: str = ""
    """Version of the project, where known."""
    license: str = ""
    """SPDX expression or the text found in the manifest; empty if unknown."""
    source: str
    """The resolved, pinned source (``pypi:name==1.2``, ``git+URL@commit``, …): fetch it again with this."""
    sha256: str = ""
    """Hash of the downloaded archive, where there is one."""
    created_at: str = ""
    """ISO-8601 UTC time of the commit or release; empty if unknown."""
    blob: str = ""
    """sha256 of the archive of the pristine sources in the blob store."""
    num_files: int = 0
    """Number of files of the snapshot."""
    num_bytes: int = 0
    """Their size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything needed to build an environment again; no path of any machine."""

    python: str
    """Full version of the interpreter, for example ``3.12.1``."""
    requirements: tuple[str, ...] = ()
    """What is installed beside the project, as PEP 508 strings or ``-r file`` (inside the repository)."""
    constraints: tuple[str, ...] = ()
    """``name==version`` of the project's own lock file: what is installed of these, is installed so."""
    extras: tuple[str, ...] = ()
    """Extras of the project that are installed."""
    groups: tuple[str, ...] = ()
    """Dependency groups (PEP 735) that are installed."""
    editable: str = "editable"
    """How the project gets onto the path: ``editable`` (built as it asks), ``wheel`` (built as a wheel, of which the
    checkout is given what it lacks), ``legacy`` (built by an older setuptools in the environment itself) or ``path``
    (a ``.pth`` line only)."""
    roots: tuple[str, ...] = (".",)
    """Import roots inside the repository, for example ``src``."""
    packages: tuple[str, ...] = ()
    """Import names that must resolve into the checkout; dotted for packages inside a namespace."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of build and test runs."""
    test_args: tuple[str, ...] = ()
    """Arguments of the test runner."""
    test_paths: tuple[str, ...] = ()
    """Files and folders that hold the tests; empty: the runner's own discovery."""
    system_packages: tuple[str, ...] = ()
    """System packages that the manifests ask for."""
    cutoff: str = ""
    """Only releases before this ISO date were considered; empty: no limit."""
    build_network: bool = False
    """A build downloads something by itself, so that it is let onto the network (without credentials)."""
    commands: tuple[str, ...] = ()
    """bash lines that make the environment, run in the checkout in order, each with ``set -euo pipefail`` and with the
    network on; empty: it is installed from the fields above. A lock then binds the versions that they install."""
    mocks: tuple[tuple[str, str], ...] = ()
    """(path in the folder of mocks, content): stand-ins for what cannot be had, last on the import path."""
    evidence: tuple[str, ...] = ()
    """``file: what it said``, one line per decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An installed environment."""

    env_id: str
    """Content hash of interpreter, lock, recipe and source tree."""
    repo: str
    """Name of the project."""
    tree: str
    """Source tree it was built from."""
    recipe: Recipe
    """How it was built."""
    lock: tuple[str, ...]
    """``name==version`` of every installed distribution, sorted."""
    hashes: dict[str, str] = field(default_factory=dict)
    """Line of ``lock`` to the ``sha256:…`` of the files that may be installed for it, separated by spaces."""
    stage: str = "stage0"
    """Which installer made it: ``stage0`` (manifests alone) or ``model``."""
    shared_id: str = ""
    """Content hash of the third-party packages alone: equal for commits with equal manifests, which share them."""
    built_files: tuple[str, ...] = ()
    """Files that the build wrote into the checkout (metadata, compiled extensions)."""
    mocked: tuple[str, ...] = ()
    """Tests that touch a mock: no ground for tasks."""
    install_s: float = 0.0
    """Wall seconds of the build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """One test of one run."""

    __test__ = False

    test_id: str
    """pytest node id."""
    status: Status
    """What it said."""
    duration_s: float = 0.0
    """Wall seconds of set-up, call and tear-down."""
    message: str = ""
    """Exception type and first line for a failure; at most 300 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """The structured report of one run of the tests."""

    __test__ = False

    worker: Worker
    """Did the run happen?"""
    results: tuple[TestResult, ...] = ()
    """Every test that reported, in order."""
    collect_errors: tuple[tuple[str, str], ...] = ()
    """(file, message) of every file that could not be collected."""
    imported: tuple[tuple[str, str], ...] = ()
    """(top-level package, ``__file__`` as the tests saw it)."""
    finished: bool = False
    """The runner reached its own end (False after ``os._exit`` and kills)."""
    wall_s: float = 0.0
    """Wall seconds."""
    cpu_s: float = 0.0
    """CPU seconds of all processes."""
    detail: str = ""
    """What went wrong outside the tests; the tail of the output."""

    def statuses(self) -> dict[str, Status]:
        """Test id to status."""
        return {r.test_id: r.status for r in self.results}


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the untouched project's tests say, over N runs (one of them shuffled)."""

    env_id: str
    """Environment of the runs."""
    statuses: dict[str, Status]
    """Status of every test that agreed in all runs."""
    durations: dict[str, float]
    """Median seconds of each test."""
    flaky: dict[str, str]
    """Test id to why it is not trusted; used for nothing."""
    uncollected: dict[str, str] = field(default_factory=dict)
    """Test file that cannot be loaded to why; its tests count for nothing."""
    num_runs: int
    """N."""
    cpu_s: float
    """CPU seconds of one whole run (median)."""
    wall_s: float
    """Wall seconds of one whole run (median)."""
    starved: str = ""
    """Further runs that imitated a busy machine: how many, and how; empty if there were none."""

    def passing(self) -> tuple[str, ...]:
        """Ids that passed in every run, in stable order."""
        return tuple(sorted(t for t, s in self.statuses.items() if s is Status.PASSED))

    def left_out(self, min_s: float = 5.0) -> tuple[str, ...]:
        """Tests that count for nothing and take long (mostly, that hang): candidates are run without them."""
        counting = set(self.passing())
        return tuple(t for t, seconds in sorted(self.durations.items()) if seconds >= min_s and t not in counting)

    def suite_s(self) -> float:
        """Wall seconds of one whole run without :meth:`left_out`."""
        return max(0.0, self.wall_s - sum(self.durations[test] for test in self.left_out()))


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageMap:
    """Which test executes which symbol, each test measured on its own."""

    env_id: str
    """Environment of the run."""
    tests: tuple[str, ...]
    """Test ids; the sets below index into this."""
    by_symbol: dict[str, tuple[int, ...]]
    """Symbol id to the tests that execute a line of its body, sorted."""
    at_import: tuple[str, ...]
    """Symbols whose body runs at import or collection already."""
    unstable: tuple[str, ...] = ()
    """Tests whose verdict differs when run alone (they depend on order)."""
    cpu_s: float = 0.0
    """CPU seconds of the mapping run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A half-open byte range of a file."""

    path: str
    """Path inside the repository, with ``/``."""
    start: int
    """First byte."""
    end: int
    """One past the last byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """One definition, with exact byte spans."""

    path: str
    """File."""
    qualname: str
    """Dotted name inside the module; empty for the module itself."""
    kind: SymbolKind
    """function, method, class or module."""
    start: int
    """First byte, decorators included."""
    end: int
    """One past the last byte."""
    body_start: int
    """First byte of the first statement of the body (the docstring, if there is one)."""
    code_start: int
    """First byte of the first statement after the docstring; equals ``end`` if there is none."""
    start_line: int
    """First line, 1-based, decorators included."""
    end_line: int
    """Last line, 1-based."""
    body_line: int
    """First line of the first statement after the docstring; 0 if there is none."""
    signature: str = ""
    """``def name(args) -> type`` or ``class name(bases)``, one line, as written but for white space."""
    docstring: str = ""
    """Cleaned docstring."""
    decorators: tuple[str, ...] = ()
    """Source text of each decorator, without ``@``."""
    is_public: bool = True
    """No component of the qualified name starts with an underscore (dunder names count as public)."""
    is_async: bool = False
    """``async def``."""
    is_generator: bool = False
    """Contains ``yield`` of its own."""
    loc: int = 0
    """Lines that are neither blank nor comments, docstring excluded."""
    complexity: int = 1
    """McCabe's cyclomatic complexity: 1 + decision points."""

    @property
    def is_callable(self) -> bool:
        """A function or a method."""
        return self.kind in {SymbolKind.FUNCTION, SymbolKind.METHOD}

    @property
    def symbol_id(self) -> str:
        """``path::qualname``; the path alone for a module."""
        return f"{self.path}::{self.qualname}" if self.qualname else self.path

    @property
    def name(self) -> str:
        """Last component of the qualified name."""
        return self.qualname.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Symbols that belong together, and the tests that execute them."""

    feature_id: str
    """Content hash of tree, symbols and kind."""
    kind: FeatureKind
    """Shape."""
    tier: int
    """Rung of the ladder, 0 (a body) to 5 (several files)."""
    entry: tuple[str, ...]
    """Symbol ids that tests use by name."""
    symbols: tuple[str, ...]
    """All symbol ids to delete: the entries and what only they need."""
    tests: tuple[str, ...]
    """Ids of the tests that coverage predicts to fail."""
    fan_in: int = 0
    """Number of places outside the feature that refer to it."""
    loc: int = 0
    """Lines of code of the symbols."""
    complexity: int = 0
    """Sum of cyclomatic complexities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A feature taken out of a tree: two patches, exact in both directions."""

    deletion_id: str
    """Content hash of deleter, version, and both patches."""
    feature: Feature
    """What was asked for."""
    deleter: str
    """Name of the deleter."""
    deleter_version: int
    """Its version."""
    source_patch: str
    """Unified diff that takes the code out; applies to the base tree."""
    hide_patch: str
    """Unified diff that takes the tests out; applies beside ``source_patch`` (other files)."""
    removed: tuple[str, ...]
    """Symbol ids really removed or stubbed (delta-debugging may leave fewer than asked for)."""
    hidden: tuple[str, ...]
    """Test ids no longer in the visible tree."""
    text: tuple[tuple[str, str], ...]
    """(symbol id, deleted source text): what must not leak."""
    stub_patches: tuple[tuple[str, str], ...] = ()
    """(``none``, ``raise`` or ``any``, unified diff from the base tree): empty stand-ins for gate 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """What makes a task hard, as far as it can be counted."""

    kind: FeatureKind
    """Shape of the feature."""
    tier: int
    """Rung, 0 to 5."""
    loc: int
    """Lines of code deleted."""
    num_files: int
    """Source files touched."""
    num_symbols: int
    """Symbols removed."""
    fan_in: int
    """References from code that stays."""
    complexity: int
    """Sum of cyclomatic complexities."""
    num_f2p: int
    """Tests that must pass again."""
    num_p2p: int
    """Tests that must stay green."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One coding task. base tree + deletion_patch = what the agent sees; + patch + test_patch = base tree."""

    instance_id: str
    """``name__hash``; stable for equal content."""
    repo: str
    """Project."""
    base_commit: str
    """Commit of the untouched sources."""
    tree: str
    """git tree hash of the untouched sources."""
    shipped_tree: str
    """git tree hash of what the agent sees."""
    language: str
    """Language adapter."""
    version: str
    """Version of the project."""
    patch: str
    """The gold patch: adds the feature back to the shipped tree."""
    test_patch: str
    """Adds the hidden tests back to the shipped tree."""
    deletion_patch: str
    """From the base tree to the shipped tree: code and hidden tests out."""
    problem_statement: str
    """What the agent reads."""
    hints_text: str = ""
    """Always empty by default; the field expects the column."""
    interface: str
    """Public names, signatures and module paths that the hidden tests use, one per line."""
    fail_to_pass: tuple[str, ...]
    """Tests that fail without the feature and pass with it."""
    pass_to_pass: tuple[str, ...]
    """All other tests that pass before and after, in files that no solution may change."""
    hidden: tuple[str, ...] = ()
    """Tests that the shipped tree does not hold: FAIL_TO_PASS, others of the same test functions, and examples in
    docstrings that went with the code (no grade asks for those)."""
    env_id: str
    """Environment."""
    visibility: Visibility
    """How much the agent is given."""
    difficulty: Difficulty
    """Counted difficulty."""
    deleter: str
    """Name of the deleter."""
    feature_id: str
    """Feature."""
    removed: tuple[str, ...]
    """Symbol ids removed."""
    created_at: str
    """ISO date of the sources (not of the run: equal input gives equal rows)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One run of one gate on one candidate."""

    instance_id: str
    """Task, or refused candidate: the ``subject`` of its rejection."""
    gate: str
    """Name of the gate, for example ``g5_f2p_fail``."""
    run: int = 0
    """Number of the run, for gates that repeat."""
    worker_outcome: Worker
    """Did it run?"""
    outcome: Outcome
    """What the tests said about the gate's claim."""
    reason: str = ""
    """Machine-readable code when the outcome is not PASSED."""
    detail: str = ""
    """A sentence for people."""
    num_tests: int = 0
    """Tests that were run."""
    statuses: dict[str, Status] = field(default_factory=dict)
    """Per-test statuses that matter: those asked for; for whole-suite gates only the exceptions."""
    evidence: dict[str, str] = field(default_factory=dict)
    """Further facts (tree hashes, paths, counts) as text."""
    cpu_s: float = 0.0
    """CPU seconds."""
    wall_s: float = 0.0
    """Wall seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Something that was refused, and why. Nothing vanishes without a row."""

    repo: str
    """Project or source."""
    stage: str
    """fetch, environment, model, baseline, coverage, find, prove, delete, gate or publish."""
    subject: str
    """What was refused: a source, a feature id, a candidate id."""
    reason: str
    """Machine-readable code."""
    detail: str
    """A sentence for people."""
    kind: str = ""
    """Kind of the feature, where there is one."""
    symbols: tuple[str, ...] = ()
    """Its symbols."""
    worker_outcome: Worker = Worker.OK
    """Anything but ``ok``: the infrastructure failed, nothing was decided about the subject."""
    evidence: dict[str, str] = field(default_factory=dict)
    """Further facts as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The evidence that a task is sound; ``excise verify`` proves it again."""

    instance_id: str
    """Task."""
    verdicts: tuple[Verdict, ...]
    """Every gate's verdicts."""
    excise_version: str
    """Version that made it."""
    tools: dict[str, str]
    """Versions of interpreter, pytest, sandbox."""
    flake_rate: float
    """Share of repeated runs of this task's tests that disagreed."""
    num_runs: int
    """Number of repeated runs."""
    cpu_s: float
    """CPU seconds spent on this task."""
    wall_s: float
    """Wall seconds spent on this task."""
    settings: dict[str, int | float | str | None] = field(default_factory=dict)
    """``[verdict]`` settings that it was proven with; ``excise verify`` uses the same."""
    task_hash: str = ""
    """sha256 of the task's record as canonical JSON: the certificate speaks of this task and of no other."""
    digest: str = ""
    """sha256 of everything else here as canonical JSON; empty in sets made before schema version 3."""

    @property
    def certificate_id(self) -> str:
        """Content hash of the certificate."""
        return content_id("certificate", to_json(self).decode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Why a task is left out: a leak that somebody found in it, or in a task beside it."""

    instance_id: str
    """The task that is left out."""
    leak_id: str
    """Content hash of what was found; the same for all tasks that one leak hits."""
    label: str
    """What was done to find it, for example ``bytecode_recovery``."""
    level: str
    """``L4`` source text, ``L3`` byte code."""
    detail: str
    """A sentence for people."""
    found_in: str
    """The task in whose trajectory it was found."""
    trajectory: str
    """Content hash of that trajectory."""
    steps: tuple[str, ...] = ()
    """Numbers of the steps that show it."""
    places: tuple[str, ...] = ()
    """Where it lay, inside the sandbox."""
    decoder: str = ""
    """The command that made it readable: what a scanner must learn to do."""
    fingerprint: tuple[str, ...] = ()
    """Hashes of the telling lines that came to light."""
    created_at: str = ""
    """When it was put down, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call that the tests made to removed code, and what it came to on the original."""

    call: str
    """Function and arguments, as JSON of the language's own making."""
    outcome: str
    """Result or exception, and the arguments afterwards, likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingKit:
    """What a grader needs beside the task: made once, on the original code, and stored with the set."""

    instance_id: str
    """Task."""
    format: int = 0
    """How calls and outcomes are written; kits with another number than the grader's are made again."""
    calls: tuple[RecordedCall, ...] = ()
    """Calls whose answers were equal in every replay on the original."""
    modules: tuple[str, ...] = ()
    """Modules to load before replaying."""
    folders: tuple[str, ...] = ()
    """Folders of the tree from which tests import their helpers; looked into last."""
    telling: bool = True
    """No stub can answer the calls: they have a say beside the tests."""
    removed: tuple[str, ...] = ()
    """Names of the watched functions and classes."""
    mirrored: tuple[str, ...] = ()
    """FAIL_TO_PASS tests that fail on the original once they expect what is wrong: whoever passes them is lying."""
    num_watched: int = 0
    """Functions that could be watched."""
    num_recorded: int = 0
    """Distinct calls that were written down."""
    refused: dict[str, int] = field(default_factory=dict)
    """Why calls were not kept, to how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """The verdict on one solution of a task."""

    instance_id: str
    """Task."""
    worker_outcome: Worker
    """Did grading happen? Only ``ok``, ``timeout`` and ``oom`` say something about the solution."""
    decided: bool
    """The rewards mean something; otherwise the infrastructure failed and the solution must be graded again."""
    reward: float
    """1 or 0: tests, and recorded calls where there are any."""
    reward_tests: float
    """1 or 0: every FAIL_TO_PASS and PASS_TO_PASS test passed, and nothing showed that they were tampered with."""
    reward_calls: float | None
    """1 or 0: every recorded call came to what it came to on the original; ``None`` if a stub could do that, too."""
    partial: float
    """Share of FAIL_TO_PASS tests that passed; 0 unless all PASS_TO_PASS tests did, and after tampering."""
    reasons: tuple[str, ...] = ()
    """Machine-readable codes of all that was wrong."""
    statuses: dict[str, Status] = field(default_factory=dict)
    """Status of every FAIL_TO_PASS test, and of the PASS_TO_PASS tests that did not pass."""
    num_passed: int = 0
    """Tests of the task that passed."""
    num_tests: int = 0
    """Tests of the task."""
    canaries: dict[str, Status] = field(default_factory=dict)
    """Tests that must fail, and what they said."""
    num_mirrored: int = 0
    """FAIL_TO_PASS tests that were run with wrong expectations."""
    mirror_passed: tuple[str, ...] = ()
    """Those of them that passed all the same."""
    num_calls: int = 0
    """Recorded calls that were replayed."""
    num_calls_equal: int = 0
    """Those that came to the same."""
    ignored: dict[str, str] = field(default_factory=dict)
    """Path in the diff to why its change did not count."""
    evidence: dict[str, str] = field(default_factory=dict)
    """Further facts as text."""
    cpu_s: float = 0.0
    """CPU seconds."""
    wall_s: float = 0.0
    """Wall seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoReport:
    """The funnel of one repository: how many went in and what became of them."""

    repo: str
    """Project."""
    source: str
    """Pinned source."""
    status: str
    """``ok`` or the reason why nothing came of it."""
    detail: str = ""
    """A sentence for people."""
    num_tests: int = 0
    """Tests collected."""
    num_passing: int = 0
    """Tests that pass in every baseline run."""
    num_flaky: int = 0
    """Tests excluded as flaky."""
    num_symbols: int = 0
    """Definitions outside tests."""
    num_covered: int = 0
    """Definitions that at least one test executes."""
    num_features: int = 0
    """Features proposed by coverage."""
    num_candidates: int = 0
    """Features tried (the rest lay beyond the limit)."""
    num_valid: int = 0
    """Candidates that passed all gates."""
    not_proposed: dict[str, int] = field(default_factory=dict)
    """Why the finder passed symbols over: reason to count."""
    rejected: dict[str, int] = field(default_factory=dict)
    """Why candidates were refused: reason to count."""
    cpu_s: float = 0.0
    """CPU seconds of everything."""
    wall_s: float = 0.0
    """Wall seconds of everything (stages of one repository may overlap)."""


def content_id(kind: str, *parts: object) -> str:
    """A 16-digit hexadecimal content hash; equal parts give equal ids.

    ``parts`` are strings, numbers, or nests of mappings and sequences of them.
    """
    text = json.dumps([kind, *parts], sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return json.loads(to_json(value))


_adapters: dict[object, Any] = {}


def _adapter(cls: Any) -> Any:
    """pydantic's adapter of a type, made on first use."""
    if cls not in _adapters:
        from pydantic import TypeAdapter

        _adapters[cls] = TypeAdapter(cls)
    return _adapters[cls]


def to_json(record: object, *, indent: int | None = None) -> bytes:
    """A record (or a tuple or dict of records) as JSON."""
    return bytes(_adapter(type(record)).dump_json(record, indent=indent))


def to_dict(record: object) -> dict[str, Any]:
    """A record as plain JSON-compatible values."""
    plain: dict[str, Any] = json.loads(to_json(record))
    return plain


def from_json(cls: type[T], data: bytes | str) -> T:
    """The record back. Raises ``pydantic.ValidationError`` if the data does not fit."""
    record: T = _adapter(cls).validate_json(data)
    return record


def from_dict(cls: type[T], data: Mapping[str, object]) -> T:
    """The record back from plain values."""
    return from_json(cls, json.dumps(data))
