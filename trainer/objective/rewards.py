"""What effort costs: a concave penalty, felt in short easy tasks and less and less in long hard ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from excise.trainer.rollout_types import Group, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortPrices:
    """How much each kind of spending counts, in units of one token, and how the sum becomes a penalty."""

    scale: float = 0.0
    """Penalty per unit of cost; 0 switches it off. With ``k`` = 0.001, a cost of 700 is about 1000 tokens' worth."""
    k: float = 0.001
    """How soon the curve bends, per token."""
    q: float = 1.0
    """How much it bends: 0 is a straight line, 1 a logarithm."""
    thinking: float = 1.0
    """Of a token of thinking."""
    calls: float = 1.0
    """Of a token of a tool call."""
    tool_output: float = 0.1
    """Of a token that a tool said."""
    final: float = 1.0
    """Of any other sampled token."""
    per_call: float = 20.0
    """Of a tool call."""
    per_turn: float = 20.0
    """Of an answer."""


def concave_cost(x: float, k: float, q: float) -> float:
    """``((1 + kx)^(1-q) - 1) / (k (1-q))``; ``log1p(kx) / k`` at q = 1; ``x`` at q = 0 or k = 0.

    Its slope is 1 at x = 0 and ``(1 + kx)^-q`` beyond. Raises ``ValueError`` for a negative argument.
    """
    if min(x, k, q) < 0:
        raise ValueError(f"x, k and q are not negative: {x}, {k}, {q}")
    if k == 0:
        return x
    grown = math.log1p(k * x)
    if abs(1 - q) < 1e-9:
        return grown / k
    return math.expm1(grown * (1 - q)) / (k * (1 - q))


def spending(usage: Usage, prices: EffortPrices) -> float:
    """All that a rollout spent, in units of one token."""
    return (
        prices.thinking * usage.thinking
        + prices.calls * usage.calls
        + prices.tool_output * usage.tool_output
        + prices.final * usage.final
        + prices.per_call * usage.num_calls
        + prices.per_turn * usage.num_turns
    )


def with_penalties(group: Group, prices: EffortPrices) -> Group:
    """The group with the penalty of every rollout set."""
    rollouts = tuple(
        replace(rollout, penalty=prices.scale * concave_cost(spending(rollout.usage, prices), prices.k, prices.q))
        for rollout in group.rollouts
    )
    return replace(group, rollouts=rollouts)
