"""One conversation with a model that calls tools, until a tool ends it or a limit does.

Knows nothing of what the tools are for: installers, deleters, judges and rollouts bring their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from excise.agents.messages import Client, Message, Request, ToolCall, size_of, tool_message
from excise.agents.tool import MalformedCall, Result, Tool, clip
from excise.agents.transcript import Transcript

ELIDED = "[an old result, left out to save room]"


class Ended(StrEnum):
    """Why a conversation ended."""

    FINISHED = "finished"
    """A tool ended it."""
    STEPS = "step_limit"
    """The limit of steps was reached."""
    MALFORMED = "malformed_calls"
    """Too many answers in a row had no valid call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one conversation."""

    max_steps: int = 40
    """Number of answers of the model."""
    max_malformed: int = 5
    """Number of answers in a row without a valid call."""
    result_chars: int = 12_000
    """Characters of one tool's result; the model gets the beginning and the end of a longer one."""
    context_chars: int = 240_000
    """Characters of the whole conversation; above, the oldest results of tools are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a conversation ended."""

    ended: Ended
    """The reason."""
    value: Any = None
    """The value of the tool that ended it."""
    steps: int = 0
    """Number of answers of the model."""
    malformed: int = 0
    """Number of invalid calls and of answers without a call."""
    messages: tuple[Message, ...] = ()
    """The whole conversation."""


def converse(
    name: str,
    client: Client,
    opening: Request,
    tools: Sequence[Tool[Any]],
    limits: Limits,
    transcript: Transcript,
) -> Outcome:
    """Let the model of ``opening`` call ``tools``, starting from its messages.

    ``name`` tells conversations of one transcript apart. Raises :class:`excise.errors.AgentError` where no answer
    can be had or the budget is used up, and whatever a tool raises beside ``ToolError``.
    """
    talk = _Talk(name, client, replace(opening, tools=tuple(t.schema() for t in tools)), tools, limits, transcript)
    outcome = talk.go()
    transcript.ended(name, outcome.ended, outcome.steps, outcome.malformed)
    return outcome


class _Talk:
    def __init__(
        self,
        name: str,
        client: Client,
        opening: Request,
        tools: Sequence[Tool[Any]],
        limits: Limits,
        transcript: Transcript,
    ) -> None:
        self.name, self.client, self.request = name, client, opening
        self.tools = {tool.name: tool for tool in tools}
        self.limits, self.transcript = limits, transcript
        self.malformed = self.in_a_row = 0

    def go(self) -> Outcome:
        self.transcript.started(self.name, self.request)
        for step in range(1, self.limits.max_steps + 1):
            reply = self.transcript.asked(self.name, self.client, fitted(self.request, self.limits.context_chars))
            final = self.answer(reply.message)
            if final is not None:
                return self.outcome(Ended.FINISHED, step, final.value)
            if self.in_a_row >= self.limits.max_malformed:
                return self.outcome(Ended.MALFORMED, step)
        return self.outcome(Ended.STEPS, self.limits.max_steps)

    def outcome(self, ended: Ended, steps: int, value: Any = None) -> Outcome:
        return Outcome(ended=ended, value=value, steps=steps, malformed=self.malformed, messages=self.request.messages)

    def say(self, *messages: Message) -> None:
        self.request = replace(self.request, messages=(*self.request.messages, *messages))

    def answer(self, message: Message) -> Result | None:
        """Run the calls of one answer; the result that ends the conversation, if one does."""
        self.say(message)
        good = 0
        for call in message.tool_calls:
            try:
                tool, arguments = self.understood(call)
            except MalformedCall as error:
                self.malformed += 1
                self.say(tool_message(call, self.told(call, f"error: {error}", malformed=True)))
                continue
            good += 1
            done = tool.call(arguments)
            self.say(tool_message(call, self.told(call, done.text)))
            if done.final:
                return done
        if not message.tool_calls:
            self.malformed += 1
            self.say(Message(role="user", content=f"Answer with a call of a tool: {', '.join(self.tools)}."))
        self.in_a_row = 0 if good else self.in_a_row + 1
        return None

    def understood(self, call: ToolCall) -> tuple[Tool[Any], Any]:
        tool = self.tools.get(call.name)
        if tool is None:
            raise MalformedCall(f"there is no tool {call.name!r}; there are: {', '.join(self.tools)}")
        return tool, tool.parse(call.arguments)

    def told(self, call: ToolCall, text: str, *, malformed: bool = False) -> str:
        return self.transcript.told(self.name, call, clip(text, self.limits.result_chars), malformed=malformed)


def fitted(request: Request, limit: int) -> Request:
    """The request without the oldest tool results that make it longer than ``limit`` characters."""
    excess = size_of(request.messages, request.tools) - limit
    messages = list(request.messages)
    for number, message in enumerate(messages):
        if excess <= 0:
            break
        if message.role == "tool" and len(message.content) > len(ELIDED):
            excess -= len(message.content) - len(ELIDED)
            messages[number] = replace(message, content=ELIDED)
    return replace(request, messages=tuple(messages))
