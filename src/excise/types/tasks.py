"""Tasks, gate verdicts, certificates, rejections, quarantines, and the report of a repository."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from excise.types.deletions import FeatureKind
from excise.types.measurements import Status, Worker
from excise.types.serialization import content_id, to_json

SCHEMA_VERSION = 4
"""Version of the records and of the Parquet schema made from them. History in docs/schema.md."""


class Visibility(StrEnum):
    """How much the agent is given, from most to least."""

    TESTS = "tests"
    SAMPLE_TESTS = "sample_tests"
    DOCSTRING = "docstring"
    SIGNATURE = "signature"
    BEHAVIOUR = "behaviour"


class Outcome(StrEnum):
    """What a gate concluded from the statuses."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    UNDECIDED = "UNDECIDED"
    """The worker did not run to its end, so nothing is known about the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """What makes a task hard, as far as it can be counted."""

    kind: FeatureKind
    """Shape of the feature."""
    tier: int
    """Tier: how much a task spans, 0 (one body) to 5 (several files)."""
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
