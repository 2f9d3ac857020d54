"""Tool calls as plain text, for models and servers without native tool calling.

The format is the one that many open models are trained on: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from excise.agents.messages import Message, Request, ToolCall
from excise.types import content_id

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```(?:json|tool_call)?[ \t]*\n(.*?)```", re.DOTALL)
_INSTRUCTIONS = """You call tools by writing, for each call, one line of JSON between tags:
<tool_call>{"name": "...", "arguments": {...}}</tool_call>
The tools, each with the schema of its arguments:
"""


def with_text_tools(request: Request) -> Request:
    """The request for an endpoint without tool calling: tools in the system message, results as user messages."""
    instructions = _INSTRUCTIONS + "\n".join(json.dumps(tool) for tool in request.tools)
    messages = [_plain_message(message) for message in request.messages]
    if messages and messages[0].role == "system":
        messages[0] = replace(messages[0], content=f"{messages[0].content}\n\n{instructions}")
    else:
        messages.insert(0, Message(role="system", content=instructions))
    return replace(request, messages=tuple(_merged(messages)), tools=())


def _plain_message(message: Message) -> Message:
    if message.role == "tool":
        return Message(role="user", content=f"<tool_response>\n{message.content}\n</tool_response>")
    if message.tool_calls:
        return Message(role="assistant", content=message.content or _calls_as_text(message.tool_calls))
    return message


def _calls_as_text(calls: Sequence[ToolCall]) -> str:
    return "\n".join(
        f'<tool_call>{{"name": {json.dumps(c.name)}, "arguments": {c.arguments}}}</tool_call>' for c in calls
    )


def _merged(messages: Sequence[Message]) -> list[Message]:
    """The messages with consecutive ones of the same role merged, because some chat templates refuse them."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            merged[-1] = replace(merged[-1], content=f"{merged[-1].content}\n{message.content}")
        else:
            merged.append(message)
    return merged


def parse_calls(text: str) -> tuple[ToolCall, ...]:
    """The tool calls in the text of a reply; an invalid call gets an empty name."""
    tagged = _CALL.findall(text)
    found = tagged or [body for body in _FENCED.findall(text) if '"name"' in body]
    return tuple(_call(number, body) for number, body in enumerate(found))


def _call(number: int, body: str) -> ToolCall:
    call_id = f"call_{number}_{content_id('call', body)[:8]}"
    invalid = ToolCall(call_id=call_id, name="", arguments=body)
    try:
        call = json.loads(body)
        if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
            return invalid
        call["name"].encode()
        arguments: Any = call.get("arguments", call.get("parameters", {}))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        text.encode()
    except (ValueError, RecursionError):
        return invalid
    return ToolCall(call_id=call_id, name=call["name"], arguments=text)
