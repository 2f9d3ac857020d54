"""Conversion of requests and replies to and from the chat-completions protocol."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from excise.agents.messages import Message, Reply, Request, ToolCall, Usage, conversation_chars
from excise.agents.text_calls import parse_calls

CHARS_PER_TOKEN = 3
"""Characters per token, a low estimate. Used if the server reports no usage, and for requests not sent yet."""


def to_wire(request: Request, reply_tokens: int) -> dict[str, Any]:
    """Keyword arguments for ``chat.completions.create``."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
        "temperature": request.temperature,
        "max_tokens": reply_tokens,
    }
    if request.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in request.tools]
        body["tool_choice"] = "auto"
    return body


def _message(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [
            {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.tool_calls
        ]
    if message.role == "tool":
        body["tool_call_id"] = message.tool_call_id
    return body


def from_wire(completion: Any, request: Request, redact: Callable[[str], str]) -> Reply | None:
    """The reply in a response; ``None`` if it has no message. ``redact`` is applied to every text from the server.

    Halves of surrogate pairs, which JSON may hold and no file can, become replacement characters.
    """

    def text_of(value: object) -> str:
        text = value if isinstance(value, str) else json.dumps(value) if value else ""
        return redact(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))

    choices = getattr(completion, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        return None
    answer = choices[0].message
    content = text_of(answer.content)
    calls = tuple(
        ToolCall(call_id=text_of(call.id or f"call_{number}"), name=text_of(call.function.name),
                 arguments=text_of(call.function.arguments))
        for number, call in enumerate(answer.tool_calls or ())
        if getattr(call, "function", None) is not None
    )  # fmt: skip
    message = Message(role="assistant", content=content, tool_calls=calls or parse_calls(content))
    usage = _usage(getattr(completion, "usage", None)) or Usage(
        prompt_tokens=estimated_tokens(request), completion_tokens=conversation_chars((message,)) // CHARS_PER_TOKEN
    )
    return Reply(message=message, usage=usage, finish_reason=text_of(choices[0].finish_reason))


def _usage(usage: Any) -> Usage | None:
    prompt, completion = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    if not isinstance(prompt, int) or not isinstance(completion, int):
        return None
    return Usage(prompt_tokens=max(0, prompt), completion_tokens=max(0, completion))


def estimated_tokens(request: Request) -> int:
    """Estimated number of tokens of a request."""
    return conversation_chars(request.messages, request.tools) // CHARS_PER_TOKEN
