"""Lets the configured model try tasks while they are proven (``model.solve_attempts``)."""

from __future__ import annotations

from excise.agents.tool_loop import LoopResult
from excise.config import Settings
from excise.envs.model_driven.model_access import ModelAccess
from excise.errors import AgentError, SandboxError
from excise.pipeline.stages.model_attempt import attempt_task, changes
from excise.pipeline.stages.model_conversation import model_conversation
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.types import GradingKit, Verdict
from excise.verifiers.agent_workspace import workspace
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.all_gates import SOLVED_BY_MODEL
from excise.verifiers.gates.solved_by_model import Solver, SolvingAttempt
from excise.verifiers.grading.grader import GradeRequest, GradingConditions, find_conditions, grade
from excise.verifiers.workbench import Workbench

VERSION = 1
"""Version of the prompt and of the tools; part of cache keys."""


def solver_of(settings: Settings) -> Solver | None:
    """The solver that the settings ask for; ``None`` if they ask for none."""
    return _ModelSolver(settings) if settings.model.solve_attempts else None


class _ModelSolver:
    """Tries tasks of one workbench. Every task is a job of its own, with the budget of the settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def __call__(self, candidate: Candidate, kit: GradingKit) -> Verdict:
        """See :data:`excise.verifiers.gates.solved_by_model.Solver`. Raises :class:`ExciseError`."""
        bench, model = candidate.bench, self.settings.model
        attempts: list[SolvingAttempt] = []
        name = f"solve-{candidate.task.instance_id}"
        with (
            workspace(bench, candidate.edits("shipped")) as tree,
            model_conversation(self.settings, name) as (client, _, transcript),
        ):
            access = ModelAccess.of(model, client, transcript)
            for number in range(1, model.solve_attempts + 1):
                with tree.open() as session:
                    statement = candidate.task.problem_statement
                    try:
                        done = attempt_task(
                            access, f"attempt {number}", statement, session, max_steps=model.solve_steps
                        )
                    except AgentError as error:
                        if error.reason != "budget" or not attempts:
                            raise
                        break  # what was tried counts
                    diff = changes(session)
                attempts.append(self._graded(candidate, kit, diff, done))
        return SOLVED_BY_MODEL.row(candidate, model.model, attempts)

    def _graded(self, candidate: Candidate, kit: GradingKit, diff: str, done: LoopResult) -> SolvingAttempt:
        """Grade an attempt. Raises :class:`SandboxError` if the infrastructure fails, so that nothing is decided."""
        conditions = self._conditions(candidate.bench)
        found = grade(candidate.bench, GradeRequest(task=candidate.task, kit=kit, diff=diff, conditions=conditions))
        if not found.decided:
            raise SandboxError(f"An attempt could not be graded: {found.evidence.get('error', found.worker_outcome)}")
        return SolvingAttempt(
            solved=found.reward == 1.0, ending=done.stop_reason, steps=done.steps, reasons=found.reasons
        )

    def _conditions(self, bench: Workbench) -> GradingConditions:
        """The conditions of grades, which all tasks of an environment share, in the cache that graders use."""
        key = stage_key("conditions", bench.prepared.environment.env_id, self.settings.sandbox)
        return StageCache(self.settings.cache).get_or_make(
            GradingConditions, "conditions", key, lambda: find_conditions(bench, bench.baseline.passing())
        )
