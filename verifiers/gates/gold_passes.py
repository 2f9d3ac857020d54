"""Gate 7: with the gold patch every test passes again."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Worker
from excise.verifiers.baseline import SHUFFLE_SEED
from excise.verifiers.candidate import Candidate, exceptions

GOLD_NEAR_S = 5.0
"""PASS_TO_PASS tests worth this many seconds are run again with the gold patch; the rest is the baseline's."""


class GoldRestores:
    """Gate 7."""

    name = "g7_gold"
    claim = "With the gold patch every test passes again, in every run, one of them shuffled"

    def check(self, candidate: Candidate) -> GateReport:
        """Run the restored tree N times.

        Gate 3 showed that it is the untouched tree, byte for byte, so the whole suite's verdict is the baseline's;
        the task's own tests, and those in the same files, are run anew.
        """
        ids = self._ids(candidate)
        runs = candidate.bench.settings.gold_runs
        report = GateReport()
        for number in range(runs):
            seed = SHUFFLE_SEED + number if number == runs - 1 else None
            run = candidate.run("base", ids=ids, shuffle_seed=seed, number=number)
            failing = exceptions(run, ids)
            verdict = candidate.judged(
                self,
                run,
                run.worker is Worker.OK and not failing,
                number=number,
                reason="gold_fails",
                problem=f"{len(failing)} tests fail with the gold patch.",
                num_tests=len(ids),
                statuses=failing,
                evidence={
                    "restored_tree": candidate.bench.repo.tree,
                    "shuffled": str(seed is not None).lower(),
                    "whole_suite": f"{candidate.bench.baseline.num_runs} baseline runs of the same tree",
                },
            )
            report.verdicts.append(verdict)
            if not report.passed:
                break
        return report

    def _ids(self, candidate: Candidate) -> list[str]:
        files = {test.partition("::")[0] for test in candidate.fail_to_pass}
        durations = candidate.bench.baseline.durations
        chosen, spent = list(candidate.fail_to_pass), 0.0
        for test in candidate.pass_to_pass:
            if test.partition("::")[0] in files:
                spent += durations.get(test, 0.0)
                if spent > GOLD_NEAR_S:
                    break
                chosen.append(test)
        return sorted(chosen)
