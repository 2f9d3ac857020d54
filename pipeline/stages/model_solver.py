"""Lets the configured model try tasks while they are proven (``model.solve_attempts``)."""

from __future__ import annotations

from excise.agents.messages import Message, Request
from excise.agents.tool_loop import Limits, LoopResult, run_tool_loop
from excise.config import Settings
from excise.envs.sandbox.mount_points import REPO
from excise.errors import AgentError
from excise.pipeline.stages.model_conversation import model_conversation
from excise.trainer.rollouts.coding_tools import SYSTEM, Toolbox
from excise.types import GradingKit, Verdict
from excise.verifiers.agent_workspace import workspace
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.all_gates import SOLVED_BY_MODEL
from excise.verifiers.gates.solved_by_model import Solver, SolvingAttempt
from excise.verifiers.grading.grader import GradeRequest, GradingConditions, find_conditions, grade
from excise.verifiers.grading.intake import MAX_DIFF_BYTES
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
        self.conditions: dict[str, GradingConditions] = {}

    def __call__(self, candidate: Candidate, kit: GradingKit) -> Verdict:
        """See :data:`excise.verifiers.gates.solved_by_model.Solver`. Raises :class:`ExciseError`."""
        bench, model = candidate.bench, self.settings.model
        attempts: list[SolvingAttempt] = []
        name = f"solve-{candidate.task.instance_id}"
        with (
            workspace(bench, candidate.edits("shipped")) as tree,
            model_conversation(self.settings, name) as (client, _, transcript),
        ):
            opening = Request(
                model=model.model,
                messages=_opening(candidate),
                temperature=model.temperature,
                max_reply_tokens=model.max_reply_tokens,
            )
            limits = Limits(max_steps=model.solve_steps, context_chars=model.context_chars)
            for number in range(1, model.solve_attempts + 1):
                with tree.open() as session:
                    tools = Toolbox(session).tools()
                    try:
                        done = run_tool_loop(f"attempt {number}", client, opening, tools, limits, transcript)
                    except AgentError as error:
                        if error.reason != "budget" or not attempts:
                            raise
                        break  # what was tried counts
                    diff = session.diff(REPO)[: MAX_DIFF_BYTES + 1].decode("utf-8", "surrogateescape")
                attempts.append(self._graded(candidate, kit, diff, done))
        return SOLVED_BY_MODEL.row(candidate, model.model, attempts)

    def _graded(self, candidate: Candidate, kit: GradingKit, diff: str, done: LoopResult) -> SolvingAttempt:
        conditions = self._conditions(candidate.bench)
        found = grade(candidate.bench, GradeRequest(task=candidate.task, kit=kit, diff=diff, conditions=conditions))
        return SolvingAttempt(
            solved=found.decided and found.reward == 1.0,
            ending=done.stop_reason,
            steps=done.steps,
            reasons=found.reasons,
        )

    def _conditions(self, bench: Workbench) -> GradingConditions:
        env_id = bench.prepared.environment.env_id
        if env_id not in self.conditions:
            self.conditions[env_id] = find_conditions(bench, bench.baseline.passing())
        return self.conditions[env_id]


def _opening(candidate: Candidate) -> tuple[Message, ...]:
    statement = candidate.task.problem_statement
    return Message(role="system", content=SYSTEM), Message(role="user", content=statement)
