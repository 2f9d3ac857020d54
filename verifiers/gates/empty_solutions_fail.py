"""Gate 8: solutions that do nothing, or next to nothing, score 0, and most that lack one part do, too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from excise.protocols import CONSTANTS, EMPTY, TRIVIAL, GateReport
from excise.types import Status, TestRun, Verdict, WorkerOutcome
from excise.verifiers.candidate import Candidate, not_passing
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row
from excise.verifiers.unnoticed_parts import TriedParts, try_parts
from excise.verifiers.workbench import SUITE_ENDED

FIRST_TESTS = 20
"""Number of the quickest FAIL_TO_PASS tests that are run first; all are run only if these pass."""
FIRST_S, MIN_FIRST_TESTS = 2.0, 3
"""Seconds that these take at most, unless they are this few."""


class EmptySolutionsFail:
    """Runs the tests with an empty solution, and with every stub and trivial program in place of the feature."""

    name = "g8_empty"
    claim = (
        "Doing nothing, and stand-ins that return nothing, a value of the right type where types are known, or raise "
        "what tests may expect, score 0; so do, in Python and JavaScript, programs that return a constant, an argument "
        "or its length, and in Python those that return the object or what a similar function returns; without one "
        "part of the code, for most parts, a test fails, and so it does with the body of a similar function, in Python "
        "with a constant as the result of one of several functions, and outside it with one literal for a documented "
        "parameter, or, where types are known, a constant or the first parameter as the result, but for few of many "
        "functions"
    )

    def check(self, candidate: Candidate) -> GateReport:
        """Check that at least one FAIL_TO_PASS test fails on each of them; each has one verdict row.

        One row more is about the original code without a part, where it has enough of them.
        """
        kinds = [kind for kind, _ in candidate.deletion.stub_patches]
        attempts = [("nothing", "deleted"), *((kind, kind) for kind in kinds if kind in EMPTY)]
        report = GateReport()
        for number, (label, tree) in enumerate(attempts):
            run = self._run(candidate, tree)
            results = run.statuses()
            failing = _failing(run, candidate.fail_to_pass)
            result = CheckResult(
                passed=bool(failing) and run.worker in SUITE_ENDED,
                reason="empty_solution_passes",
                problem=f"The empty solution “{label}” passes every test.",
                run=run,
                number=number,
                num_tests=sum(test in results for test in candidate.fail_to_pass),
                evidence={"solution": label, "failing": str(len(failing))},
            )
            report.verdicts.append(verdict_row(self, candidate, result))
        if report.passed and TRIVIAL in kinds:
            report.verdicts.append(self._try_programs(candidate, len(attempts)))
        if report.passed and (constants := [kind for kind in kinds if kind in CONSTANTS]):
            report.verdicts.append(self._try_constants(candidate, constants, len(attempts)))
        if report.passed and (tried := try_parts(candidate)).num_tried:
            report.verdicts.append(self._verdict_on_parts(candidate, tried, len(report.verdicts)))
        return report

    def refutes(self, candidate: Candidate, tests: Sequence[str]) -> bool:
        """Whether some of the ``tests``, of those in FAIL_TO_PASS, suffice: one fails on each of these solutions."""
        stubs = [name for name, _ in candidate.deletion.stub_patches]
        for tree in ("deleted", *(name for name in stubs if name in EMPTY)):
            if not self._fails_one(candidate, tree, tests):
                return False
        if TRIVIAL not in stubs or self._programs_fail_one(candidate, tests):
            return True
        run, tried, passing = self._tried_programs(candidate, tests)
        return bool(tried) and not passing and run.worker in SUITE_ENDED

    def _fails_one(self, candidate: Candidate, tree: str, tests: Sequence[str]) -> bool:
        """Whether one of the tests fails on a tree, by runs that were made before if these tell."""
        trees, every = candidate.trees, candidate.dependent_tests
        if trees.has_run(tree, every):
            run = candidate.run(tree, ids=every)
            return bool(_failing(run, tests)) and run.worker in SUITE_ENDED
        runs = (trees.first_failing(tree, ids) for ids in (_first_tests(candidate), tests))
        return any(run.worker in SUITE_ENDED and _failing(run, tests) for run in runs)

    def _programs_fail_one(self, candidate: Candidate, tests: Sequence[str]) -> bool:
        """Whether each trivial program failed at one of the tests when it was tried on all, where it ends at the first
        that fails."""
        run = candidate.trees.try_programs(_quickest_first(candidate))
        tried = [result for result in run.results if result.status is not Status.SKIPPED]
        return bool(tried) and run.worker in SUITE_ENDED and all(result.message in tests for result in tried)

    def _try_programs(self, candidate: Candidate, number: int) -> Verdict:
        """Try every trivial program on the FAIL_TO_PASS tests, the quickest first."""
        ids = _quickest_first(candidate)
        run, tried, passing = self._tried_programs(candidate, ids)
        result = CheckResult(
            passed=bool(tried) and not passing and run.worker in SUITE_ENDED,
            reason="trivial_solution_passes",
            problem=f"The trivial program “{', '.join(passing)}” passes every test.",
            run=run,
            number=number,
            num_tests=len(ids),
            evidence={"solution": "trivial programs", "failing": str(len(tried) - len(passing))},
        )
        return verdict_row(self, candidate, result)

    def _try_constants(self, candidate: Candidate, kinds: Sequence[str], number: int) -> Verdict:
        """Try a stand-in of each of the kinds, until one passes every test."""
        tried: list[str] = []
        for kind in kinds:
            run = self._run(candidate, kind)
            passes = not _failing(run, candidate.fail_to_pass)
            if passes or run.worker not in SUITE_ENDED:
                break
            tried.append(kind)
        result = CheckResult(
            passed=len(tried) == len(kinds),
            reason="trivial_solution_passes",
            problem=f"A program that always returns one value ({kind}) passes every test.",
            run=run,
            number=number,
            num_tests=len(candidate.fail_to_pass),
            evidence={"solution": "constants", "failing": str(len(tried))},
        )
        return verdict_row(self, candidate, result)

    def _verdict_on_parts(self, candidate: Candidate, tried: TriedParts, number: int) -> Verdict:
        """Most parts that were tried must be noticed."""
        unnoticed = len(tried.unnoticed)
        first = tried.unnoticed[0] if tried.unnoticed else ""
        result = CheckResult(
            passed=not tried.is_thin,
            reason="thin_tests",
            problem=f"Without {unnoticed} of {tried.num_tried} parts of the code, every test passes; first {first}.",
            number=number,
            num_tests=len(candidate.fail_to_pass),
            evidence={
                "solution": "one part less",
                "parts": str(tried.num_tried),
                "unnoticed": str(unnoticed),
                "first_unnoticed": first,
            },
        )
        return verdict_row(self, candidate, result)

    def _tried_programs(self, candidate: Candidate, ids: Sequence[str]) -> tuple[TestRun, list[str], list[str]]:
        """The run of the trivial programs, those that could be tried, and those that pass all of the tests."""
        run = candidate.trees.try_programs(ids)
        tried = {program: status for program, status in run.statuses().items() if status is not Status.SKIPPED}
        return run, list(tried), [program for program, status in tried.items() if status is Status.PASSED]

    def _run(self, candidate: Candidate, tree: str) -> TestRun:
        """A run in which a test fails if any does: of the quickest tests or, if these pass, of all."""
        every = candidate.dependent_tests
        if candidate.trees.has_run(tree, every):
            return candidate.run(tree, ids=every)
        run = candidate.trees.first_failing(tree, _first_tests(candidate))
        is_enough = run.worker in SUITE_ENDED and _failing(run, candidate.fail_to_pass)
        return run if is_enough else candidate.run(tree, ids=every)


def _failing(run: TestRun, tests: Sequence[str]) -> list[str]:
    """Those of the tests that a run has and that do not pass.

    One without a result counts if its file cannot be collected, or if the tests kept the run from its end; if the test
    process was lost, nothing is known of it.
    """
    statuses = run.statuses()
    failing = not_passing(run, [test for test in tests if test in statuses])
    is_lost = run.worker is WorkerOutcome.OK and not (run.finished or run.collect_errors)
    return [test for test in failing if not (is_lost and statuses[test] is Status.MISSING)]


def _quickest_first(candidate: Candidate) -> list[str]:
    """The FAIL_TO_PASS tests by their durations on the untouched project."""
    durations = candidate.bench.baseline.durations
    return sorted(candidate.fail_to_pass, key=lambda test: (durations.get(test, 0.0), test))


def _first_tests(candidate: Candidate) -> list[str]:
    """The quickest FAIL_TO_PASS tests, as many as are worth to be run alone."""
    durations = candidate.bench.baseline.durations
    first = _quickest_first(candidate)[:FIRST_TESTS]
    seconds = accumulate(durations.get(test, 0.0) for test in first)
    return [test for place, (test, spent) in enumerate(zip(first, seconds, strict=True))
            if place < MIN_FIRST_TESTS or spent <= FIRST_S]  # fmt: skip
