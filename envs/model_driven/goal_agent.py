"""Stage 1: a model reads the repository and proposes goals for its installation. It never sees stage 2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from excise.agents.messages import Message
from excise.agents.tool import Arguments, Result, Tool, ToolError
from excise.envs.model_driven.goals import Goal, are_sufficient, check_goal, find_violations
from excise.envs.model_driven.install_context import InstallContext
from excise.envs.model_driven.model_access import ModelAccess
from excise.envs.model_driven.prompts import GOALS_SYSTEM, goals_task
from excise.envs.model_driven.reading_tools import reading_tools
from excise.errors import EnvironmentFailure

MAX_STEPS = 15


class Proposal(Arguments):
    """Arguments of the goal agent's ``finish``."""

    goals: list[Goal] = Field(description="the ten commands")


def propose_goals(context: InstallContext, bare: Path, model: ModelAccess, failure: str) -> tuple[Goal, ...]:
    """Return goals that fail in the ``bare`` environment and cite existing lines of the sources.

    ``failure`` describes the failure of the installation without a model. Raises :class:`EnvironmentFailure`
    (``vacuous_goals``) if the model proposes too few such goals, and :class:`excise.errors.AgentError`.
    """
    review = _ProposalReview(context, bare)
    messages = (
        Message(role="system", content=GOALS_SYSTEM),
        Message(role="user", content=goals_task(context.repo, failure)),
    )
    with context.open_checking([bare]) as session:
        finish = Tool(name="finish", description="Hand in the commands.", arguments=Proposal, run=review.submit)
        tools: list[Tool[Any]] = [*reading_tools(session), finish]
        outcome = model.run_agent("goals", messages, tools, max_steps=MAX_STEPS)
    goals: tuple[Goal, ...] = outcome.value or review.best
    if not are_sufficient(goals):
        raise EnvironmentFailure(
            f"{context.repo.repo}: the model named no commands that tell an installed project from an empty "
            f"environment ({outcome.stop_reason} after {outcome.steps} steps). {review.last_rejection}".strip(),
            reason="vacuous_goals",
        )
    return goals


class _ProposalReview:
    """Checks proposals: their form first, then by running the commands where nothing is installed."""

    def __init__(self, context: InstallContext, bare: Path) -> None:
        self.context, self.bare = context, bare
        self.best: tuple[Goal, ...] = ()
        self.last_rejection = ""

    def submit(self, proposal: Proposal) -> Result:
        """The tool ``finish``: accept a proposal, or raise ``ToolError`` with its violations."""
        if wrong := find_violations(proposal.goals, self.line_exists):
            self.last_rejection = f"Its last proposal: {'; '.join(wrong)}."
            raise ToolError(f"{'; '.join(wrong)}. Correct this and call finish again with all commands.")
        vacuous = self.vacuous(proposal.goals)
        good = tuple(goal for goal in proposal.goals if goal not in vacuous)
        if len(good) > len(self.best):
            self.best = good
        if not vacuous:
            return Result(text="accepted", final=True, value=good)
        listed = "; ".join(goal.cmd for goal in vacuous)
        self.last_rejection = f"These work without any installation: {listed}."
        raise ToolError(f"{self.last_rejection} Replace them and call finish again with all commands.")

    def vacuous(self, goals: Sequence[Goal]) -> list[Goal]:
        """Return the goals that are reached even in the bare environment, and so prove nothing."""
        with self.context.open_checking([self.bare]) as session:
            return [goal for goal in goals if check_goal(session, goal)[0]]

    def line_exists(self, path: str, line: int) -> bool:
        """Whether the repository has this line and it is not empty."""
        root = self.context.sources.resolve()
        file = (root / path).resolve()
        if not file.is_relative_to(root) or not file.is_file():
            return False
        with open(file, encoding="utf-8", errors="replace") as lines:
            return any(number == line and text.strip() for number, text in enumerate(lines, 1))
