"""Rewards: advantages within a group, and the cost of effort."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from excise.trainer.objective.rewards import (
    EffortPrices,
    advantages,
    concave_cost,
    group_advantages,
    total_cost,
    with_penalties,
)
from excise.trainer.rollout_types import Group, Usage

from ..tiny_policy import rollout_of, segment_of
from .reference_loss import mixed_groups


@pytest.fixture
def groups() -> list[Group]:
    return mixed_groups()


def test_advantages_are_computed_over_valid_rollouts(groups: list[Group]) -> None:
    found = group_advantages(groups[2])
    assert found == {"c-0": -0.5, "c-1": 0.0, "c-2": 0.5}
    assert sum(advantages(groups).values()) == pytest.approx(0)
    assert group_advantages(Group(group_id="e", instance_id="t", rollouts=())) == {}


def test_rounding_differences_between_rewards_are_no_signal() -> None:
    segment = segment_of([1, 2, 3], [(1, 3)], [-1.0] * 3)

    def group(rewards: list[float]) -> Group:
        rollouts = tuple(rollout_of(f"g-{n}", [segment], reward) for n, reward in enumerate(rewards))
        return Group(group_id="g", instance_id="t", rollouts=rollouts)

    assert not group([0.1 + 0.2, 0.3]).has_signal
    assert group([0.3, 0.3001]).has_signal
    assert group_advantages(group([0.1, 0.7, 0.4]))["g-2"] == 0.0


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0, 2.0])
def test_the_concave_cost_equals_its_integral(q: float) -> None:
    k, x, steps = 0.01, 500.0, 20_000
    integral = sum((1 + k * (i + 0.5) * x / steps) ** -q for i in range(steps)) * x / steps
    assert concave_cost(x, k, q) == pytest.approx(integral, rel=1e-6)
    assert concave_cost(0.0, k, q) == 0
    assert concave_cost(x, 0.0, q) == x
    assert concave_cost(x, k, 1 - 1e-8) == pytest.approx(math.log1p(k * x) / k, rel=1e-5)


def test_effort_costs_more_per_token_in_short_tasks() -> None:
    assert concave_cost(200, 0.01, 1) - concave_cost(100, 0.01, 1) > concave_cost(5100, 0.01, 1) - concave_cost(
        5000, 0.01, 1
    )
    with pytest.raises(ValueError, match="negative"):
        concave_cost(-1, 1, 1)


def test_the_cost_of_effort_is_subtracted_from_the_reward() -> None:
    prices = EffortPrices(scale=0.001, q=0.0, k=1.0)
    usage = Usage(thinking=10, calls=20, tool_output=100, final=5, num_calls=2, num_turns=3)
    assert total_cost(usage, prices) == 10 + 20 + 10 + 5 + 40 + 60
    segment = segment_of([1, 2, 3], [(1, 3)], [-1.0] * 3)
    pair = (rollout_of("g-0", [segment], 1.0, usage=usage), rollout_of("g-1", [segment], 1.0))
    group = with_penalties(Group(group_id="g", instance_id="t", rollouts=pair), prices)
    assert [r.reward for r in group.rollouts] == pytest.approx([1 - 0.145, 1.0])
    assert group.has_signal
    failed = tuple(replace(rollout, task_reward=0.0) for rollout in group.rollouts)
    assert len({rollout.reward for rollout in failed}) == 2
    assert not replace(group, rollouts=failed).has_signal, "cheaper failures are no signal"
