"""Runs of tests: single results, the baseline of the untouched project, and coverage per test.

Two outcome axes are never mixed: :class:`Worker` says whether the run happened, :class:`Status` what a test reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


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
