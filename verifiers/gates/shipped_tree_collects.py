"""Gate 4: every test file of the shipped tree can be collected."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Status
from excise.verifiers.candidate import MAX_MESSAGE, Candidate
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row


class ShippedTreeCollects:
    """Looks at which tests were collected when the shipped tree was run."""

    name = "g4_collects"
    claim = "The shipped tree imports, and every test file in it can be collected"

    def check(self, candidate: Candidate) -> GateReport:
        """Check that every visible test of the task was collected, and that no other file fails to be than before."""
        run = candidate.run("shipped")
        collected = run.statuses()
        visible = [test for test in candidate.pass_to_pass if test not in candidate.hidden]
        missing = {test: Status.MISSING for test in visible if test not in collected}
        known = candidate.bench.baseline.uncollected
        new = [error for error in run.collect_errors if error[0] not in known]
        errors = "; ".join(f"{path}: {message[:MAX_MESSAGE]}" for path, message in (new or run.collect_errors)[:2])
        result = CheckResult(
            passed=run.finished and not missing and not new,
            reason="does_not_collect",
            problem=f"{len(missing)} visible tests are not collected, and {len(new)} files cannot be loaded. "
            f"{errors or run.detail[-200:]}",
            run=run,
            num_tests=len(collected),
            statuses=missing,
            evidence={"collect_errors": str(len(run.collect_errors))},
        )
        return GateReport(verdicts=[verdict_row(self, candidate, result)])
