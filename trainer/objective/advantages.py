"""What a rollout earned beyond its group: the baseline of the policy gradient."""

from __future__ import annotations

import math
from collections.abc import Iterable

from excise.trainer.rollout_types import SAME_REWARD, Group


def group_advantages(group: Group) -> dict[str, float]:
    """Rollout id to ``R_i - mean(R)`` over the rollouts that count; the others have none.

    Neither divided by the standard deviation (easy and hard tasks would weigh the same as those in between, where there
    is something to learn) nor by a length (long failures would be cheap): Liu et al., "Understanding R1-Zero-Like
    Training" (arXiv 2503.20783). A rollout has one advantage, however many segments it was written in.
    """
    counting = group.counting
    if not counting:
        return {}
    mean = math.fsum(rollout.reward for rollout in counting) / len(counting)
    beyond = {rollout.rollout_id: rollout.reward - mean for rollout in counting}
    return {name: value if abs(value) >= SAME_REWARD else 0.0 for name, value in beyond.items()}


def advantages(groups: Iterable[Group]) -> dict[str, float]:
    """The same for many groups; rollout ids are unique in a run."""
    found: dict[str, float] = {}
    for group in groups:
        found |= group_advantages(group)
    return found
