"""Gates 1, 2 and 4 to 8: what running the tests proves, each in a fresh sandbox without network."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Outcome, Status, TestRun, Verdict, Worker
from excise.verifiers.baseline import SHUFFLE_SEED
from excise.verifiers.candidate import Candidate, exceptions

GOLD_NEAR_S = 30.0
"""PASS_TO_PASS tests worth this many seconds are run again with the gold patch; the rest is the baseline's."""


def _one(verdict: Verdict) -> GateReport:
    return GateReport(verdicts=[verdict])


def _ended(run: TestRun) -> bool:
    return run.worker in {Worker.OK, Worker.TIMEOUT, Worker.OOM}


class BaselineGreen:
    """Gate 1."""

    name = "g1_baseline"
    claim = "All tests of the task passed in every run of the untouched project, one of them shuffled"

    def check(self, candidate: Candidate) -> GateReport:
        """Every test of the task is among the stable passing ones."""
        baseline = candidate.bench.baseline
        passing = set(baseline.passing())
        wanted = [*candidate.fail_to_pass, *candidate.pass_to_pass]
        missing = {t: baseline.statuses.get(t, Status.MISSING) for t in wanted if t not in passing}
        evidence = {"num_runs": str(baseline.num_runs), "num_flaky": str(len(baseline.flaky))}
        good = not missing and baseline.num_runs >= 2
        return _one(
            candidate.verdict(
                self.name,
                None,
                Outcome.PASSED if good else Outcome.FAILED,
                reason="not_in_baseline",
                detail=self.claim if good else f"{len(missing)} tests of the task do not pass untouched.",
                num_tests=len(wanted),
                statuses=missing,
                evidence=evidence,
            )
        )


class ResolvesIntoCheckout:
    """Gate 2."""

    name = "g2_resolves"
    claim = "The package that the tests import lies in the checkout"

    def check(self, candidate: Candidate) -> GateReport:
        """Look at where the tests' imports came from."""
        run = candidate.run("shipped")
        outside = [f"{name}: {path}" for name, path in run.imported if not path.lstrip("['").startswith("/testbed")]
        return _one(
            candidate.verdict(
                self.name,
                run,
                Outcome.FAILED if outside else Outcome.PASSED,
                reason="imports_elsewhere",
                detail=f"Imported from outside: {'; '.join(outside)}" if outside else self.claim,
                evidence=dict(run.imported),
            )
        )


class ShippedTreeCollects:
    """Gate 4."""

    name = "g4_collects"
    claim = "The shipped tree imports, and every test file in it can be collected"

    def check(self, candidate: Candidate) -> GateReport:
        """No collection error that the untouched project did not have; the runner came to its end."""
        run = candidate.run("shipped")
        lost = [test for test in candidate.pass_to_pass if test not in candidate.hidden]
        seen = run.statuses()
        missing = {test: Status.MISSING for test in lost if test not in seen}
        good = run.finished and not missing
        detail = self.claim
        if not good:
            first = "; ".join(f"{path}: {message}" for path, message in run.collect_errors[:2])
            detail = f"{len(missing)} visible tests are not collected. {first or run.detail[-200:]}"
        return _one(
            candidate.verdict(
                self.name,
                run,
                Outcome.PASSED if good else Outcome.FAILED,
                reason="does_not_collect",
                detail=detail,
                num_tests=len(seen),
                statuses=missing,
                evidence={"collect_errors": str(len(run.collect_errors))},
            )
        )


class FailToPassFails:
    """Gate 5."""

    name = "g5_f2p_fail"
    claim = "Every FAIL_TO_PASS test fails on the shipped sources"

    def check(self, candidate: Candidate) -> GateReport:
        """Put the hidden tests back without the code and run them."""
        hidden = sorted(candidate.hidden & candidate.bench.trusted)
        run = candidate.run("deleted", ids=hidden)
        statuses = run.statuses()
        passed = {t: Status.PASSED for t in candidate.fail_to_pass if statuses.get(t) is Status.PASSED}
        good = bool(candidate.fail_to_pass) and not passed and _ended(run)
        return _one(
            candidate.verdict(
                self.name,
                run,
                Outcome.PASSED if good else Outcome.FAILED,
                reason="passes_without_feature",
                detail=self.claim if good else f"{len(passed)} tests pass without the feature.",
                num_tests=len(candidate.fail_to_pass),
                statuses={t: statuses.get(t, Status.MISSING) for t in candidate.fail_to_pass},
                evidence={"files_not_importable": ", ".join(path for path, _ in run.collect_errors)},
            )
        )


class PassToPassPasses:
    """Gate 6."""

    name = "g6_p2p_pass"
    claim = "All other tests of the repository pass on the shipped tree"

    def check(self, candidate: Candidate) -> GateReport:
        """Run the whole suite on exactly what the agent sees."""
        run = candidate.run("shipped")
        visible = [t for t in candidate.pass_to_pass if t not in candidate.hidden]
        trusted = sorted(candidate.bench.trusted - candidate.hidden)
        failing = exceptions(run, trusted)
        good = run.worker is Worker.OK and run.finished and not failing
        return _one(
            candidate.verdict(
                self.name,
                run,
                Outcome.PASSED if good else Outcome.FAILED,
                reason="breaks_other_tests",
                detail=self.claim if good else f"{len(failing)} other tests fail: {', '.join(list(failing)[:3])}",
                num_tests=len(visible),
                statuses=failing,
                evidence={"visible_tests": str(len(visible))},
            )
        )


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
        verdicts = []
        for number in range(runs):
            seed = SHUFFLE_SEED + number if number == runs - 1 else None
            run = candidate.run("base", ids=ids, shuffle_seed=seed, number=number)
            failing = exceptions(run, ids)
            good = run.worker is Worker.OK and not failing
            verdicts.append(
                candidate.verdict(
                    self.name,
                    run,
                    Outcome.PASSED if good else Outcome.FAILED,
                    number=number,
                    reason="gold_fails",
                    detail=self.claim if good else f"{len(failing)} tests fail with the gold patch.",
                    num_tests=len(ids),
                    statuses=failing,
                    evidence={
                        "restored_tree": candidate.bench.repo.tree,
                        "shuffled": str(seed is not None).lower(),
                        "whole_suite": f"{candidate.bench.baseline.num_runs} baseline runs of the same tree",
                    },
                )
            )
            if not good:
                break
        return GateReport(verdicts=verdicts)

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


class EmptyFails:
    """Gate 8."""

    name = "g8_empty"
    claim = "Doing nothing, and stand-ins that return None or raise, score 0"

    def check(self, candidate: Candidate) -> GateReport:
        """Grade three empty solutions."""
        hidden = sorted(candidate.hidden & candidate.bench.trusted)
        verdicts = []
        attempts = [("nothing", "deleted"), *((name, name) for name, _ in candidate.deletion.stub_patches)]
        for number, (label, tree) in enumerate(attempts):
            run = candidate.run(tree, ids=hidden)
            failing = exceptions(run, candidate.fail_to_pass)
            good = bool(failing) and _ended(run)
            verdicts.append(
                candidate.verdict(
                    self.name,
                    run,
                    Outcome.PASSED if good else Outcome.FAILED,
                    number=number,
                    reason="empty_solution_passes",
                    detail=self.claim if good else f"The empty solution “{label}” passes every test.",
                    num_tests=len(candidate.fail_to_pass),
                    evidence={"solution": label, "failing": str(len(failing))},
                )
            )
        return GateReport(verdicts=verdicts)
