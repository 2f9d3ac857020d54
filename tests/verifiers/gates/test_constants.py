"""Gate 8 in languages without trivial programs: stand-ins that return one value."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from excise.protocols import CONSTANTS, EMPTY
from excise.types import GateOutcome, Status, TestResult, TestRun, WorkerOutcome
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.empty_solutions_fail import EmptySolutionsFail

TEST = "test/a.test.js::a"


def candidate(passing: str, worker: WorkerOutcome = WorkerOutcome.OK) -> Candidate:
    """A candidate whose test fails with every stand-in but the one of a kind."""

    def run(tree: str, ids: object = None) -> TestRun:
        status = Status.PASSED if tree == passing else Status.FAILED
        lost = worker if tree in CONSTANTS else WorkerOutcome.OK
        return TestRun(worker=lost, finished=True, results=(TestResult(test_id=TEST, status=status),))

    found = SimpleNamespace(
        deletion=SimpleNamespace(stub_patches=[(kind, "patch") for kind in (*EMPTY, *CONSTANTS)]),
        bench=SimpleNamespace(
            baseline=SimpleNamespace(durations={}), prepared=SimpleNamespace(coverage=None), spent=None
        ),
        trees=SimpleNamespace(has_run=lambda *_: False, first_failing=run),
        fail_to_pass=(TEST,),
        dependent_tests=(TEST,),
        trusted=frozenset({TEST}),
        task=SimpleNamespace(instance_id="a"),
        run=run,
    )
    return cast("Candidate", cast("Any", found))


@pytest.mark.parametrize("passing", ["", *CONSTANTS])
def test_a_stand_in_that_passes_every_test_refuses_the_task(passing: str) -> None:
    report = EmptySolutionsFail().check(candidate(passing))
    assert report.passed is not bool(passing)
    last = report.verdicts[-1]
    assert last.evidence["solution"] == "constants"
    assert last.evidence["failing"] == str(CONSTANTS.index(passing) if passing else len(CONSTANTS))
    assert last.reason == ("trivial_solution_passes" if passing else "")
    assert not passing or f"({passing})" in last.detail


def test_a_run_that_the_machine_lost_decides_nothing() -> None:
    report = EmptySolutionsFail().check(candidate("", WorkerOutcome.KILLED))
    assert report.verdicts[-1].outcome is GateOutcome.UNDECIDED
