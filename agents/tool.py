"""Tools that a model can call: name, argument schema and function. Arguments are validated before a tool runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError


class Arguments(BaseModel):
    """Base class for tool arguments. Unknown fields are refused; field descriptions are shown to the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)


class ToolError(Exception):
    """An error that the model can correct. Its message becomes the call's result and the conversation continues."""


class MalformedCall(Exception):
    """An invalid call: unknown tool, invalid JSON, or arguments that do not match the schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a tool call."""

    text: str
    """Text for the model."""
    final: bool = False
    """Whether the conversation ends with this result."""
    value: Any = None
    """Value returned to the caller of the loop with a final result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[A]):
    """A tool that a model may call."""

    name: str
    """Name, unique among the tools of a conversation."""
    description: str
    """Description for the model: what the tool does and when to use it."""
    arguments: type[A]
    """Class of the arguments."""
    run: Callable[[A], Result | str]
    """The function. May raise :class:`ToolError`; any other error ends the conversation."""

    def schema(self) -> dict[str, Any]:
        """Name, description and JSON schema of the arguments."""
        parameters = self.arguments.model_json_schema()
        parameters.pop("title", None)
        parameters.pop("description", None)
        return {"name": self.name, "description": self.description, "parameters": parameters}

    def parse(self, text: str) -> A:
        """Arguments from JSON. Raises :class:`MalformedCall` that lists up to ten validation errors."""
        try:
            return self.arguments.model_validate_json(text or "{}")
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()[:10]]
            raise MalformedCall(f"{self.name}: {'; '.join(problems)}") from None

    def call(self, arguments: A) -> Result:
        """Run the tool; a :class:`ToolError` becomes the result's text."""
        try:
            result = self.run(arguments)
        except ToolError as error:
            return Result(text=f"error: {error}")
        return result if isinstance(result, Result) else Result(text=result)


def clip(text: str, limit: int) -> str:
    """Text of about ``limit`` characters: ``text``, or its start and end with a note on the omitted middle."""
    if len(text) <= limit:
        return text
    head, tail = limit // 2, limit - limit // 2
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[-tail:]}"
