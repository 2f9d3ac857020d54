"""Stage 2: a model installs the repository in a sandbox; its commands are then verified in a fresh one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from excise.agents.messages import Message
from excise.agents.tool import Arguments, Result, Tool, ToolError
from excise.agents.tool_loop import LoopResult
from excise.envs.install.install_job import Installed
from excise.envs.model_driven.goals import Goal, describe_end, output_of
from excise.envs.model_driven.mock_files import MAX_BYTES, path_violation
from excise.envs.model_driven.model_access import ModelAccess
from excise.envs.model_driven.prompts import INSTALL_SYSTEM, install_task
from excise.envs.model_driven.reading_tools import read_file_tool
from excise.envs.model_driven.rollback_session import RollbackSession
from excise.envs.model_driven.verification import check_goals
from excise.errors import EnvironmentFailure
from excise.types import Recipe

MAX_STEPS, MAX_ATTEMPTS = 40, 5
MAX_COMMAND_S = 900.0
"""Longest timeout that the model may set for a command, in seconds."""

Verify = Callable[[Recipe], Installed]
"""Builds the environment of a recipe in a fresh sandbox and verifies it. Raises :class:`EnvironmentFailure`."""


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
class AgentResult:
    """The result of the install agent."""

    installed: Installed | None
    """The verified environment; ``None`` if no attempt succeeded."""
    failure: EnvironmentFailure | None
    """Why the last attempt failed; ``None`` if there was no attempt."""
    attempts: int
    """Number of recipes that the model submitted."""
    outcome: LoopResult
    """The conversation."""


def run_install_agent(
    session: RollbackSession,
    visible: Sequence[Goal],
    verify: Verify,
    model: ModelAccess,
    failure: str,
    remaining_s: Callable[[], float],
) -> AgentResult:
    """Let the model work until one of its recipes is verified, or steps or attempts are used up.

    ``visible`` are the goals that the model is shown, ``failure`` describes the failure of the installation without a
    model, ``remaining_s()`` returns the seconds left in the budget. Raises :class:`excise.errors.AgentError`, and
    :class:`EnvironmentFailure` (``infra``).
    """
    tools = _InstallTools(session, visible, verify, remaining_s)
    context = session.context
    messages = (
        Message(role="system", content=INSTALL_SYSTEM),
        Message(role="user", content=install_task(context.repo, context.recipe, failure, visible)),
    )
    outcome = model.run_agent("install", messages, tools.tools(), max_steps=MAX_STEPS)
    return AgentResult(installed=outcome.value, failure=tools.failure, attempts=tools.attempts, outcome=outcome)


class _InstallTools:
    """The tools of the install agent."""

    def __init__(
        self, session: RollbackSession, visible: Sequence[Goal], verify: Verify, remaining_s: Callable[[], float]
    ) -> None:
        self.session, self.visible, self.verify, self.remaining_s = session, visible, verify, remaining_s
        self.attempts = 0
        self.failure: EnvironmentFailure | None = None

    def tools(self) -> list[Tool[Any]]:
        return [
            Tool(name="bash", description="Run a bash command in /testbed.", arguments=Bash, run=self.bash),
            read_file_tool(lambda: self.session.session),
            Tool(name="write_mock", description="Write a stand-in for something that cannot be had.",
                 arguments=WriteMock, run=self.mock),
            Tool(name="snapshot", description="Keep the state, to come back to.", arguments=Nothing, run=self.snapshot),
            Tool(name="rollback", description="Back to the state kept last.", arguments=Nothing, run=self.rollback),
            Tool(name="run_goals", description="Run the known checks.", arguments=Nothing, run=self.goals),
            Tool(name="finish", description="Hand in the recipe.", arguments=Finish, run=self.finish),
        ]  # fmt: skip

    def bash(self, wanted: Bash) -> str:
        done = self.session.bash(wanted.cmd, max(1.0, min(wanted.timeout, self.remaining_s())))
        return f"{output_of(done).strip()}\n[{describe_end(done)}]".lstrip()

    def mock(self, wanted: WriteMock) -> str:
        if violation := path_violation(wanted.path, self.session.context.recipe.packages):
            raise ToolError(violation)
        self.session.write_mock(wanted.path, wanted.reason, wanted.content)
        return f"written; tests that touch {wanted.path} count for less"

    def snapshot(self, _: Nothing) -> str:
        return f"kept; {self.session.snapshot() - 1} so far"

    def rollback(self, _: Nothing) -> str:
        self.session.rollback()
        return "back at the state kept last; what was done since is forgotten"

    def goals(self, _: Nothing) -> str:
        with self.session.current_layers() as (env, built):
            found = check_goals(self.session.context, env, built, self.visible)
        return "\n".join(f"works: {goal.cmd}" if met else f"FAILS: {goal.cmd}\n{output}" for goal, met, output in found)

    def finish(self, _: Finish) -> Result:
        recipe = self.session.recipe()
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
        remaining = MAX_ATTEMPTS - self.attempts
        if remaining <= 0:
            return Result(text="no attempts are left", final=True)
        self.session.restart()
        return Result(
            text=f"The recipe does not hold ({self.failure.reason}): {self.failure}\n"
            f"Everything is back at the beginning; {remaining} attempts are left."
        )
