"""Access of agents to the model: client, sampling options, limits and transcript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from excise.agents.messages import Client, Message, Request
from excise.agents.tool import Tool
from excise.agents.tool_loop import Limits, LoopResult, run_tool_loop
from excise.agents.transcript import Transcript
from excise.config import ModelSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """One model and the limits of its conversations."""

    client: Client
    """Answers requests, over the network or from a recording."""
    template: Request
    """A request with the model's name and sampling options, and without messages."""
    limits: Limits
    """Limits of one conversation; ``max_steps`` is set by each agent."""
    transcript: Transcript
    """Records every request, answer and tool result."""

    @classmethod
    def of(cls, settings: ModelSettings, client: Client, transcript: Transcript) -> ModelAccess:
        """The access that the settings describe."""
        template = Request(
            model=settings.model,
            messages=(),
            temperature=settings.temperature,
            max_reply_tokens=settings.max_reply_tokens,
        )
        limits = Limits(
            context_chars=settings.context_chars, result_chars=max(1000, min(12_000, settings.context_chars // 8))
        )
        return cls(client=client, template=template, limits=limits, transcript=transcript)

    def run_agent(
        self, name: str, messages: Sequence[Message], tools: Sequence[Tool[Any]], *, max_steps: int
    ) -> LoopResult:
        """Let the model call ``tools``, starting from ``messages``; ``name`` identifies it in the transcript.

        Raises :class:`excise.errors.AgentError` if the model does not answer or the budget is used up.
        """
        request = replace(self.template, messages=tuple(messages))
        limits = replace(self.limits, max_steps=max_steps)
        return run_tool_loop(name, self.client, request, tools, limits, self.transcript)
