"""The budget of a job, and a meter that checks it before every request."""

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
    """Prompt and completion tokens together."""
    max_cost: float = 0.0
    """Cost, in the currency of the prices."""
    max_wall_s: float = 0.0
    """Wall seconds since the job began, tools included."""
    prompt_price: float = 0.0
    """Price of a million tokens read."""
    completion_price: float = 0.0
    """Price of a million tokens written."""

    def cost(self, usage: Usage) -> float:
        """The cost of tokens."""
        return (usage.prompt_tokens * self.prompt_price + usage.completion_tokens * self.completion_price) / 1e6


def budget_of(settings: ModelSettings) -> Budget:
    """The budget that the settings give each job."""
    return Budget(
        max_tokens=settings.max_tokens,
        max_cost=settings.max_cost,
        max_wall_s=settings.max_wall_s,
        prompt_price=settings.prompt_price,
        completion_price=settings.completion_price,
    )


@dataclass(slots=True)
class Meter:
    """Counts against a budget; its clock starts when it is made."""

    budget: Budget
    clock: Callable[[], float] = time.monotonic
    spent: Usage = field(default_factory=Usage)
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def add(self, usage: Usage) -> None:
        """Count tokens."""
        self.spent += usage

    def left_s(self) -> float:
        """Wall seconds that are left; never negative."""
        if not self.budget.max_wall_s:
            return float("inf")
        return max(0.0, self.began + self.budget.max_wall_s - self.clock())

    def check(self) -> None:
        """Raise :class:`AgentError` (``budget``) if nothing is left of something."""
        budget, cost = self.budget, self.budget.cost(self.spent)
        if budget.max_tokens and self.spent.total >= budget.max_tokens:
            raise _empty(f"{self.spent.total} of {budget.max_tokens} tokens are used", "max_tokens")
        if budget.max_cost and cost >= budget.max_cost:
            raise _empty(f"{cost:.4f} of {budget.max_cost:g} is spent", "max_cost")
        if self.left_s() <= 0:
            raise _empty(f"the job has run for {budget.max_wall_s:.0f} s", "max_wall_s")

    def reply_tokens(self, wanted: int, prompt_tokens: int) -> int:
        """How long an answer may be, given what the request is expected to take; at least one token.

        Prompts are only estimated, so a job can end above its budget by what one prompt was underestimated.
        """
        budget, left = self.budget, wanted
        if budget.max_tokens:
            left = min(left, budget.max_tokens - self.spent.total - prompt_tokens)
        if budget.max_cost and budget.completion_price:
            money = budget.max_cost - budget.cost(self.spent + Usage(prompt_tokens=prompt_tokens))
            left = min(left, int(money / budget.completion_price * 1e6))
        return max(1, left)


def _empty(what: str, setting: str) -> AgentError:
    return AgentError(f"The job's budget is used up: {what}. Raise model.{setting} to go further.", reason="budget")
