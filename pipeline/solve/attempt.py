"""Records of ``excise solve``: what an agent gets for one attempt, what it gives back, and what an agent must offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from excise.agents.budget import Meter
from excise.agents.messages import Usage
from excise.errors import AgentError
from excise.pipeline.services.arena import RecordedSandbox


class AttemptEnding(StrEnum):
    """How an attempt ended. An infrastructure failure is none: such an attempt is made again."""

    FINISHED = "finished"
    """The agent declared its work done."""
    STEPS = "step_limit"
    """The limit of steps was reached."""
    TOKENS = "token_limit"
    """The limit of tokens was reached."""
    COST = "cost_limit"
    """The limit of cost was reached."""
    TIME = "time_limit"
    """The time limit was reached."""
    CONTEXT = "context_full"
    """The conversation became too long for the model."""
    MALFORMED = "malformed_calls"
    """Several replies in a row had no valid tool call."""
    FAILED = "failed"
    """The agent's program ended with an error."""


ENDING_OF_LIMIT = {
    "max_steps": AttemptEnding.STEPS,
    "max_tokens": AttemptEnding.TOKENS,
    "max_cost": AttemptEnding.COST,
    "max_wall_s": AttemptEnding.TIME,
}
"""Setting of a limit to the ending of an attempt that reaches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptJob:
    """What an agent gets for one attempt."""

    attempt_id: str
    """Id of the attempt, unique in its run."""
    run: str
    """Name of the run."""
    statement: str
    """What it is asked to do."""
    sandbox: RecordedSandbox
    """The sandbox with the task's tree, open until the attempt is graded."""
    is_stopped: Callable[[], bool]
    """Whether the run is being stopped, so that the attempt should end now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """What an agent did in one attempt. Unless it says otherwise, the changes in its sandbox are graded."""

    ending: AttemptEnding = AttemptEnding.FINISHED
    """How the attempt ended."""
    detail: str = ""
    """Explanation of the ending."""
    usage: Usage | None = None
    """Tokens of the model; ``None`` if none were seen."""
    steps: int | None = None
    """Number of replies of the model; ``None`` if none were seen."""
    transcript: str = ""
    """The agent's own record."""
    diff: str | None = None
    """Changes made outside the sandbox, which are graded in place of those inside."""
    refused: str = ""
    """Reason code if the changes cannot even be read as a diff; the attempt then has no reward."""
    output: str | None = None
    """Output of an agent that worked outside the sandbox, for the monitor."""


class Agent(Protocol):
    """Attempts tasks. Safe for several threads."""

    name: str
    """Name in the rows: ``model``, ``command``, ``mini``, ``gold``, ``noop`` or ``stub``."""
    detail: str
    """Version or command line."""
    model: str
    """Name of the model; empty if there is none."""

    def attempt(self, job: AttemptJob) -> AttemptOutcome:
        """Work on a task until done or a limit is reached.

        A fault of the agent is an ending. Raises :class:`excise.errors.ExciseError` for a failure of the infrastructure
        (sandbox, endpoint), which is no attempt.
        """
        ...


def limit_reached(meter: Meter, steps: int = 0, max_steps: int = 0) -> tuple[AttemptEnding, str] | None:
    """The ending for the limit that an attempt has reached, and a sentence; ``None`` if it has reached none."""
    if max_steps and steps >= max_steps:
        return AttemptEnding.STEPS, f"the model has answered {steps} times"
    setting, what = meter.exhausted()
    return (ENDING_OF_LIMIT[setting], what) if setting else None


class AttemptsStopped(AgentError):
    """The run was stopped while an attempt was in progress; it is made again when the run goes on."""

    reason = "stopped"
