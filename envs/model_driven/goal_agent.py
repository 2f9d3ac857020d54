"""Stage 1: a model reads the repository and says how one can tell that it is installed. It never sees stage 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from excise.agents.messages import Client, Message, Request
from excise.agents.tool import Arguments, Result, Tool, ToolError
from excise.agents.tool_loop import Limits, converse
from excise.agents.transcript import Transcript
from excise.envs.model_driven.goals import Goal, attain, enough, objections
from excise.envs.model_driven.install_context import Site
from excise.envs.model_driven.prompts import GOALS_SYSTEM, goals_task
from excise.envs.model_driven.reading_tools import reading_tools
from excise.errors import EnvironmentFailure

MAX_STEPS = 15


class Proposal(Arguments):
    """Arguments of the goal agent's ``finish``."""

    goals: list[Goal] = Field(description="the ten commands")


def propose_goals(
    site: Site, bare: Path, client: Client, opening: Request, limits: Limits, transcript: Transcript, failure: str
) -> tuple[Goal, ...]:
    """Commands that fail in the ``bare`` environment and are founded on lines of the sources.

    ``opening`` says which model is asked and how; its messages are set here. Raises :class:`EnvironmentFailure`
    (``vacuous_goals``) where the model brings no such commands, and :class:`excise.errors.AgentError`.
    """
    desk = _Desk(site, bare)
    messages = (
        Message(role="system", content=GOALS_SYSTEM),
        Message(role="user", content=goals_task(site.repo, failure)),
    )
    with site.checking([bare]) as session:
        finish = Tool(name="finish", description="Hand in the commands.", arguments=Proposal, run=desk.judge)
        tools: list[Tool[Any]] = [*reading_tools(session), finish]
        few = replace(limits, max_steps=MAX_STEPS)
        outcome = converse("goals", client, replace(opening, messages=messages), tools, few, transcript)
    goals: tuple[Goal, ...] = outcome.value or desk.best
    if not enough(goals):
        raise EnvironmentFailure(
            f"{site.repo.repo}: the model named no commands that tell an installed project from an empty environment "
            f"({outcome.ended} after {outcome.steps} steps). {desk.last}".strip(),
            reason="vacuous_goals",
        )
    return goals


class _Desk:
    """Judges proposals: form first, then by running them where nothing is installed."""

    def __init__(self, site: Site, bare: Path) -> None:
        self.site, self.bare = site, bare
        self.best: tuple[Goal, ...] = ()
        self.last = ""

    def judge(self, proposal: Proposal) -> Result:
        if wrong := objections(proposal.goals, self.line_exists):
            self.last = f"Its last proposal: {'; '.join(wrong)}."
            raise ToolError(f"{'; '.join(wrong)}. Correct this and call finish again with all commands.")
        vacuous = self.vacuous(proposal.goals)
        good = tuple(goal for goal in proposal.goals if goal not in vacuous)
        if len(good) > len(self.best):
            self.best = good
        if not vacuous:
            return Result(text="accepted", final=True, value=good)
        listed = "; ".join(goal.cmd for goal in vacuous)
        self.last = f"These work without any installation: {listed}."
        raise ToolError(f"{self.last} Replace them and call finish again with all commands.")

    def vacuous(self, goals: Sequence[Goal]) -> list[Goal]:
        with self.site.checking([self.bare]) as session:
            return [goal for goal in goals if attain(session, goal)[0]]

    def line_exists(self, path: str, line: int) -> bool:
        root = self.site.sources.resolve()
        file = (root / path).resolve()
        if not file.is_relative_to(root) or not file.is_file():
            return False
        with open(file, encoding="utf-8", errors="replace") as lines:
            return any(number == line and text.strip() for number, text in enumerate(lines, 1))
