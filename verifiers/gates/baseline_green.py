"""Gate 1: the tests of the task pass in every run of the untouched project."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Status
from excise.verifiers.candidate import Candidate, not_passing
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row


class BaselineGreen:
    """Looks the task's tests up in the baseline."""

    name = "g1_baseline"
    claim = "All tests of the task passed in every run of the untouched project, one of them shuffled"

    def check(self, candidate: Candidate) -> GateReport:
        """Check that every test of the task passes in the baseline.

        A new task is built from such tests only, so this gate matters for stored tasks. Their baseline is measured
        again, and a test with a time limit may fail once in it on a busy machine: such tests are run again as often as
        the baseline was, and must pass every time.
        """
        baseline = candidate.bench.baseline
        passing = set(baseline.passing())
        wanted = [*candidate.fail_to_pass, *candidate.pass_to_pass]
        missing = {t: baseline.statuses.get(t, Status.MISSING) for t in wanted if t not in passing}
        evidence = {"num_runs": str(baseline.num_runs), "num_flaky": str(len(baseline.flaky))}
        evidence["starved"] = baseline.starved or "no run"
        for test in self._passing_again(candidate, [t for t in missing if _passed_once(baseline.flaky.get(t, ""))]):
            evidence[test] = f"{baseline.flaky[test]}, then {Status.PASSED} {baseline.num_runs} times"
            del missing[test]
        result = CheckResult(
            passed=not missing and baseline.num_runs >= 2,
            reason="not_in_baseline",
            problem=f"{len(missing)} tests of the task do not pass untouched: {', '.join(list(missing)[:3])}",
            num_tests=len(wanted),
            statuses=missing,
            evidence=evidence,
        )
        return GateReport(verdicts=[verdict_row(self, candidate, result)])

    def _passing_again(self, candidate: Candidate, unsteady: list[str]) -> list[str]:
        """Run flaky tests again as often as the baseline was run; return those that pass every time."""
        for number in range(candidate.bench.baseline.num_runs):
            if unsteady:
                failing = not_passing(candidate.run("base", ids=unsteady, number=number), unsteady)
                unsteady = [test for test in unsteady if test not in failing]
        return unsteady


def _passed_once(statuses: str) -> bool:
    """Whether a flaky test's statuses (``"FAILED then PASSED"``) include a pass."""
    return Status.PASSED in statuses.split()
