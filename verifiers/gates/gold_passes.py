"""Gate 7: with the gold patch every test passes again."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import WorkerOutcome, path_of
from excise.verifiers.baseline import SHUFFLE_SEED
from excise.verifiers.candidate import Candidate, not_passing
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row

MAX_PASS_TO_PASS_SHARE, MAX_PASS_TO_PASS_S = 0.05, 5.0
"""Maximum share of the suite's duration, and maximum seconds, of the PASS_TO_PASS tests that are run again, which
are in the same files as FAIL_TO_PASS tests. For all others the baseline counts, which was measured on an equal tree."""


class GoldPasses:
    """Runs the task's tests on the restored tree, ``gold_runs`` times."""

    name = "g7_gold"
    claim = "With the gold patch every test passes again, in every run, one of them shuffled"

    def check(self, candidate: Candidate) -> GateReport:
        """Run the restored tree ``gold_runs`` times, the last time shuffled, until a run fails.

        A run that takes too long decides nothing: the same tests on an equal tree came to their end before, so that it
        tells of a busy machine.

        Gate 3 shows that the restored tree is the untouched one, byte for byte. So the baseline's results for the
        whole suite apply, and only the task's own tests and those in the same files are run again.
        """
        bench = candidate.bench
        ids = self._chosen_tests(candidate)
        report = GateReport()
        for number in range(bench.settings.gold_runs):
            seed = SHUFFLE_SEED + number if number == bench.settings.gold_runs - 1 else None
            run = candidate.run("base", ids=ids, shuffle_seed=seed, number=number)
            failing = not_passing(run, ids)
            ended = run.worker is WorkerOutcome.OK
            result = CheckResult(
                passed=None if run.worker is WorkerOutcome.TIMEOUT else ended and not failing,
                reason="gold_fails",
                problem=f"{len(failing)} tests fail with the gold patch."
                if ended
                else f"The tests with the gold patch did not end: {run.worker}.",
                run=run,
                number=number,
                num_tests=len(ids),
                statuses=failing,
                evidence={
                    "restored_tree": bench.repo.tree,
                    "shuffled": str(seed is not None).lower(),
                    "whole_suite": f"{bench.baseline.num_runs} baseline runs of the same tree",
                },
            )
            report.verdicts.append(verdict_row(self, candidate, result))
            if not report.passed:
                break
        return report

    def _chosen_tests(self, candidate: Candidate) -> list[str]:
        """All FAIL_TO_PASS tests, and a few PASS_TO_PASS tests of the same files."""
        files = {path_of(test) for test in candidate.fail_to_pass}
        durations = candidate.bench.baseline.durations
        limit_s = min(MAX_PASS_TO_PASS_S, MAX_PASS_TO_PASS_SHARE * candidate.bench.baseline.suite_s())
        chosen, spent_s = list(candidate.fail_to_pass), 0.0
        for test in candidate.pass_to_pass:
            if path_of(test) in files:
                spent_s += durations.get(test, 0.0)
                if spent_s > limit_s:
                    break
                chosen.append(test)
        return sorted(chosen)
