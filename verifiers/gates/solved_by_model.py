"""Step 13, only where the settings ask for it: a model that sees what a solver sees solves the task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from excise.types import GradingKit, Verdict
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvingAttempt:
    """One attempt of a model at a task."""

    solved: bool
    """Whether it got the full reward."""
    ending: str
    """Why it ended."""
    steps: int
    """Number of the model's replies."""
    reasons: tuple[str, ...] = ()
    """Why the reward is not 1."""


Solver = Callable[[Candidate, GradingKit], Verdict]
"""Lets a model try a candidate, and returns the verdict row. Raises :class:`excise.errors.ExciseError`."""


class SolvedByModel:
    """Makes the verdict row of a model's attempts. Verification does not repeat them."""

    name = "g13_solved"
    claim = "A model that has the statement and the shipped tree alone gets the full reward in one of its attempts"

    def row(self, candidate: Candidate, model: str, attempts: Sequence[SolvingAttempt]) -> Verdict:
        """The row of the attempts of a model."""
        solved = [number for number, attempt in enumerate(attempts, 1) if attempt.solved]
        told = "; ".join(f"{each.ending} after {each.steps} steps: {', '.join(each.reasons)}" for each in attempts)
        evidence = {
            "model": model,
            "style": str(candidate.task.visibility),
            "attempts": str(len(attempts)),
            "solved": str(len(solved)),
            "first_solved": str(solved[0]) if solved else "",
            "steps": ", ".join(str(attempt.steps) for attempt in attempts),
        }
        result = CheckResult(
            passed=bool(solved),
            reason="" if solved else "not_solved",
            problem=f"None of {len(attempts)} attempts of {model} solved it ({told}).",
            num_tests=len(candidate.fail_to_pass),
            evidence=evidence,
        )
        return verdict_row(self, candidate, result)
