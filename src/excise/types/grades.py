"""Grades of solutions, and the kit that a grader needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from excise.types.measurements import Status, Worker


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
