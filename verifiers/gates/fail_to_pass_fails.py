"""Gate 5: FAIL_TO_PASS tests fail without the feature and are in files that no solution may change."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Status
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row
from excise.verifiers.workbench import SUITE_ENDED


class FailToPassFails:
    """Runs the hidden tests without the feature once more."""

    name = "g5_f2p_fail"
    claim = "Every FAIL_TO_PASS test fails on the shipped sources, and lies in a file that no solution may change"

    def check(self, candidate: Candidate) -> GateReport:
        """Restore the hidden tests without the code and run them a second time.

        FAIL_TO_PASS was selected by a first run; a test that failed only by chance then passes now.
        """
        run = candidate.run("deleted", ids=candidate.dependent_tests, number=1)
        statuses = run.statuses()
        passed = [t for t in candidate.fail_to_pass if statuses.get(t) is Status.PASSED]
        changeable = [t for t in candidate.fail_to_pass if not candidate.is_gradable(t)]
        reason, problem = "passes_without_feature", f"{len(passed)} tests pass without the feature."
        if changeable and not passed:
            reason, problem = "in_solution_files", f"{changeable[0]} lies in a file that a solution may change."
        evidence = {"files_not_importable": ", ".join(path for path, _ in run.collect_errors)}
        if candidate.ungradable:
            evidence["uncounted"] = ", ".join(candidate.ungradable)
        result = CheckResult(
            passed=bool(candidate.fail_to_pass) and not passed and not changeable and run.worker in SUITE_ENDED,
            reason=reason,
            problem=problem,
            run=run,
            num_tests=len(candidate.fail_to_pass),
            statuses={t: statuses.get(t, Status.MISSING) for t in candidate.fail_to_pass},
            evidence=evidence,
        )
        return GateReport(verdicts=[verdict_row(self, candidate, result)])
