"""The tool-calling loop: a conversation with a model that calls tools, until a tool ends it or a limit is reached.

The loop is independent of the tools; installers and judges pass their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from excise.agents.messages import Client, Message, Request, ToolCall, conversation_chars, tool_message
from excise.agents.tool import MalformedCall, Result, Tool, clip
from excise.agents.transcript import Transcript

DROPPED_RESULT = "[an old result, left out to save room]"
"""Replaces the text of a tool result that was dropped."""


class StopReason(StrEnum):
    """Why a conversation ended."""

    FINISHED = "finished"
    """A tool returned a final result."""
    STEP_LIMIT = "step_limit"
    """The model answered ``max_steps`` times."""
    MALFORMED_CALLS = "malformed_calls"
    """``max_malformed`` answers in a row had no valid call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one conversation."""

    max_steps: int = 40
    """Maximum number of model replies."""
    max_malformed: int = 5
    """Maximum number of consecutive replies without a valid call."""
    result_chars: int = 12_000
    """Maximum length of one tool result in characters; longer results are cut in the middle."""
    context_chars: int = 240_000
    """Maximum length of the conversation in characters; above it, the oldest tool results are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult:
    """The result of a conversation."""

    stop_reason: StopReason
    """Why the conversation ended."""
    value: Any = None
    """Value of the final tool result; ``None`` if the conversation ended otherwise."""
    steps: int = 0
    """Number of model replies."""
    malformed: int = 0
    """Number of invalid calls and of replies without a call."""
    messages: tuple[Message, ...] = ()
    """The whole conversation."""


def run_tool_loop(
    name: str,
    client: Client,
    opening: Request,
    tools: Sequence[Tool[Any]],
    limits: Limits,
    transcript: Transcript,
) -> LoopResult:
    """Run a conversation in which the model may call ``tools``, starting from the messages of ``opening``.

    ``name`` identifies the conversation in the transcript. Raises :class:`excise.errors.AgentError` if the model cannot
    be reached or the budget is used up. Errors of tools other than ``ToolError`` propagate.
    """
    request = replace(opening, tools=tuple(tool.schema() for tool in tools))
    result = _Conversation(name, client, request, tools, limits, transcript).run()
    transcript.record_end(name, result.stop_reason, result.steps, result.malformed)
    return result


class _Conversation:
    """The state of a running conversation: the messages so far and the number of malformed calls."""

    def __init__(
        self,
        name: str,
        client: Client,
        request: Request,
        tools: Sequence[Tool[Any]],
        limits: Limits,
        transcript: Transcript,
    ) -> None:
        self.name, self.client, self.request = name, client, request
        self.tools = {tool.name: tool for tool in tools}
        self.limits, self.transcript = limits, transcript
        self.malformed = self.consecutive_malformed = 0

    def run(self) -> LoopResult:
        self.transcript.record_start(self.name, self.request)
        for step in range(1, self.limits.max_steps + 1):
            request = drop_old_results(self.request, self.limits.context_chars)
            reply = self.transcript.request_reply(self.name, self.client, request)
            final = self._run_calls(reply.message)
            if final is not None:
                return self._result(StopReason.FINISHED, step, final.value)
            if self.consecutive_malformed >= self.limits.max_malformed:
                return self._result(StopReason.MALFORMED_CALLS, step)
        return self._result(StopReason.STEP_LIMIT, self.limits.max_steps)

    def _result(self, stop_reason: StopReason, steps: int, value: Any = None) -> LoopResult:
        return LoopResult(
            stop_reason=stop_reason,
            value=value,
            steps=steps,
            malformed=self.malformed,
            messages=self.request.messages,
        )

    def _append(self, *messages: Message) -> None:
        self.request = replace(self.request, messages=(*self.request.messages, *messages))

    def _run_calls(self, message: Message) -> Result | None:
        """Run the calls of one reply. Returns the final result if a tool returned one."""
        self._append(message)
        num_valid = 0
        for call in message.tool_calls:
            try:
                tool, arguments = self._resolve(call)
            except MalformedCall as error:
                self.malformed += 1
                self._append(tool_message(call, self._record(call, f"error: {error}", malformed=True)))
                continue
            num_valid += 1
            result = tool.call(arguments)
            self._append(tool_message(call, self._record(call, result.text)))
            if result.final:
                return result
        if not message.tool_calls:
            self.malformed += 1
            self._append(Message(role="user", content=f"Answer with a call of a tool: {', '.join(self.tools)}."))
        self.consecutive_malformed = 0 if num_valid else self.consecutive_malformed + 1
        return None

    def _resolve(self, call: ToolCall) -> tuple[Tool[Any], Any]:
        """The tool of a call and its parsed arguments. Raises :class:`MalformedCall`."""
        tool = self.tools.get(call.name)
        if tool is None:
            raise MalformedCall(f"there is no tool {call.name!r}; there are: {', '.join(self.tools)}")
        return tool, tool.parse(call.arguments)

    def _record(self, call: ToolCall, text: str, *, malformed: bool = False) -> str:
        """Clip a tool result and record it. Returns the text for the model."""
        clipped = clip(text, self.limits.result_chars)
        return self.transcript.record_tool_result(self.name, call, clipped, malformed=malformed)


def drop_old_results(request: Request, limit: int) -> Request:
    """The request shortened to about ``limit`` characters: the oldest tool results become :data:`DROPPED_RESULT`."""
    excess = conversation_chars(request.messages, request.tools) - limit
    messages = list(request.messages)
    for number, message in enumerate(messages):
        if excess <= 0:
            break
        if message.role == "tool" and len(message.content) > len(DROPPED_RESULT):
            excess -= len(message.content) - len(DROPPED_RESULT)
            messages[number] = replace(message, content=DROPPED_RESULT)
    return replace(request, messages=tuple(messages))
