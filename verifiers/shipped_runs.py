"""Runs of the shipped tree while a deletion is planned: which visible tests would fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from excise.errors import DeletionRefused
from excise.types import Status, TestRun, WorkerOutcome
from excise.verifiers.candidate import PlannedDeletion, Rejected, not_passing
from excise.verifiers.workbench import QUICK_SUITE_S

MAX_REPEATED = 10
"""Number of unexpectedly failing tests up to which these are run again."""
Check = Callable[[PlannedDeletion], object]
"""Raises :class:`Rejected` for a planned deletion that cannot become a task."""


def run_shipped(plan: PlannedDeletion, check: Check) -> tuple[TestRun, list[str]]:
    """Run the shipped tree; return the run and the trusted visible tests that do not pass.

    The tests nearest to the deletion are run first if that is cheap and the suite is not quick, and the others only if
    these pass and ``check`` does not raise.
    """
    bench, expected_failures = plan.bench, (plan.hidden - plan.shortened) | plan.exposed
    if bench.has_cheap_short_runs:
        near: list[str] = []
        if not bench.has_quick_suite:
            near = sorted(plan.shortened.union(bench.nearest_tests(plan.hidden, list(plan.edits("shipped")))))
        if near:
            run = require_ended(plan.run("shipped", ids=near))
            failing = _failing_again(plan, [t for t in not_passing(run, near) if t not in expected_failures])
            if failing:
                return run, failing
        check(plan)
    run = require_ended(plan.run("shipped"))
    failing = [t for t in not_passing(run, sorted(bench.trusted)) if t not in expected_failures]
    return run, _failing_again(plan, failing)


def _failing_again(plan: PlannedDeletion, failing: list[str]) -> list[str]:
    """Those of a few failing tests of the shipped tree that fail a second time, too.

    The others are not trusted any more: they fail now and then, on a busy machine perhaps, and do not need the code.
    """
    bench = plan.bench
    if not failing or len(failing) > MAX_REPEATED or bench.expected_s(failing) > QUICK_SUITE_S:
        return failing
    again = plan.run("shipped", ids=failing, number=1)
    if again.worker is not WorkerOutcome.OK:
        return failing
    steady = not_passing(again, failing)
    bench.distrust(set(failing).difference(steady))
    return [test for test in failing if test in steady]


def require_ended(run: TestRun) -> TestRun:
    """The run; raises :class:`Rejected` if it did not end by itself."""
    if run.worker is not WorkerOutcome.OK:
        raise Rejected(
            f"The tests of the shipped tree did not end: {run.worker}.", reason=f"shipped_{run.worker}", run=run
        )
    return run


def require_no_test_lost(plan: PlannedDeletion, failing: Sequence[str]) -> None:
    """Raise :class:`DeletionRefused` if a test that fails in the shipped tree passes without the code where all tests
    stay as they are: what was taken out of the tests breaks it, and not the deletion."""
    fail_deleted = not_passing(plan.run("deleted", ids=failing), failing) if failing else {}
    for test in failing:
        if test not in fail_deleted:
            raise DeletionRefused(f"{test} fails without the hidden tests", reason="breaks_other_tests")


def needing_it(plan: PlannedDeletion, failing: Sequence[str]) -> list[str]:
    """Those of the tests that fail in the shipped tree which are to be hidden.

    A test that does not execute the removed code, and fails without it, is run once more there, unless it cannot be
    collected. If it passes then, it fails now and then, as one that measures time does, and is not trusted any more.
    """
    bench, coverage = plan.bench, plan.bench.prepared.coverage
    if coverage is None or not failing:
        return list(failing)
    executing, whole = coverage.executing(plan.deletion.removed), [t for t in failing if t not in plan.shortened]
    others = [test for test in whole if test not in executing]
    statuses = not_passing(plan.run("deleted", ids=whole), others) if others else {}
    unsure = [test for test, status in statuses.items() if status in {Status.FAILED, Status.ERROR}]
    if not unsure or bench.expected_s(unsure) > QUICK_SUITE_S:
        return list(failing)
    again = plan.run("deleted", ids=unsure, number=1)
    steady = unsure if again.worker is not WorkerOutcome.OK else not_passing(again, unsure)
    unsteady = set(unsure).difference(steady)
    bench.distrust(unsteady)
    return [test for test in failing if test not in unsteady]
