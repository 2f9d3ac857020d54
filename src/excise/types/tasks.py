"""Tasks, gate verdicts, certificates, rejections, quarantines, and the report of a repository."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from excise.types.deletions import FeatureKind
from excise.types.measurements import Status, WorkerOutcome
from excise.types.serialization import content_id, to_json

SCHEMA_VERSION = 8
"""Version of the records and of the Parquet schema made from them. History in docs/schema.md."""
IMPORTED = "imported"
"""Value of ``Task.deleter`` for tasks of other tools' sets, which no deleter of excise made."""


class Visibility(StrEnum):
    """How much information the agent gets, from most to least."""

    TESTS = "tests"
    """Signatures, docstrings, and the tests, which stay in the agent's tree."""
    SAMPLE_TESTS = "sample_tests"
    """Signatures, docstrings, and a half of the tests; the others are hidden."""
    DOCSTRING = "docstring"
    """Signatures, docstrings and documentation."""
    SIGNATURE = "signature"
    """Signatures alone."""
    BEHAVIOUR = "behaviour"
    """Names, docstrings and documentation, without signatures."""


DETERMINISTIC = "deterministic"
"""Author of statements that no model wrote."""


class StatementStyle(StrEnum):
    """How a statement asks for the feature."""

    SPECIFICATION = "specification"
    """Signatures, documentation, examples, details."""
    ISSUE = "issue"
    """What a user sees going wrong, with calls that fail and what they should do, and a list of further details."""
    TERSE = "terse"
    """One or two sentences of a user, with every name and nothing else."""
    AMBIGUOUS = "ambiguous"
    """A complaint that names at most half of what is missing, and tells one thing that it did."""


class GateOutcome(StrEnum):
    """The result of a gate."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    UNDECIDED = "UNDECIDED"
    """The run did not complete (infrastructure failure), so the claim was not decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """Measures of a task's difficulty."""

    kind: FeatureKind
    """Kind of the feature."""
    tier: int
    """How much is gone: 0 (a part of a body, or one body) to 5 (definitions of several files)."""
    loc: int
    """Lines of code deleted."""
    num_files: int
    """Number of files in which more changed than comments, docstrings and prose."""
    num_symbols: int
    """Number of symbols removed."""
    fan_in: int
    """Number of references from the remaining code."""
    complexity: int
    """Sum of cyclomatic complexities."""
    num_f2p: int
    """Number of FAIL_TO_PASS tests."""
    num_p2p: int
    """Number of PASS_TO_PASS tests."""
    similar_share: float | None = None
    """Share of the removed code that stands elsewhere in the project's sources in the same words; null in older
    sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One coding task.

    ``deletion_patch`` turns the base tree into the shipped tree; ``patch`` and ``test_patch`` restore the base tree.
    """

    instance_id: str
    """``name__hash``; stable for equal content."""
    repo: str
    """Name of the project."""
    base_commit: str
    """Commit of the original sources."""
    tree: str
    """git tree hash of the original sources."""
    shipped_tree: str
    """git tree hash of the tree that the agent gets."""
    language: str
    """Name of the language adapter."""
    version: str
    """Version of the project."""
    patch: str
    """The gold patch: adds the feature back to the shipped tree."""
    test_patch: str
    """Adds the hidden tests back to the shipped tree."""
    deletion_patch: str
    """Removes the code and the hidden tests from the base tree; the result is the shipped tree."""
    problem_statement: str
    """The task description that the agent gets."""
    hints_text: str = ""
    """Empty; kept for compatibility with SWE-bench."""
    interface: str
    """Public names, signatures and module paths that the hidden tests use, one per line."""
    fail_to_pass: tuple[str, ...]
    """Tests that fail without the feature and pass with it."""
    pass_to_pass: tuple[str, ...]
    """Other tests that pass with and without the feature, in files that a solution may not change; hidden ones that do
    are left out."""
    hidden: tuple[str, ...] = ()
    """Tests that are not in the shipped tree: FAIL_TO_PASS, other cases of the same test functions, and doctests of the
    removed code, which are not graded."""
    env_id: str
    """Id of the environment."""
    visibility: Visibility
    """How much information the agent gets."""
    difficulty: Difficulty
    """Measures of difficulty."""
    deleter: str
    """Name of the deleter; ``imported`` for tasks of other tools' sets."""
    feature_id: str
    """Id of the feature."""
    removed: tuple[str, ...]
    """Ids of the removed symbols."""
    needs: dict[str, str] = field(default_factory=dict)
    """Details that the hidden tests need besides names and signatures (such as ``attribute total``), to where a solver
    finds each: ``statement`` (the project's own words), ``details`` (a line written for it), ``tree`` (code that stayed
    and belongs to the removed code) or ``convention`` (Python's own); ``other``: tests were seen to use it on values of
    other code only."""
    created_at: str
    """ISO date of the sources, not of the run, so that equal inputs give equal rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatement:
    """A task's statement in one style. Those of one style tell the same, more or less of it, in other words."""

    instance_id: str
    """Id of the task."""
    style: StatementStyle
    """`specification`, `issue`, `terse` or `ambiguous`."""
    author: str
    """`deterministic`, or the name of the model that wrote it."""
    text: str
    """The statement (Markdown)."""
    complete: bool
    """Whether it gives everything that hidden tests need and the tree does not show. Ambiguous statements and most
    terse ones do not, on purpose."""
    added: tuple[str, ...] = ()
    """Items that the completeness judge added to it, in a last section."""
    missing: tuple[str, ...] = ()
    """Items that it lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one run of a gate on one candidate."""

    instance_id: str
    """Id of the task, or of the rejected candidate (``subject`` of its rejection)."""
    gate: str
    """Name of the gate, for example ``g5_f2p_fail``."""
    run: int = 0
    """Number of the run, for gates that repeat."""
    worker_outcome: WorkerOutcome
    """Whether the run completed."""
    outcome: GateOutcome
    """Whether the gate's claim holds."""
    reason: str = ""
    """Machine-readable code when the outcome is not PASSED."""
    detail: str = ""
    """Explanation for users."""
    num_tests: int = 0
    """Number of tests that were run."""
    statuses: dict[str, Status] = field(default_factory=dict)
    """Test id to status; for gates that run the whole suite, only the tests with an unexpected status."""
    evidence: dict[str, str] = field(default_factory=dict)
    """Supporting data (tree hashes, paths, counts) as text."""
    cpu_s: float = 0.0
    """CPU seconds."""
    wall_s: float = 0.0
    """Wall seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A source, feature or candidate that was rejected, with the reason."""

    repo: str
    """Name of the project, or the source."""
    stage: str
    """Stage that rejected it: fetch, environment, model, baseline, coverage, find, propose, prove, delete, gate or
    publish; or statement, for a statement of a task that a model was to write."""
    subject: str
    """What was rejected: a source, a feature id or a candidate id."""
    reason: str
    """Machine-readable code."""
    detail: str
    """Explanation for users."""
    kind: str = ""
    """Kind of the feature; empty if there is none."""
    symbols: tuple[str, ...] = ()
    """Symbols of the feature."""
    worker_outcome: WorkerOutcome = WorkerOutcome.OK
    """Whether the run completed; any value but ``ok`` is an infrastructure failure, so nothing was decided."""
    evidence: dict[str, str] = field(default_factory=dict)
    """Supporting data as text; ``stub`` is the reason why a stub in place of a refused removal is refused, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The verdicts of all gates on a task. ``excise verify`` checks them again."""

    instance_id: str
    """Id of the task."""
    verdicts: tuple[Verdict, ...]
    """Verdicts of all gates."""
    excise_version: str
    """Version of excise that made it."""
    tools: dict[str, str]
    """Versions of the interpreter, pytest and the sandbox."""
    flake_rate: float
    """Share of the runs with the gold patch in which a test failed; 0 in every certificate, since such a run refuses
    the task."""
    num_runs: int
    """Number of repeated runs."""
    cpu_s: float
    """CPU seconds spent on this task."""
    wall_s: float
    """Wall seconds spent on this task."""
    settings: dict[str, int | float | str | None] = field(default_factory=dict)
    """The ``[verdict]`` settings in use; ``excise verify`` applies the same."""
    task_hash: str = ""
    """sha256 of the task's record as canonical JSON; binds the certificate to the task."""
    digest: str = ""
    """sha256 of all other fields as canonical JSON; empty in sets made before schema version 3."""

    @property
    def certificate_id(self) -> str:
        """Content hash of the certificate."""
        return content_id("certificate", to_json(self).decode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """A task that is excluded: a leak was found in it or in a related task, or its certificate no longer holds."""

    instance_id: str
    """Id of the excluded task."""
    leak_id: str
    """Content hash of the leak, equal for all tasks that it affects; or of gate and reason."""
    label: str
    """Method by which it was found, for example ``bytecode_recovery``; ``certificate`` if that no longer holds."""
    level: str
    """Severity of a leak: ``L4`` source text, ``L3`` byte code."""
    detail: str
    """Explanation for users."""
    gate: str = ""
    """The gate that did not pass again, or ``files``, ``sources``, ``baseline``, ``patch``; empty for a leak."""
    reason: str = ""
    """Machine-readable code of what the gate found; empty for a leak."""
    found_in: str
    """Id of the task in whose trajectory a leak was found; otherwise the excluded task itself."""
    trajectory: str
    """Content hash of that trajectory."""
    steps: tuple[str, ...] = ()
    """Numbers of the trajectory's steps in which the leak appears."""
    places: tuple[str, ...] = ()
    """Paths inside the sandbox at which the leak was found."""
    decoder: str = ""
    """Command that decoded the leak."""
    fingerprint: tuple[str, ...] = ()
    """Hashes of the distinctive source lines that were recovered."""
    created_at: str = ""
    """Time of the quarantine, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoReport:
    """Counts of one repository for each stage, from tests to accepted tasks."""

    repo: str
    """Name of the project."""
    source: str
    """Pinned source."""
    status: str
    """``ok``, or the reason code of the failure."""
    detail: str = ""
    """Explanation for users."""
    num_tests: int = 0
    """Number of tests collected."""
    num_passing: int = 0
    """Number of tests that pass in every baseline run."""
    num_flaky: int = 0
    """Number of tests excluded as flaky."""
    num_symbols: int = 0
    """Number of definitions outside tests."""
    num_covered: int = 0
    """Number of definitions executed by at least one test."""
    num_features: int = 0
    """Number of features proposed from coverage."""
    num_candidates: int = 0
    """Number of candidates tried; the run's limit may have excluded more."""
    num_valid: int = 0
    """Number of candidates that passed all gates."""
    num_repeated: int = 0
    """Number of candidates whose forked test runs were repeated in processes of their own (`verdict.repeat_share`)."""
    num_disagreeing: int = 0
    """Number of these for which a repeated run gave another result; that result counts."""
    not_proposed: dict[str, int] = field(default_factory=dict)
    """Reason why symbols were in no feature, to their number."""
    rejected: dict[str, int] = field(default_factory=dict)
    """Reason of rejection to number of candidates."""
    cpu_s: float = 0.0
    """CPU seconds of all stages."""
    wall_s: float = 0.0
    """Sum of the wall seconds of all stages, which may overlap."""
