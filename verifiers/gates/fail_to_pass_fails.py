"""Gate 5: FAIL_TO_PASS tests fail without the feature and are in files that no solution may change."""

from __future__ import annotations

import re

from excise.protocols import GateReport
from excise.types import Status, symbol_of_test
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row
from excise.verifiers.workbench import SUITE_ENDED

_DRAWS = re.compile(
    rb"\b[Rr]and(?:om)?(?:\b|_|int\b|range\b)|Math\.random|\bsecrets\b|\buuid4\b|\bshuffle\b|\b[Ff]aker\b"
)
"""What code contains that draws at random."""
MAX_DRAWS, MAX_DRAWING_S = 20, 4.0
"""How often tests that may draw at random are run, and the seconds that this takes at most on the untouched project."""


class FailToPassFails:
    """Runs the hidden tests without the feature once more, and often those that may draw at random."""

    name = "g5_f2p_fail"
    claim = "Every FAIL_TO_PASS test fails on the shipped sources, and lies in a file that no solution may change"

    def check(self, candidate: Candidate) -> GateReport:
        """Restore the hidden tests without the code and run them a second time.

        FAIL_TO_PASS was selected by a first run; a test that failed only by chance then passes now.
        """
        run = candidate.run("deleted", ids=candidate.dependent_tests, number=1)
        statuses = dict(run.statuses())
        statuses |= dict.fromkeys(self._passing_by_chance(candidate), Status.PASSED)
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

    def _passing_by_chance(self, candidate: Candidate) -> list[str]:
        """Tests that may draw at random and that pass in one of many runs without the feature."""
        bench = candidate.bench
        if not bench.has_cheap_short_runs:
            return []
        tests = candidate.fail_to_pass
        if not any(_DRAWS.search(text.encode(errors="replace")) for _, text in candidate.deletion.text):
            tests = tuple(test for test in tests if _DRAWS.search(_source_of(candidate, test)))
        most = int(MAX_DRAWING_S / max(bench.expected_s(tests), MAX_DRAWING_S / MAX_DRAWS))
        for number in range(2, 2 + (most if tests else 0)):
            statuses = candidate.run("deleted", ids=tests, number=number).statuses()
            if passing := [test for test in tests if statuses.get(test) is Status.PASSED]:
                return passing
        return []


def _source_of(candidate: Candidate, test: str) -> bytes:
    """The source of a test's function; empty if it is not known."""
    codebase = candidate.bench.codebase
    symbol = codebase.symbols().get(symbol_of_test(test))
    return codebase.modules[symbol.path].source[symbol.start : symbol.end] if symbol is not None else b""
