"""Records of requests to a model and of its answers, independent of any endpoint.

A :class:`Request` is everything that decides an answer, so its hash identifies it in transcripts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from excise.types import content_id, to_dict


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool by a model."""

    call_id: str
    """Identifies the call in the message with its result."""
    name: str
    """Name of the tool."""
    arguments: str
    """JSON text as the model wrote it; may be broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: str
    """``system``, ``user``, ``assistant`` or ``tool``."""
    content: str = ""
    """Text."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls, in messages of the assistant."""
    tool_call_id: str = ""
    """The call that a ``tool`` message answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or of several answers."""

    prompt_tokens: int = 0
    """Prompt tokens."""
    completion_tokens: int = 0
    """Completion tokens, reasoning included."""

    @property
    def total(self) -> int:
        """Sum of both."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request: everything that determines the answer."""

    model: str
    """Name of the model at its endpoint."""
    messages: tuple[Message, ...]
    """The conversation so far."""
    tools: tuple[dict[str, Any], ...] = ()
    """Tools on offer: ``name``, ``description`` and ``parameters`` (a JSON schema) each."""
    temperature: float = 0.0
    """Sampling temperature."""
    max_reply_tokens: int = 4096
    """Most tokens of the answer; the budget may allow fewer."""

    @property
    def request_id(self) -> str:
        """Content hash of the request."""
        return content_id("request", to_dict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer."""

    message: Message
    """The text and the calls of the answer."""
    usage: Usage = Usage()
    """Tokens used."""
    finish_reason: str = ""
    """Why it stopped: ``stop``, ``tool_calls``, ``length``, …"""


class Client(Protocol):
    """Answers requests: an endpoint, or a recording."""

    def complete(self, request: Request) -> Reply:
        """Answer. Raises :class:`excise.errors.AgentError`."""
        ...


def tool_message(call: ToolCall, content: str) -> Message:
    """The message with the result of a call."""
    return Message(role="tool", content=content, tool_call_id=call.call_id)


def size_of(messages: tuple[Message, ...], tools: tuple[Mapping[str, Any], ...] = ()) -> int:
    """Characters of a conversation, calls and tool descriptions included: a rough measure of its tokens."""
    told = sum(len(m.content) + sum(len(c.name) + len(c.arguments) for c in m.tool_calls) for m in messages)
    return told + sum(len(str(tool)) for tool in tools)
