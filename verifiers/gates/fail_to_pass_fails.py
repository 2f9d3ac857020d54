"""Gate 5: FAIL_TO_PASS tests fail without the feature."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Status, Worker
from excise.verifiers.candidate import Candidate


class FailToPassFails:
    """Gate 5."""

    name = "g5_f2p_fail"
    claim = "Every FAIL_TO_PASS test fails on the shipped sources, and lies in a file that no solution may change"

    def check(self, candidate: Candidate) -> GateReport:
        """Put the hidden tests back without the code and run them once more: chance alone must not choose them."""
        run = candidate.run("deleted", ids=candidate.graded, number=1)
        statuses = run.statuses()
        passed = [t for t in candidate.fail_to_pass if statuses.get(t) is Status.PASSED]
        given = [t for t in candidate.fail_to_pass if not candidate.counts(t)]
        ended = run.worker in {Worker.OK, Worker.TIMEOUT, Worker.OOM}
        problem = f"{len(passed)} tests pass without the feature."
        evidence = {"files_not_importable": ", ".join(path for path, _ in run.collect_errors)}
        if candidate.uncounted:
            evidence["uncounted"] = ", ".join(candidate.uncounted)
        verdict = candidate.judged(
            self,
            run,
            bool(candidate.fail_to_pass) and not passed and not given and ended,
            reason="in_solution_files" if given and not passed else "passes_without_feature",
            problem=f"{given[0]} lies in a file that a solution may change." if given and not passed else problem,
            num_tests=len(candidate.fail_to_pass),
            statuses={t: statuses.get(t, Status.MISSING) for t in candidate.fail_to_pass},
            evidence=evidence,
        )
        return GateReport(verdicts=[verdict])
