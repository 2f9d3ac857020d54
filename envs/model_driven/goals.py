"""Goals: commands that work once a project is installed, each with its expected result and a source line as evidence.

Three of them, chosen by hash, are shown to the agent that installs; the others are held out for verification.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field, field_validator

from excise.agents.tool import Arguments
from excise.protocols import Completed, Session
from excise.types import WorkerOutcome, content_id

NUM_GOALS, NUM_VISIBLE = 10, 3
MIN_TESTS = 4
"""Minimum number of goals that run tests."""
MIN_HELD_OUT = 5
"""Minimum number of held-out goals that the environment must reach."""
GOAL_TIMEOUT_S = 300.0
"""Seconds for the command of one goal."""
_INSTALLS = re.compile(
    r"\b(pip3?|uv|poetry|pdm|conda|mamba|micromamba|apt|apt-get|npm|yarn|hatch|rye|pipx|easy_install)\b"
    r"[^|;&\n]*\b(install|add|sync|update|upgrade|download)\b"
    r"|setup\.py\s+(install|develop)|\buv\s+run\b|\b(tox|nox)\b|\b(curl|wget)\b"
)
"""Commands that install something or that make environments of their own."""


class Goal(Arguments):
    """One command that works once the project is installed."""

    cmd: str = Field(min_length=1, max_length=1000, description="bash command, run in the root of the checkout")
    kind: Literal["import", "cli", "collect", "unit", "build"] = Field(description="unit: it runs tests")
    expect_rc: int = Field(ge=0, le=255, description="exit status that it must have")
    expect_regex: str = Field(max_length=300, description="Perl regular expression found in its output; may be empty")
    why: str = Field(max_length=500, description="why this works only in a good installation")
    source: str = Field(description="file:line of the repository that shows that the project works like this")

    @field_validator("source")
    @classmethod
    def _file_and_line(cls, source: str) -> str:
        if not re.fullmatch(r"[^:\0]+:[1-9]\d{0,6}", source):
            raise ValueError("write it as file:line, for example tox.ini:12")
        return source

    @property
    def place(self) -> tuple[str, int]:
        """File and line."""
        path, _, line = self.source.rpartition(":")
        return path.removeprefix("./"), int(line)


def find_violations(goals: Sequence[Goal], line_exists: Callable[[str, int], bool]) -> list[str]:
    """Violations of the form that proposed goals must have, one sentence each; no command is run.

    ``line_exists(path, line)`` tells whether the repository has a non-empty line.
    """
    found = []
    if len(goals) != NUM_GOALS:
        found.append(f"there must be exactly {NUM_GOALS} commands, not {len(goals)}")
    if len({goal.cmd.strip() for goal in goals}) < len(goals):
        found.append("all commands must differ")
    if (tests := sum(goal.kind == "unit" for goal in goals)) < MIN_TESTS:
        found.append(f"at least {MIN_TESTS} must run tests (kind unit), not {tests}")
    for number, goal in enumerate(goals, 1):
        if _INSTALLS.search(goal.cmd):
            found.append(f"command {number} installs something or makes an environment: {goal.cmd}")
        if not line_exists(*goal.place):
            found.append(f"command {number}: the repository has no such line: {goal.source}")
    return found


def split_goals(goals: Sequence[Goal], tree: str) -> tuple[tuple[Goal, ...], tuple[Goal, ...]]:
    """Split goals into visible and held-out ones by hash: equal sources and goals are split alike."""
    ranked = sorted(goals, key=lambda goal: content_id("goal", tree, goal.model_dump(mode="json")))
    return tuple(ranked[:NUM_VISIBLE]), tuple(ranked[NUM_VISIBLE:])


def are_sufficient(goals: Sequence[Goal]) -> bool:
    """Whether there are enough goals, and enough that run tests, to judge an installation."""
    return len(goals) >= NUM_VISIBLE + MIN_HELD_OUT and sum(g.kind == "unit" for g in goals) >= MIN_TESTS


def check_goal(session: Session, goal: Goal, timeout_s: float = GOAL_TIMEOUT_S) -> tuple[bool, str]:
    """Run a goal's command in an open session; return whether it has the expected result, and the end of its output."""
    done = bash(session, goal.cmd, timeout_s)
    text = output_of(done)
    if done.worker is not WorkerOutcome.OK or done.rc != goal.expect_rc:
        return False, f"[{describe_end(done)}]\n{text[-1500:]}"
    if goal.expect_regex and not matches(session, goal.expect_regex, text):
        return False, f"[{describe_end(done)}, but {goal.expect_regex!r} is not in the output]\n{text[-1500:]}"
    return True, text[-1500:]


def matches(session: Session, pattern: str, text: str) -> bool:
    """Whether the output matches a regular expression.

    The model wrote the expression, so it is evaluated inside the sandbox, where a slow one is killed.
    """
    argv = ["/bin/grep", "-qPz", "-e", f"(?m){pattern}"]
    return session.exec(argv, timeout_s=20.0, stdin=text[-200_000:].encode(), cwd="/").rc == 0


def bash(session: Session, line: str, timeout_s: float) -> Completed:
    """Run a bash line in the checkout; as in recipes, the first command that fails ends it."""
    return session.exec(["/bin/bash", "-c", f"set -euo pipefail\n{line}"], timeout_s=timeout_s)


def output_of(done: Completed) -> str:
    """stdout, then stderr."""
    return (done.stdout + (b"\n" if done.stdout and done.stderr else b"") + done.stderr).decode(errors="replace")


def describe_end(done: Completed) -> str:
    """How a command ended, in words."""
    if done.worker is WorkerOutcome.TIMEOUT:
        return "killed: it ran out of time"
    if done.worker is WorkerOutcome.OOM:
        return "killed: it needs too much memory"
    return f"status {done.rc}" if done.worker is WorkerOutcome.OK else "killed from outside"
