"""Gate 11: the recovery agent, a scripted adversary in the agent's sandbox, cannot get the deleted code back."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import TestRun, WorkerOutcome
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row
from excise.verifiers.recovery.inside.all_strategies import STRATEGIES
from excise.verifiers.recovery.recover import Recovery, recover

MAX_EVIDENCE_CHARS = 1000
"""Maximum number of characters of each list in the evidence; the rest is cut off."""


class NotRecoverable:
    """Runs every recovery strategy in the agent's sandbox and scores the result."""

    name = "g11_recovery"
    claim = (
        f"{len(STRATEGIES)} scripted ways to recover the code from inside the agent's own sandbox bring back less than "
        "half of its distinctive lines, none of its byte code, and no patch that makes a hidden test pass"
    )

    def check(self, candidate: Candidate) -> GateReport:
        """Open the agent's sandbox, run every strategy in it, and compare what they find with the deleted code."""
        recovery = recover(candidate)
        done = recovery.attempt.completed
        run = TestRun(worker=done.worker, cpu_s=done.cpu_s, wall_s=done.wall_s)
        if recovery.attempt.finished or recovery.succeeded:
            result = self._decided(recovery, run)
        else:
            problem = f"The strategies did not come to their end: {recovery.attempt.problems.get('all', '')}"
            reason = "recovery_unfinished" if done.worker is WorkerOutcome.OK else str(done.worker)
            result = CheckResult(passed=None, reason=reason, problem=problem, run=run)
        return GateReport(verdicts=[verdict_row(self, candidate, result)])

    def _decided(self, recovery: Recovery, run: TestRun) -> CheckResult:
        total, attempt = recovery.total, recovery.attempt
        found = "; ".join(f"{name}: {score.level} {score.share:.0%}" for name, score in recovery.by_strategy.items())
        evidence = {
            "strategies": str(len(attempt.seconds)),
            "recovery_rate": f"{total.share:.3f}",
            "recovered_lines": str(total.num_lines),
            "recovered_code_objects": str(len(total.shapes)),
            "files_listed": str(attempt.num_files),
            "bytes_read": str(attempt.bytes_read),
        }
        if found:
            evidence["by_strategy"] = found[:MAX_EVIDENCE_CHARS]
            evidence["where"] = ", ".join(total.where)[:MAX_EVIDENCE_CHARS]
        if attempt.problems:
            problems = "; ".join(f"{name}: {problem}" for name, problem in attempt.problems.items())
            evidence["problems"] = problems[:MAX_EVIDENCE_CHARS]
        where = ", ".join(total.where)
        problem = f"{total.level or 'A patch'} recovered by {found or 'no strategy alone'} from {where}."
        if recovery.passing:
            problem += f" {len(recovery.passing)} hidden tests pass with a patch made of it."
        return CheckResult(
            passed=not recovery.succeeded,
            reason="recovered",
            problem=problem,
            run=run,
            num_tests=len(recovery.passing),
            evidence=evidence,
        )
