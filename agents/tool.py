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
    """The model can mend this: the message is its answer, and the conversation goes on."""


class MalformedCall(Exception):
    """A call that is none: no such tool, broken JSON, arguments that do not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool gives back."""

    text: str
    """For the model."""
    final: bool = False
    """The conversation ends here."""
    value: Any = None
    """For the caller of the conversation, if it ends here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[A]):
    """Something that a model may call."""

    name: str
    """Name, unique among the tools of a conversation."""
    description: str
    """For the model: what it does and when to use it."""
    arguments: type[A]
    """Schema of the arguments."""
    run: Callable[[A], Result | str]
    """Does it. May raise :class:`ToolError`; any other error ends the conversation."""

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
