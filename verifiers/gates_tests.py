"""Gates 1, 2 and 4 to 8: what running the tests proves, each in a fresh sandbox without network."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import Status, TestRun, Worker
from excise.verifiers.baseline import SHUFFLE_SEED
from excise.verifiers.candidate import Candidate, exceptions

GOLD_NEAR_S = 5.0
"""PASS_TO_PASS tests worth this many seconds are run again with the gold patch; the rest is the baseline's."""


def _ended(run: TestRun) -> bool:
    return run.worker in {Worker.OK, Worker.TIMEOUT, Worker.OOM}


class BaselineGreen:
    """Gate 1."""

    name = "g1_baseline"
    claim = "All tests of the task passed in every run of the untouched project, one of them shuffled"

    def check(self, candidate: Candidate) -> GateReport:
        """Every test of the task is among the stable passing ones.

        New tasks are made of those alone. A stored one may meet a baseline in which a test that waits for a clock
        failed once, as it does on a busy machine: such tests are run again as often, and have to pass each time.
        """
        baseline = candidate.bench.baseline
        passing = set(baseline.passing())
        wanted = [*candidate.fail_to_pass, *candidate.pass_to_pass]
        missing = {t: baseline.statuses.get(t, Status.MISSING) for t in wanted if t not in passing}
        evidence = {"num_runs": str(baseline.num_runs), "num_flaky": str(len(baseline.flaky))}
        evidence["starved"] = baseline.starved or "no run"
        unsteady = [test for test in missing if Status.PASSED in baseline.flaky.get(test, "").split()]
        for number in range(baseline.num_runs):
            if unsteady:
                failing = exceptions(candidate.run("base", ids=unsteady, number=number), unsteady)
                unsteady = [test for test in unsteady if test not in failing]
        for test in unsteady:
            evidence[test] = f"{baseline.flaky[test]}, then {Status.PASSED} {baseline.num_runs} times"
            del missing[test]
        verdict = candidate.judged(
            self,
            None,
            not missing and baseline.num_runs >= 2,
            reason="not_in_baseline",
            problem=f"{len(missing)} tests of the task do not pass untouched: {', '.join(list(missing)[:3])}",
            num_tests=len(wanted),
            statuses=missing,
            evidence=evidence,
        )
        return GateReport(verdicts=[verdict])


class ResolvesIntoCheckout:
    """Gate 2."""

    name = "g2_resolves"
    claim = "The package that the tests import lies in the checkout"

    def check(self, candidate: Candidate) -> GateReport:
        """Look at where the tests' imports came from."""
        run = candidate.run("shipped")
        outside = [f"{name}: {path}" for name, path in run.imported if not path.lstrip("['").startswith("/testbed")]
        verdict = candidate.judged(
            self,
            run,
            not outside,
            reason="imports_elsewhere",
            problem=f"Imported from outside: {'; '.join(outside)}",
            evidence=dict(run.imported),
        )
        return GateReport(verdicts=[verdict])


class ShippedTreeCollects:
    """Gate 4."""

    name = "g4_collects"
    claim = "The shipped tree imports, and every test file in it can be collected"

    def check(self, candidate: Candidate) -> GateReport:
        """Every visible test of the task was collected, and the runner came to its end."""
        run = candidate.run("shipped")
        seen = run.statuses()
        visible = [test for test in candidate.pass_to_pass if test not in candidate.hidden]
        missing = {test: Status.MISSING for test in visible if test not in seen}
        errors = "; ".join(f"{path}: {message}" for path, message in run.collect_errors[:2])
        verdict = candidate.judged(
            self,
            run,
            run.finished and not missing,
            reason="does_not_collect",
            problem=f"{len(missing)} visible tests are not collected. {errors or run.detail[-200:]}",
            num_tests=len(seen),
            statuses=missing,
            evidence={"collect_errors": str(len(run.collect_errors))},
        )
        return GateReport(verdicts=[verdict])


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
        problem = f"{len(passed)} tests pass without the feature."
        evidence = {"files_not_importable": ", ".join(path for path, _ in run.collect_errors)}
        if candidate.uncounted:
            evidence["uncounted"] = ", ".join(candidate.uncounted)
        verdict = candidate.judged(
            self,
            run,
            bool(candidate.fail_to_pass) and not passed and not given and _ended(run),
            reason="in_solution_files" if given and not passed else "passes_without_feature",
            problem=f"{given[0]} lies in a file that a solution may change." if given and not passed else problem,
            num_tests=len(candidate.fail_to_pass),
            statuses={t: statuses.get(t, Status.MISSING) for t in candidate.fail_to_pass},
            evidence=evidence,
        )
        return GateReport(verdicts=[verdict])


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
                bool(failing) and _ended(run),
                number=number,
                reason="empty_solution_passes",
                problem=f"The empty solution “{label}” passes every test.",
                num_tests=len(candidate.fail_to_pass),
                evidence={"solution": label, "failing": str(len(failing))},
            )
            report.verdicts.append(verdict)
        return report
