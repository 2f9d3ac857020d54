"""Step 12, after the gates: make the grading kit from the original code, to be stored with the task."""

from __future__ import annotations

from functools import partial

from excise.types import GradingKit, Verdict, to_json
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.empty_solutions_fail import EmptySolutionsFail
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row
from excise.verifiers.grading.kit import kit_hash, make_kit


class CallsRecorded:
    """Makes the grading kit and its verdict row.

    One with few recorded calls is valid, and its certificate says how many there are. A task is refused where only
    lifted and mirrored tests tell a forged result and there are none.
    """

    name = "g10_calls"
    claim = (
        "On the original code, recorded calls have equal outcomes in every replay, divided tests pass, and tests that "
        "expect what is wrong fail; all are stored for graders"
    )

    def kit(self, candidate: Candidate) -> GradingKit:
        """Make the kit of a candidate. Raises :class:`ExciseError`."""
        empty, is_enough = candidate.edits("none"), partial(EmptySolutionsFail().refutes, candidate)
        return make_kit(candidate.bench, candidate.task, empty, candidate.behaviour, is_enough=is_enough)

    def make(self, candidate: Candidate) -> tuple[GradingKit, Verdict]:
        """Make the kit and the verdict row of a candidate that passed every gate. Raises :class:`SandboxError`."""
        kit = self.kit(candidate)
        evidence = {
            "kit": kit_hash(to_json(kit)),
            "functions_watched": str(kit.num_watched),
            "calls_recorded": str(kit.num_recorded),
            "calls_usable": str(len(kit.calls)),
            "calls_held_out": str(len(kit.held_out)),
            "calls_telling": str(kit.telling).lower(),
            "calls_refused": ", ".join(f"{why}: {count}" for why, count in sorted(kit.refused.items()))[:500],
            "tests_outside": str(len({*kit.by_calls, *(each.test for each in kit.lifted)})),
            "lifted_share": f"{len(kit.lifted) / len(candidate.fail_to_pass):.4f}",
            "tests_lifted": str(len(kit.lifted)),
            "tests_not_lifted": ", ".join(f"{why}: {count}" for why, count in sorted(kit.not_lifted.items()))[:500],
            "tests_mirrored": str(len(kit.mirrored)),
            "tests_uncounted": str(len(kit.uncounted)),
        }
        needs_mirrors = candidate.bench.language.grading.needs_mirrors
        guarded = [*kit.mirrored, *(each.test for each in kit.lifted)]
        is_guarded = not needs_mirrors or EmptySolutionsFail().refutes(candidate, guarded)
        result = CheckResult(
            passed=is_guarded,
            reason="only_unguarded_tests",
            problem="Too few FAIL_TO_PASS tests are lifted, or fail on the original with their checks turned round.",
            num_tests=len(candidate.fail_to_pass),
            evidence=evidence,
        )
        return kit, verdict_row(self, candidate, result)
