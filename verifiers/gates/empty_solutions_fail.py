"""Gate 8: solutions that do nothing score 0."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.verifiers.candidate import Candidate, not_passing
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row
from excise.verifiers.workbench import SUITE_ENDED


class EmptySolutionsFail:
    """Runs the tests with an empty solution and with every stub in place of the feature."""

    name = "g8_empty"
    claim = "Doing nothing, and stand-ins that return None or raise what tests may expect, score 0"

    def check(self, candidate: Candidate) -> GateReport:
        """Check that at least one FAIL_TO_PASS test fails on each of them; each has one verdict row."""
        attempts = [("nothing", "deleted"), *((name, name) for name, _ in candidate.deletion.stub_patches)]
        report = GateReport()
        for number, (label, tree) in enumerate(attempts):
            run = candidate.run(tree, ids=candidate.dependent_tests)
            failing = not_passing(run, candidate.fail_to_pass)
            result = CheckResult(
                passed=bool(failing) and run.worker in SUITE_ENDED,
                reason="empty_solution_passes",
                problem=f"The empty solution “{label}” passes every test.",
                run=run,
                number=number,
                num_tests=len(candidate.fail_to_pass),
                evidence={"solution": label, "failing": str(len(failing))},
            )
            report.verdicts.append(verdict_row(self, candidate, result))
        return report
