"""Gate 10: what graders need beside the tests is made from the original code, and stored with the task."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.types import to_json
from excise.verifiers.candidate import Candidate
from excise.verifiers.grading.kit import kit_hash, make_kit


class CallsRecorded:
    """Gate 10. Few calls are no ground for refusing: the certificate says how many there are."""

    name = "g10_calls"
    claim = (
        "Recorded calls were replayed on the original code with equal outcomes, and tests that expect what is wrong "
        "fail on it; both are stored for graders"
    )

    def check(self, candidate: Candidate) -> GateReport:
        """Make the kit. Raises :class:`SandboxError` if the sandbox fails."""
        assert candidate.task is not None, "gates see built tasks"
        kit = make_kit(candidate.bench, candidate.task, candidate.edits("none"))
        candidate.kit = kit
        verdict = candidate.judged(
            self,
            None,
            True,
            reason="",
            problem="",
            num_tests=len(candidate.fail_to_pass),
            evidence={
                "kit": kit_hash(to_json(kit)),
                "functions_watched": str(kit.num_watched),
                "calls_recorded": str(kit.num_recorded),
                "calls_usable": str(len(kit.calls)),
                "calls_telling": str(kit.telling).lower(),
                "calls_refused": ", ".join(f"{why}: {count}" for why, count in sorted(kit.refused.items()))[:500],
                "tests_mirrored": str(len(kit.mirrored)),
            },
        )
        return GateReport(verdicts=[verdict])
