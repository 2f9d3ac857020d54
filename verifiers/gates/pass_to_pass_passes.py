"""Gate 6: all other tests pass on the shipped tree."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Worker
from excise.verifiers.candidate import Candidate, exceptions


class PassToPassPasses:
    """Gate 6."""

    name = "g6_p2p_pass"
    claim = "All other tests of the repository pass on the shipped tree"

    def check(self, candidate: Candidate) -> GateReport:
        """Run the whole suite on exactly what the agent sees."""
        run = candidate.run("shipped")
        needing = candidate.hidden | {*candidate.fail_to_pass, *candidate.uncounted}
        failing = exceptions(run, sorted(candidate.trusted - needing))
        visible = [t for t in candidate.pass_to_pass if t not in candidate.hidden]
        verdict = candidate.judged(
            self,
            run,
            run.worker is Worker.OK and run.finished and not failing,
            reason="breaks_other_tests",
            problem=f"{len(failing)} other tests fail: {', '.join(list(failing)[:3])}",
            num_tests=len(visible),
            statuses=failing,
            evidence={"left_out": ", ".join(candidate.bench.left_out)} if candidate.bench.left_out else {},
        )
        return GateReport(verdicts=[verdict])
