"""One attempt of the configured model at a task: its prompt, its tools, and what it changed."""

from __future__ import annotations

from collections.abc import Callable

from excise.agents.messages import Message
from excise.agents.tool_loop import LoopResult
from excise.envs.model_driven.model_access import ModelAccess
from excise.envs.sandbox.mount_points import REPO
from excise.protocols import Session
from excise.trainer.rollouts.coding_tools import SYSTEM, Toolbox
from excise.verifiers.grading.intake import MAX_DIFF_BYTES


def attempt_task(
    access: ModelAccess,
    name: str,
    statement: str,
    session: Session,
    *,
    max_steps: int,
    left_s: Callable[[], float] = lambda: float("inf"),
) -> LoopResult:
    """Let the model work on a statement in a sandbox; ``name`` identifies the attempt in the transcript.

    ``left_s`` tells how many seconds are left, which commands may not exceed. Raises :class:`AgentError` if the model
    does not answer or the budget is used up.
    """
    opening = (Message(role="system", content=SYSTEM), Message(role="user", content=statement))
    return access.run_agent(name, opening, Toolbox(session, left_s=left_s).tools(), max_steps=max_steps)


def changes(session: Session) -> str:
    """The changes so far as a diff, cut off just above the grader's limit, so that it refuses larger ones."""
    return session.diff(REPO)[: MAX_DIFF_BYTES + 1].decode("utf-8", "surrogateescape")
