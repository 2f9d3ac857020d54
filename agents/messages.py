"""Records of requests to a model and its replies, independent of the endpoint.

A :class:`Request` contains all inputs of a reply; its hash identifies it in transcripts.
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
    """Id that the message with the result refers to."""
    name: str
    """Name of the tool."""
    arguments: str
    """JSON text as the model wrote it; may be invalid."""


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
    """Id of the call whose result a ``tool`` message holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of one or several replies."""

    prompt_tokens: int = 0
    """Prompt tokens."""
    completion_tokens: int = 0
    """Completion tokens, including reasoning tokens."""

    @property
    def total(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a model."""

    model: str
    """Name of the model at its endpoint."""
    messages: tuple[Message, ...]
    """The conversation so far."""
    tools: tuple[dict[str, Any], ...] = ()
    """Available tools, each with ``name``, ``description`` and ``parameters`` (a JSON schema)."""
    temperature: float = 0.0
    """Sampling temperature."""
    max_reply_tokens: int = 4096
    """Maximum number of tokens of the reply; the budget may allow fewer."""

    @property
    def request_id(self) -> str:
        """Content hash of the request."""
        return content_id("request", to_dict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply of a model."""

    message: Message
    """Text and tool calls."""
    usage: Usage = Usage()
    """Number of tokens used."""
    finish_reason: str = ""
    """Why generation stopped: ``stop``, ``tool_calls``, ``length``, …"""


class Client(Protocol):
    """Returns replies to requests, from an endpoint or a recording."""

    def complete(self, request: Request) -> Reply:
        """The reply to a request. Raises :class:`excise.errors.AgentError`."""
        ...


def tool_message(call: ToolCall, content: str) -> Message:
    """The message with the result of a call."""
    return Message(role="tool", content=content, tool_call_id=call.call_id)


def conversation_chars(messages: tuple[Message, ...], tools: tuple[Mapping[str, Any], ...] = ()) -> int:
    """Length of a conversation in characters, tool calls and tool schemas included."""
    num_chars = sum(len(m.content) + sum(len(c.name) + len(c.arguments) for c in m.tool_calls) for m in messages)
    return num_chars + sum(len(str(tool)) for tool in tools)
