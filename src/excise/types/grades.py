"""Grades of solutions, and the data that a grader needs in addition to a task."""

from __future__ import annotations

from dataclasses import dataclass, field

from excise.types.measurements import Status, WorkerOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call of the removed code by the tests, with its outcome on the original."""

    call: str
    """Function and arguments, as JSON in the format of the language adapter."""
    outcome: str
    """Result or exception and the arguments after the call, in the same format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftedTest:
    """A FAIL_TO_PASS test whose expectations are compared outside the solution's sandbox."""

    test: str
    """Id of the test."""
    numbered: str
    """Its id in runs of lifted tests, in which parametrised tests are numbered."""
    digest: str
    """First half of the sha256 of the values that it reports on the original."""
    names: tuple[str, ...] = ()
    """Names of the classes and functions in the objects that it reports there; it may report no others."""
    nested: str = ""
    """The values, as JSON, that functions within the test report there, or a digest of all its values."""
    telling: bool = True
    """Whether it reports more than one truth value, or ``None``, over and over, which anybody would report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingKit:
    """Data that a grader needs in addition to the task; recorded on the original code and stored with the set."""

    instance_id: str
    """Id of the task."""
    format: int = 0
    """Version of the format of calls and outcomes; kits of other versions are recorded again."""
    calls: tuple[RecordedCall, ...] = ()
    """Calls with equal outcomes in every replay on the original."""
    held_out: tuple[RecordedCall, ...] = ()
    """Calls that the tests do not make, varied from those that they do, with equal results in every replay on the
    original. They are reported and do not count."""
    modules: tuple[str, ...] = ()
    """Modules to import before the replay."""
    folders: tuple[str, ...] = ()
    """Folders of the tree from which tests import helpers; last on the import path."""
    telling: bool = True
    """Whether the calls distinguish a solution from a stub; only then are they graded, in addition to the tests."""
    removed: tuple[str, ...] = ()
    """Names of the recorded functions and classes."""
    mirrored: tuple[str, ...] = ()
    """FAIL_TO_PASS tests that are not lifted and fail on the original with wrong expectations; passing them proves a
    forgery. Where nothing else tells one, these alone refute empty solutions; all others must pass, too."""
    copied: tuple[str, ...] = ()
    """Test files of which a grade may run copies that fail for certain: it was tried on the original."""
    lifted: tuple[LiftedTest, ...] = ()
    """FAIL_TO_PASS tests that are divided into what they do and what they expect."""
    by_calls: tuple[str, ...] = ()
    """FAIL_TO_PASS tests that recorded calls decide: all their calls are compared, and a stub answers one of them
    otherwise."""
    uncounted: tuple[str, ...] = ()
    """FAIL_TO_PASS tests that only the solution's own process could decide: they must pass, and earn nothing. All
    others are decided outside, and execute every line of the removed code that these do."""
    depending: tuple[str, ...] = ()
    """Names in the hidden tests of removed code and of what calls it; values made with them are no references."""
    not_lifted: dict[str, int] = field(default_factory=dict)
    """Reason why test functions could not be divided, to their number."""
    num_watched: int = 0
    """Number of functions that were instrumented for recording."""
    num_recorded: int = 0
    """Number of distinct calls that were recorded."""
    refused: dict[str, int] = field(default_factory=dict)
    """Reason why calls were discarded, to their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """The grade of one solution of a task."""

    instance_id: str
    """Id of the task."""
    worker_outcome: WorkerOutcome
    """Whether grading completed. Only ``ok``, ``timeout`` and ``oom`` are results of the solution."""
    decided: bool
    """Whether the rewards are valid; if not, the infrastructure failed and the solution must be graded again."""
    reward: float
    """1 or 0: the tests and, if they are graded, the recorded calls are right."""
    reward_tests: float
    """1 or 0: every FAIL_TO_PASS and every PASS_TO_PASS test passed, and no tampering was detected."""
    reward_calls: float | None
    """1 or 0: every recorded call had its recorded outcome; ``None`` if the calls do not distinguish a stub."""
    reward_held_out: float | None = None
    """1 or 0: every held-out call had the result of the original; ``None`` if there are none. It is no part of
    ``reward``: a right solution may treat inputs differently that nothing describes."""
    reward_uncounted: float | None = None
    """1 or 0: every FAIL_TO_PASS test passed that earns nothing, see :attr:`GradingKit.uncounted`; ``None`` if there
    are none, or other tests failed before they ran."""
    partial: float
    """Share of the other FAIL_TO_PASS tests that passed; 0 if a PASS_TO_PASS test failed or tampering was
    detected."""
    reasons: tuple[str, ...] = ()
    """Machine-readable codes of all failures."""
    statuses: dict[str, Status] = field(default_factory=dict)
    """Status of every FAIL_TO_PASS test, and of the PASS_TO_PASS tests that did not pass."""
    num_passed: int = 0
    """Number of the task's tests that passed."""
    num_tests: int = 0
    """Number of the task's tests."""
    canaries: dict[str, Status] = field(default_factory=dict)
    """Ids of the canary tests, which must fail, to their status."""
    num_mirrored: int = 0
    """Number of mirrored tests: FAIL_TO_PASS tests that were run with wrong expectations."""
    mirror_passed: tuple[str, ...] = ()
    """Ids of the mirrored tests that passed, which proves forged results."""
    num_lifted: int = 0
    """Number of lifted tests: FAIL_TO_PASS tests whose expectations were compared outside the solution's sandbox."""
    lifted_failed: tuple[str, ...] = ()
    """Ids of the lifted tests that passed inside the solution's sandbox, but whose values were wrong."""
    num_calls: int = 0
    """Number of recorded calls that were replayed."""
    num_calls_equal: int = 0
    """Number of replayed calls with the recorded outcome."""
    num_held_out: int = 0
    """Number of held-out calls that were made."""
    num_held_out_equal: int = 0
    """Number of held-out calls with the result of the original."""
    ignored: dict[str, str] = field(default_factory=dict)
    """Path in the diff to the reason why its change was ignored."""
    evidence: dict[str, str] = field(default_factory=dict)
    """Supporting data as text."""
    cpu_s: float = 0.0
    """CPU seconds."""
    wall_s: float = 0.0
    """Wall seconds."""
