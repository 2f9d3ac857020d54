"""The budget of a model-driven job, and the meter that counts usage against it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from excise.agents.messages import Usage
from excise.config import ModelSettings
from excise.errors import AgentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one job; zero means no limit."""

    max_tokens: int = 0
    """Prompt and completion tokens."""
    max_cost: float = 0.0
    """Cost in the currency of the prices."""
    max_wall_s: float = 0.0
    """Wall seconds since the start of the job, tool calls included."""
    prompt_price: float = 0.0
    """Price of a million prompt tokens."""
    completion_price: float = 0.0
    """Price of a million completion tokens."""

    def cost(self, usage: Usage) -> float:
        """The cost of ``usage`` in the currency of the prices."""
        return (usage.prompt_tokens * self.prompt_price + usage.completion_tokens * self.completion_price) / 1e6


def budget_of(settings: ModelSettings) -> Budget:
    """The budget of one job under the given settings."""
    return Budget(
        max_tokens=settings.max_tokens,
        max_cost=settings.max_cost,
        max_wall_s=settings.max_wall_s,
        prompt_price=settings.prompt_price,
        completion_price=settings.completion_price,
    )


@dataclass(slots=True)
class Meter:
    """Counts usage against a budget. Wall time is measured from its creation."""

    budget: Budget
    clock: Callable[[], float] = time.monotonic
    spent: Usage = field(default_factory=Usage)
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def add(self, usage: Usage) -> None:
        """Add the tokens of one reply."""
        self.spent += usage

    def left_s(self) -> float:
        """Wall seconds left, at least 0; infinite without a limit."""
        if not self.budget.max_wall_s:
            return float("inf")
        return max(0.0, self.started + self.budget.max_wall_s - self.clock())

    def exhausted(self) -> tuple[str, str]:
        """The setting whose limit is reached, and a sentence about it; two empty strings if none is."""
        budget, cost = self.budget, self.budget.cost(self.spent)
        if budget.max_tokens and self.spent.total >= budget.max_tokens:
            return "max_tokens", f"{self.spent.total} of {budget.max_tokens} tokens are used"
        if budget.max_cost and cost >= budget.max_cost:
            return "max_cost", f"{cost:.4f} of {budget.max_cost:g} is spent"
        if self.left_s() <= 0:
            return "max_wall_s", f"the job has run for {budget.max_wall_s:.0f} s"
        return "", ""

    def check(self) -> None:
        """Raise :class:`AgentError` (``budget``) if any limit is reached."""
        setting, what = self.exhausted()
        if setting:
            raise AgentError(
                f"The job's budget is used up: {what}. Raise model.{setting} to go further.", reason="budget"
            )

    def reply_tokens(self, max_tokens: int, prompt_tokens: int) -> int:
        """Maximum number of tokens of the next reply, between 1 and ``max_tokens``; ``prompt_tokens`` is an estimate.

        The budget can therefore be exceeded by the error of one estimate.
        """
        budget, left = self.budget, max_tokens
        if budget.max_tokens:
            left = min(left, budget.max_tokens - self.spent.total - prompt_tokens)
        if budget.max_cost and budget.completion_price:
            remaining = budget.max_cost - budget.cost(self.spent + Usage(prompt_tokens=prompt_tokens))
            left = min(left, int(remaining / budget.completion_price * 1e6))
        return max(1, left)
