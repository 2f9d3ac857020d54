"""Two groups of rollouts for the tests of reports: one with flags and a lost rollout, one without variance."""

from __future__ import annotations

from excise.trainer.rollout_types import Ending, Group

from ..tiny_policy import rollout_of, segment_of


def example_groups() -> list[Group]:
    """A group of four rollouts, one flagged and one lost, and a group of two equal rewards with stale tokens."""
    segment = segment_of([1, 2, 3, 4], [(2, 4)], [-1.0] * 4, version=3)
    old = segment_of([1, 2, 3], [(2, 3)], [-1.0] * 3, version=1)
    mixed = (
        rollout_of("a-0", [segment], 1.0),
        rollout_of("a-1", [segment, old], 0.0),
        rollout_of("a-2", [segment], 1.0, flags=("leak_used",)),
        rollout_of("a-3", [], 0.0, ending=Ending.INFRA),
    )
    return [
        Group(group_id="a", instance_id="t1", rollouts=mixed),
        Group(group_id="b", instance_id="t2", rollouts=(rollout_of("b-0", [old], 0.5), rollout_of("b-1", [old], 0.5))),
    ]
