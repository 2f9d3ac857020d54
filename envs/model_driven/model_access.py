"""Access of the installation's agents to the model: client, sampling options, limits and transcript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from excise.agents.messages import Client, Message, Request
from excise.agents.tool import Tool
from excise.agents.tool_loop import Limits, LoopResult, run_tool_loop
from excise.agents.transcript import Transcript


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

    def run_agent(
        self, name: str, messages: Sequence[Message], tools: Sequence[Tool[Any]], *, max_steps: int
    ) -> LoopResult:
        """Let the model call ``tools``, starting from ``messages``; ``name`` identifies it in the transcript.

        Raises :class:`excise.errors.AgentError` if the model does not answer or the budget is used up.
        """
        request = replace(self.template, messages=tuple(messages))
        limits = replace(self.limits, max_steps=max_steps)
        return run_tool_loop(name, self.client, request, tools, limits, self.transcript)
