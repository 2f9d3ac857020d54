"""Test runs: results of single tests, the baseline of the original project, and coverage per test.

Two outcomes are kept apart: :class:`WorkerOutcome` says whether the run completed, :class:`Status` what a test
reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from excise.types.ids import MAX_TEST_ID


class WorkerOutcome(StrEnum):
    """Whether a run completed. Test statuses are valid only with ``OK``."""

    OK = "ok"
    TIMEOUT = "timeout"
    OOM = "oom"
    INFRA_ERROR = "infra_error"
    KILLED = "killed"


class Status(StrEnum):
    """The result of one test. A missing test counts as failed."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    ERROR = "ERROR"
    XFAIL = "XFAIL"
    MISSING = "MISSING"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """The result of one test in one run."""

    __test__ = False

    test_id: str
    """pytest node id."""
    status: Status
    """How the test ended."""
    duration_s: float = 0.0
    """Wall seconds of setup, call and teardown."""
    message: str = ""
    """Exception type and first line for a failure; at most 300 characters."""
    place: str = ""
    """Path of the file in which its exception was raised, as the test process has it; empty if that is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedCode:
    """Which code of the checkout each test of one run executed, by places; not yet by symbols."""

    places: tuple[tuple[str, int], ...]
    """(path, line) in each function or other piece of code that was executed."""
    at_import: tuple[int, ...]
    """Indexes of places that imports and the collection executed."""
    by_test: dict[str, tuple[int, ...]]
    """Test id to the indexes of the places that it executed; only of tests that reported all."""
    warm_up: str = ""
    """See :attr:`excise.protocols.CoveragePass.warm_up`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """The structured report of one run of the tests."""

    __test__ = False

    worker: WorkerOutcome
    """Whether the run completed."""
    results: tuple[TestResult, ...] = ()
    """Results of all tests that reported, in order."""
    collect_errors: tuple[tuple[str, str], ...] = ()
    """(file, message) for each file that could not be collected."""
    imported: tuple[tuple[str, str], ...] = ()
    """(top-level package, its ``__file__`` in the test process)."""
    finished: bool = False
    """Whether the test runner exited normally (false after ``os._exit`` or a signal)."""
    wall_s: float = 0.0
    """Wall seconds."""
    cpu_s: float = 0.0
    """CPU seconds of all processes."""
    detail: str = ""
    """Failure outside the tests, or the end of the output."""
    executed: ExecutedCode | None = None
    """What each test executed, if that was requested and the interpreter tells at next to no cost."""

    def statuses(self) -> dict[str, Status]:
        """Test id to status."""
        return {r.test_id: r.status for r in self.results}


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Test results of the original project over several runs, one of them in random order."""

    env_id: str
    """Id of the environment."""
    statuses: dict[str, Status]
    """Test id to status, for tests with equal results in all runs."""
    durations: dict[str, float]
    """Test id to median duration in seconds."""
    flaky: dict[str, str]
    """Test id to the reason why it is flaky. Flaky tests are not used."""
    uncollected: dict[str, str] = field(default_factory=dict)
    """Test file that cannot be loaded, to the error. Its tests are not used."""
    num_runs: int
    """Number of runs."""
    cpu_s: float
    """CPU seconds of one run of all tests (the quickest)."""
    wall_s: float
    """Wall seconds of one run of all tests (the quickest)."""
    starved: str = ""
    """Number and kind of load-stress runs, as text; empty if there were none."""

    def passing(self) -> tuple[str, ...]:
        """Ids of tests that passed in every run, sorted; without those of more than :data:`MAX_TEST_ID` characters."""
        return tuple(sorted(t for t, s in self.statuses.items() if s is Status.PASSED and len(t) <= MAX_TEST_ID))

    def excluded_tests(self, min_s: float = 5.0) -> tuple[str, ...]:
        """Tests of at least ``min_s`` seconds that did not pass (most of them hang). Runs of candidates skip them."""
        counting = set(self.passing())
        return tuple(t for t, seconds in sorted(self.durations.items()) if seconds >= min_s and t not in counting)

    def suite_s(self) -> float:
        """Wall seconds of one run of all tests without :meth:`excluded_tests`."""
        return max(0.0, self.wall_s - sum(self.durations[test] for test in self.excluded_tests()))


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageMap:
    """Symbols executed by each test, measured in one process per test, or in one process where the suite is long."""

    env_id: str
    """Id of the environment."""
    tests: tuple[str, ...]
    """Test ids; ``by_symbol`` holds indexes into this tuple."""
    by_symbol: dict[str, tuple[int, ...]]
    """Symbol id to the sorted indexes of the tests that execute a line of its body."""
    at_import: tuple[str, ...]
    """Ids of symbols whose body already runs at import or collection."""
    unstable: tuple[str, ...] = ()
    """Ids of tests that did not pass in the coverage run: alone in their process, they depend on other tests."""
    cpu_s: float = 0.0
    """CPU seconds of the mapping runs; the first run of the baseline, if it is one of them, does not count."""
    uncounted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Symbol id to the ids of the tests that do not count, flaky ones and expected failures, and that execute it; empty
    if that takes too long to measure."""

    def executing(self, symbols: Iterable[str]) -> frozenset[str]:
        """Ids of the tests that execute one of the symbols."""
        return frozenset(self.tests[n] for symbol in symbols for n in self.by_symbol.get(symbol, ()))
