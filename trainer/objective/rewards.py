"""Rewards and advantages: a concave effort penalty, and the group baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from excise.trainer.rollout_types import SAME_REWARD, Group, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortPrices:
    """``[effort]``: prices of the resources that a rollout used, in units of one token, and the penalty's curve."""

    scale: float = 0.0
    """Penalty per unit of concave cost; 0 switches it off. With ``k`` = 0.001, 1000 tokens have a cost of 693."""
    k: float = 0.001
    """Curvature of the cost, per token: the slope is ``(1 + kx)^-q``."""
    q: float = 1.0
    """Exponent of the slope: 0 is a straight line, 1 a logarithm."""
    thinking: float = 1.0
    """Price of a thinking token."""
    calls: float = 1.0
    """Price of a token of a tool call."""
    tool_output: float = 0.1
    """Price of a token of a tool result."""
    final: float = 1.0
    """Price of any other sampled token."""
    per_call: float = 20.0
    """Price of a tool call, besides its tokens."""
    per_turn: float = 20.0
    """Price of an answer, besides its tokens."""


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


def total_cost(usage: Usage, prices: EffortPrices) -> float:
    """The price of everything that a rollout used, in units of one token."""
    return (
        prices.thinking * usage.thinking
        + prices.calls * usage.calls
        + prices.tool_output * usage.tool_output
        + prices.final * usage.final
        + prices.per_call * usage.num_calls
        + prices.per_turn * usage.num_turns
    )


def with_penalties(group: Group, prices: EffortPrices) -> Group:
    """The group with the effort penalty of every rollout set."""
    rollouts = tuple(
        replace(rollout, penalty=prices.scale * concave_cost(total_cost(rollout.usage, prices), prices.k, prices.q))
        for rollout in group.rollouts
    )
    return replace(group, rollouts=rollouts)


def group_advantages(group: Group) -> dict[str, float]:
    """Rollout id to advantage ``R_i - mean(R)`` over the group's valid rollouts; others have none.

    It is not divided by the standard deviation (very easy and very hard tasks would weigh as much as those between,
    where most can be learned) nor by a length (long failures would be cheap): Liu et al., "Understanding R1-Zero-Like
    Training" (arXiv 2503.20783). All segments of a rollout have the same advantage.
    """
    valid = group.valid_rollouts
    if not valid:
        return {}
    mean = math.fsum(rollout.reward for rollout in valid) / len(valid)
    difference = {rollout.rollout_id: rollout.reward - mean for rollout in valid}
    return {name: value if abs(value) >= SAME_REWARD else 0.0 for name, value in difference.items()}


def advantages(groups: Iterable[Group]) -> dict[str, float]:
    """Rollout id to advantage for many groups; rollout ids are unique in a run."""
    found: dict[str, float] = {}
    for group in groups:
        found |= group_advantages(group)
    return found
