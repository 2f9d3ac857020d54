"""Gate 1: the tests of the task pass in every run of the untouched project."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Status
from excise.verifiers.candidate import Candidate, exceptions


class BaselineGreen:
    """Gate 1."""

    name = "g1_baseline"
    claim = "All tests of the task passed in every run of the untouched project, one of them shuffled"

    def check(self, candidate: Candidate) -> GateReport:
        """Every test of the task is among the stable passing ones.

        New tasks are made of those alone. A stored one may meet a baseline in which a test that waits for a clock
        failed once, as it does on a busy machine: such tests are run again as often, and have to pass each time.
        """
        baseline = candidate.bench.baseline
        passing = set(baseline.passing())
        wanted = [*candidate.fail_to_pass, *candidate.pass_to_pass]
        missing = {t: baseline.statuses.get(t, Status.MISSING) for t in wanted if t not in passing}
        evidence = {"num_runs": str(baseline.num_runs), "num_flaky": str(len(baseline.flaky))}
        evidence["starved"] = baseline.starved or "no run"
        unsteady = [test for test in missing if Status.PASSED in baseline.flaky.get(test, "").split()]
        for number in range(baseline.num_runs):
            if unsteady:
                failing = exceptions(candidate.run("base", ids=unsteady, number=number), unsteady)
                unsteady = [test for test in unsteady if test not in failing]
        for test in unsteady:
            evidence[test] = f"{baseline.flaky[test]}, then {Status.PASSED} {baseline.num_runs} times"
            del missing[test]
        verdict = candidate.judged(
            self,
            None,
            not missing and baseline.num_runs >= 2,
            reason="not_in_baseline",
            problem=f"{len(missing)} tests of the task do not pass untouched: {', '.join(list(missing)[:3])}",
            num_tests=len(wanted),
            statuses=missing,
            evidence=evidence,
        )
        return GateReport(verdicts=[verdict])
