"""A tool: a name, arguments with a schema, and a function. What a model writes is checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError


class Arguments(BaseModel):
    """Base of all tools' arguments: unknown names are refused; fields carry descriptions for the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)


class ToolError(Exception):
    """An error that the model can correct: the message is the call's result, and the conversation goes on."""


class MalformedCall(Exception):
    """An invalid call: unknown tool, broken JSON, or arguments that do not fit the schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a tool."""

    text: str
    """Text for the model."""
    final: bool = False
    """Whether the conversation ends with this result."""
    value: Any = None
    """Value for the caller of the conversation, if it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[A]):
    """A tool that a model may call."""

    name: str
    """Name, unique among the tools of a conversation."""
    description: str
    """For the model: what it does and when to use it."""
    arguments: type[A]
    """Schema of the arguments."""
    run: Callable[[A], Result | str]
    """The function. May raise :class:`ToolError`; any other error ends the conversation."""

    def schema(self) -> dict[str, Any]:
        """Name, description and JSON schema of the arguments."""
        parameters = self.arguments.model_json_schema()
        parameters.pop("title", None)
        parameters.pop("description", None)
        return {"name": self.name, "description": self.description, "parameters": parameters}

    def parse(self, text: str) -> A:
        """The arguments from JSON. Raises :class:`MalformedCall` with all that is wrong with them."""
        try:
            return self.arguments.model_validate_json(text or "{}")
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()[:10]]
            raise MalformedCall(f"{self.name}: {'; '.join(wrong)}") from None

    def call(self, arguments: A) -> Result:
        """Run it; a :class:`ToolError` becomes the text."""
        try:
            done = self.run(arguments)
        except ToolError as error:
            return Result(text=f"error: {error}")
        return done if isinstance(done, Result) else Result(text=done)


def clip(text: str, limit: int) -> str:
    """``text``, or its beginning and end with a note of what was left out between; about ``limit`` characters."""
    if len(text) <= limit:
        return text
    head, tail = limit // 2, limit - limit // 2
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[-tail:]}"
