"""Evaluation of a policy: attempts at each task, and their scores (:mod:`excise.datasets.queries.scores`)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from excise.datasets.queries.scores import Evaluation, TaskScore, summarise
from excise.trainer.concurrency import gather_or_cancel
from excise.trainer.rollout_types import Ending, Group, Rollout


class GroupMaker(Protocol):
    """Makes attempts: :class:`excise.trainer.rollouts.rollout_maker.Rollouts`."""

    async def group(self, instance_id: str, size: int) -> Group:
        """Make ``size`` attempts at one task."""
        ...


async def evaluate(
    maker: GroupMaker,
    ids: Sequence[str],
    *,
    name: str = "policy",
    samples: int = 16,
    listener: Callable[[TaskScore], None] = lambda _: None,
) -> Evaluation:
    """Make ``samples`` attempts at each task and score them; ``listener`` is called with each finished task."""
    began = time.monotonic()
    endings: Counter[str] = Counter()

    async def one(instance_id: str) -> TaskScore:
        group = await maker.group(instance_id, samples)
        endings.update(str(rollout.ending) for rollout in group.rollouts)
        scored = score(group)
        listener(scored)
        return scored

    tasks = tuple(sorted(await gather_or_cancel(map(one, ids)), key=lambda task: task.instance_id))
    return summarise(
        name, samples, tasks, endings=dict(endings.most_common()), wall_s=round(time.monotonic() - began, 1)
    )


def score(group: Group) -> TaskScore:
    """The score of one group."""
    completed = [r for r in group.rollouts if r.ending is not Ending.INFRA and (r.grade is None or r.grade.decided)]
    solved = [r for r in completed if r.task_reward >= 1 and not r.flags]
    return TaskScore(
        instance_id=group.instance_id,
        num_attempts=len(completed),
        num_solved=len(solved),
        num_lost=len(group.rollouts) - len(completed),
        num_flagged=sum(bool(r.flags) for r in completed),
        tokens=tuple(map(completion_tokens, completed)),
        solved_tokens=tuple(map(completion_tokens, solved)),
    )


def completion_tokens(rollout: Rollout) -> int:
    """Number of tokens that the model sampled."""
    return rollout.usage.thinking + rollout.usage.calls + rollout.usage.final
