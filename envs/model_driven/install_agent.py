"""Stage 2: a model installs the repository in a sandbox; what it did is then carried out again from nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field

from excise.agents.messages import Client, Message, Request
from excise.agents.tool import Arguments, Result, Tool, ToolError
from excise.agents.tool_loop import Limits, Outcome, converse
from excise.agents.transcript import Transcript
from excise.envs.install.install_job import Installed
from excise.envs.model_driven.goals import Goal, output_of, said
from excise.envs.model_driven.mock_files import MAX_BYTES, objection
from excise.envs.model_driven.prompts import INSTALL_SYSTEM, install_task
from excise.envs.model_driven.reading_tools import read_file_tool
from excise.envs.model_driven.rollback_session import Workshop
from excise.envs.model_driven.verification import goals_met
from excise.errors import EnvironmentFailure
from excise.types import Recipe

MAX_STEPS, MAX_ATTEMPTS = 40, 5
MAX_COMMAND_S = 900.0

Verify = Callable[[Recipe], Installed]
"""Carries a recipe out from nothing and verifies what comes of it. Raises :class:`EnvironmentFailure`."""


class Bash(Arguments):
    """Arguments of ``bash``."""

    cmd: str = Field(min_length=1, max_length=20_000, description="what to run, in /testbed")
    timeout: float = Field(default=300.0, gt=0, le=MAX_COMMAND_S, description="seconds")


class WriteMock(Arguments):
    """Arguments of ``write_mock``."""

    path: str = Field(max_length=200, description="path in the folder of mocks, for example redis/__init__.py")
    reason: str = Field(min_length=1, max_length=500, description="what it stands in for, and why that cannot be had")
    content: str = Field(max_length=MAX_BYTES, description="the whole file")


class Nothing(Arguments):
    """No arguments."""


class Finish(Arguments):
    """Arguments of the install agent's ``finish``."""

    summary: str = Field(default="", max_length=2000, description="what was needed, in a sentence or two")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """How stage 2 ended."""

    installed: Installed | None
    """The verified environment."""
    failure: EnvironmentFailure | None
    """Why the last attempt failed; ``None`` if none was made."""
    attempts: int
    """How often the recipe was handed in."""
    outcome: Outcome
    """The conversation."""


def install_with_model(
    workshop: Workshop,
    visible: Sequence[Goal],
    verify: Verify,
    client: Client,
    opening: Request,
    limits: Limits,
    transcript: Transcript,
    failure: str,
    left_s: Callable[[], float],
) -> Installation:
    """Let the model work until a recipe of its is verified, or steps or attempts are used up.

    Raises :class:`excise.errors.AgentError`, and :class:`EnvironmentFailure` (``infra``).
    """
    bench = _Bench(workshop, visible, verify, left_s)
    site = workshop.site
    messages = (
        Message(role="system", content=INSTALL_SYSTEM),
        Message(role="user", content=install_task(site.repo, site.recipe, failure, visible)),
    )
    opening = replace(opening, messages=messages)
    outcome = converse("install", client, opening, bench.tools(), replace(limits, max_steps=MAX_STEPS), transcript)
    return Installation(installed=outcome.value, failure=bench.failure, attempts=bench.attempts, outcome=outcome)


class _Bench:
    """The tools of the install agent."""

    def __init__(
        self, workshop: Workshop, visible: Sequence[Goal], verify: Verify, left_s: Callable[[], float]
    ) -> None:
        self.workshop, self.visible, self.verify, self.left_s = workshop, visible, verify, left_s
        self.attempts = 0
        self.failure: EnvironmentFailure | None = None

    def tools(self) -> list[Tool[Any]]:
        return [
            Tool(name="bash", description="Run a bash command in /testbed.", arguments=Bash, run=self.bash),
            read_file_tool(lambda: self.workshop.session),
            Tool(name="write_mock", description="Write a stand-in for something that cannot be had.",
                 arguments=WriteMock, run=self.mock),
            Tool(name="snapshot", description="Keep the state, to come back to.", arguments=Nothing, run=self.snapshot),
            Tool(name="rollback", description="Back to the state kept last.", arguments=Nothing, run=self.rollback),
            Tool(name="run_goals", description="Run the known checks.", arguments=Nothing, run=self.goals),
            Tool(name="finish", description="Hand in the recipe.", arguments=Finish, run=self.finish),
        ]  # fmt: skip

    def bash(self, wanted: Bash) -> str:
        done = self.workshop.bash(wanted.cmd, max(1.0, min(wanted.timeout, self.left_s())))
        return f"{output_of(done).strip()}\n[{said(done)}]".lstrip()

    def mock(self, wanted: WriteMock) -> str:
        if why_not := objection(wanted.path, self.workshop.site.recipe.packages):
            raise ToolError(why_not)
        self.workshop.mock(wanted.path, wanted.reason, wanted.content)
        return f"written; tests that touch {wanted.path} count for less"

    def snapshot(self, _: Nothing) -> str:
        return f"kept; {self.workshop.snapshot() - 1} so far"

    def rollback(self, _: Nothing) -> str:
        self.workshop.rollback()
        return "back at the state kept last; what was done since is forgotten"

    def goals(self, _: Nothing) -> str:
        with self.workshop.as_it_is() as (env, built):
            found = goals_met(self.workshop.site, env, built, self.visible)
        return "\n".join(f"works: {goal.cmd}" if met else f"FAILS: {goal.cmd}\n{output}" for goal, met, output in found)

    def finish(self, _: Finish) -> Result:
        recipe = self.workshop.recipe()
        if not recipe.commands and not recipe.mocks:
            raise ToolError("nothing was done yet that could be a recipe")
        self.attempts += 1
        try:
            installed = self.verify(recipe)
        except EnvironmentFailure as failure:
            if failure.reason == "infra":
                raise
            self.failure = failure
        else:
            return Result(text="verified", final=True, value=installed)
        left = MAX_ATTEMPTS - self.attempts
        if left <= 0:
            return Result(text="no attempts are left", final=True)
        self.workshop.restart()
        return Result(
            text=f"The recipe does not hold ({self.failure.reason}): {self.failure}\n"
            f"Everything is back at the beginning; {left} attempts are left."
        )
