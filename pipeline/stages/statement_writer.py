"""Lets the configured model write statements of a proven task in other styles (``model.write_statements``).

The model sees the specification and never the removed code. What it writes is judged: a text with a line of the removed
code is refused, and so is an ambiguous one that leaves nothing out. To a specification or an issue the completeness
judge adds what it lacks. Where nothing comes of it, the set has the deterministic statement alone, and a rejection says
why.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from excise.agents.messages import Message
from excise.agents.tool import Arguments, Result, Tool, ToolError
from excise.config import Settings
from excise.deleters.statement.completeness import completed, missing_items, told_code
from excise.deleters.statement.styles import judged
from excise.envs.model_driven.model_access import ModelAccess
from excise.errors import ExciseError
from excise.pipeline.stages.error_boundary import is_conclusive, rejection_of
from excise.pipeline.stages.model_conversation import answering_model, model_conversation
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.types import Rejection, StatementStyle, Task, TaskStatement, WorkerOutcome

logger = logging.getLogger(__name__)

MAX_STEPS = 4
"""Replies of the model for one statement."""
MAX_TEXT = 40_000
"""Maximum number of characters of a statement."""
COMPLETED = frozenset({StatementStyle.SPECIFICATION, StatementStyle.ISSUE})
"""Styles to which the completeness judge adds what is missing."""
SYSTEM = """You write descriptions of programming tasks. You are given the specification of a feature that is missing in
a project. Write it again, in the style that you are asked for, in Markdown and in your own words. Say nothing that the
specification does not say, add no requirement, and give no code that implements the feature. Do not mention the
specification: whoever gets your text has nothing else. Hand the text in with the tool hand_in."""
STYLES = {
    StatementStyle.SPECIFICATION: (
        "Style: a detailed specification. Give every name, signature, file, value, message and behaviour that the "
        "specification gives; structure it so that it reads well."
    ),
    StatementStyle.ISSUE: (
        "Style: an issue in a bug tracker. Begin with a title. Tell what a user of the project does, what goes wrong "
        "now, and what should happen instead, with calls. Do not name private helpers."
    ),
    StatementStyle.TERSE: "Style: a terse request of a busy user, in one or two sentences. Give every public name.",
    StatementStyle.AMBIGUOUS: (
        "Style: a vague complaint of a user who does not know the code, in two to four sentences. Name at most half of "
        "what is missing, give no signature, and leave out details on purpose."
    ),
}
"""What the model is asked for, by style."""


class HandInStatement(Arguments):
    """Arguments of ``hand_in``."""

    text: str = Field(min_length=20, max_length=MAX_TEXT, description="The whole text, in Markdown.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenStatements:
    """What came of asking the model about one task."""

    statements: tuple[TaskStatement, ...] = ()
    """The statements that may be used."""
    rejections: tuple[Rejection, ...] = ()
    """Why there is none in a style."""


def model_statements(settings: Settings, task: Task) -> WrittenStatements:
    """The model's statements of a task in the styles of the settings; from the cache if it was asked before.

    A task is a job of its own: one budget, one transcript. Raises nothing: what fails is a rejection, and if the
    infrastructure failed, the next run asks again.
    """
    styles = tuple(dict.fromkeys(settings.model.write_statements))
    key = stage_key(
        "statement", task.instance_id, task.problem_statement, task.needs, styles, answering_model(settings)
    )
    cache = StageCache(settings.cache)
    cached = cache.get(WrittenStatements, "statement", key)
    if isinstance(cached, WrittenStatements):
        return cached
    statements: list[TaskStatement] = []
    rejections: list[Rejection] = []
    try:
        with model_conversation(settings, f"statements-{task.instance_id}") as (client, _, transcript):
            access = ModelAccess.of(settings.model, client, transcript)
            for style in styles:
                written = _written(access, task, style)
                (statements if isinstance(written, TaskStatement) else rejections).append(written)  # type: ignore[arg-type]
    except (ExciseError, OSError) as error:
        row = rejection_of("statement", task.repo, error)
        rejections.append(_rejection(task, row.reason, row.detail, WorkerOutcome.INFRA_ERROR))
        logger.warning("statement not written", extra={"task": task.instance_id, "detail": row.detail})
    found = WrittenStatements(statements=tuple(statements), rejections=tuple(rejections))
    if all(is_conclusive(row) for row in rejections):
        cache.put("statement", key, found)
    return found


def _written(access: ModelAccess, task: Task, style: StatementStyle) -> TaskStatement | Rejection:
    """Ask for one statement. Raises :class:`excise.errors.AgentError` if the model does not answer."""
    problems: list[tuple[str, str]] = []

    def hand_in(given: HandInStatement) -> Result:
        problem = _problem(task, style, given.text)
        if problem:
            problems.append(problem)
            raise ToolError(f"{problem[1]} Change the text and hand it in again.")
        return Result(text="Done.", final=True, value=given.text)

    tool: Tool[Any] = Tool(
        name="hand_in", description="Hand in the text. Nothing can be changed afterwards.", arguments=HandInStatement,
        run=hand_in,
    )  # fmt: skip
    opening = (
        Message(role="system", content=SYSTEM),
        Message(role="user", content=f"{STYLES[style]}\n\nThe specification:\n\n{task.problem_statement}"),
    )
    done = access.run_agent(f"{style} statement", opening, [tool], max_steps=MAX_STEPS)
    if not isinstance(done.value, str):
        reason, detail = problems[-1] if problems else (str(done.stop_reason), "The model handed in no text.")
        return _rejection(task, reason, f"{style}: {detail}")
    text, added = f"{done.value.strip()}\n", tuple[str, ...]()
    if style in COMPLETED:
        text, added = completed(task, text)
    return judged(task, style, access.template.model, text, added)


def _problem(task: Task, style: StatementStyle, text: str) -> tuple[str, str] | None:
    """Reason code and sentence for the model, if a text cannot be used."""
    if told_code(task, text):
        return "gives_code", "The text holds code that implements the feature."
    if style is StatementStyle.AMBIGUOUS and not missing_items(task, text):
        return "not_ambiguous", "The text leaves nothing out: it must be ambiguous on purpose."
    return None


def _rejection(task: Task, reason: str, detail: str, outcome: WorkerOutcome = WorkerOutcome.OK) -> Rejection:
    return Rejection(
        repo=task.repo, stage="statement", subject=task.instance_id, reason=reason, detail=detail,
        kind=task.difficulty.kind, symbols=task.removed, worker_outcome=outcome,
    )  # fmt: skip
