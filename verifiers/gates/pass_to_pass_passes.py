"""Gate 6: all other tests pass on the shipped tree."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import WorkerOutcome
from excise.verifiers.candidate import Candidate, not_passing
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row


class PassToPassPasses:
    """Runs the whole test suite on the shipped tree."""

    name = "g6_p2p_pass"
    claim = "All other tests of the repository pass on the shipped tree"

    def check(self, candidate: Candidate) -> GateReport:
        """Check that every trusted test that does not need the feature passes."""
        run = candidate.run("shipped")
        needing = candidate.hidden | {*candidate.fail_to_pass, *candidate.ungradable}
        failing = not_passing(run, sorted(candidate.trusted - needing))
        visible = [t for t in candidate.pass_to_pass if t not in candidate.hidden]
        left_out = candidate.bench.left_out
        result = CheckResult(
            passed=run.worker is WorkerOutcome.OK and run.finished and not failing,
            reason="breaks_other_tests",
            problem=f"{len(failing)} other tests fail: {', '.join(list(failing)[:3])}",
            run=run,
            num_tests=len(visible),
            statuses=failing,
            evidence={"left_out": ", ".join(left_out)} if left_out else {},
        )
        return GateReport(verdicts=[verdict_row(self, candidate, result)])
