"""Gate 8: solutions that do nothing score 0."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Worker
from excise.verifiers.candidate import Candidate, exceptions


class EmptyFails:
    """Gate 8."""

    name = "g8_empty"
    claim = "Doing nothing, and stand-ins that return None or raise what tests may expect, score 0"

    def check(self, candidate: Candidate) -> GateReport:
        """Grade the empty solutions."""
        attempts = [("nothing", "deleted"), *((name, name) for name, _ in candidate.deletion.stub_patches)]
        report = GateReport()
        for number, (label, tree) in enumerate(attempts):
            run = candidate.run(tree, ids=candidate.graded)
            failing = exceptions(run, candidate.fail_to_pass)
            verdict = candidate.judged(
                self,
                run,
                bool(failing) and run.worker in {Worker.OK, Worker.TIMEOUT, Worker.OOM},
                number=number,
                reason="empty_solution_passes",
                problem=f"The empty solution “{label}” passes every test.",
                num_tests=len(candidate.fail_to_pass),
                evidence={"solution": label, "failing": str(len(failing))},
            )
            report.verdicts.append(verdict)
        return report
