"""Tasks for a benchmark of the whole trainer that need no sandbox: a class of tokens earns the reward."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from excise.trainer.interfaces import Engine, GroupProgress
from excise.trainer.rollout_types import Ending, Generation, Group, Rollout, Sampling, Segment, Turn, Usage

CLASSES = 4
"""Number of classes of tokens: a token's class is its id modulo this number."""


class TokenTasks:
    """Makes rollouts of tasks whose name is a class of tokens; the reward is the share of that class in the answer."""

    def __init__(self, engine: Engine, vocabulary: int, prompt_tokens: int, answer_tokens: int) -> None:
        self.engine, self.vocabulary = engine, vocabulary
        self.prompt_tokens, self.answer_tokens = prompt_tokens, answer_tokens

    async def group(self, instance_id: str, size: int, *, group_id: str, seed: int, progress: GroupProgress) -> Group:
        """See :class:`excise.trainer.interfaces.RolloutMaker`."""
        progress.on_start()
        wanted, rng = int(instance_id), random.Random(instance_id)
        prompt = [rng.randrange(self.vocabulary) for _ in range(self.prompt_tokens)]
        sampling = Sampling(max_tokens=self.answer_tokens, seed=seed)
        answers = await self.engine.generate([prompt] * size, sampling)
        rollouts = tuple(
            rollout_of(f"{group_id}-{number}", group_id, prompt, answer, share_of(wanted, answer))
            for number, answer in enumerate(answers)
        )
        return Group(group_id=group_id, instance_id=instance_id, rollouts=rollouts)


def share_of(wanted: int, answer: Generation) -> float:
    """The share of a class in the tokens of an answer."""
    return sum(token % CLASSES == wanted for token in answer.ids) / len(answer.ids)


def rollout_of(name: str, group_id: str, prompt: Sequence[int], answer: Generation, reward: float) -> Rollout:
    """A rollout of one turn."""
    before = len(prompt)
    segment = Segment(
        ids=(*prompt, *answer.ids),
        sampled=(False,) * before + (True,) * len(answer.ids),
        logprobs=(0.0,) * before + answer.logprobs,
        versions=(-1,) * before + answer.versions,
        turns=(Turn(start=before, end=before + len(answer.ids), stop=answer.stop, prompt_end=before),),
    )
    return Rollout(
        rollout_id=name, group_id=group_id, instance_id="t", segments=(segment,), ending=Ending.FINISHED,
        task_reward=reward, usage=Usage(final=len(answer.ids), num_turns=1),
    )  # fmt: skip


class ClassCurriculum:
    """A curriculum that names the classes of tokens in turn."""

    has_pending_requests = False

    def __init__(self) -> None:
        self.drawn = 0

    def summary(self) -> dict[str, float]:
        """No metrics."""
        return {}

    def why_empty(self) -> str:
        """Never asked."""
        return ""

    def next_task(self, replayed: str | None = None) -> str:
        """See :class:`excise.trainer.interfaces.Curriculum`."""
        self.drawn += 1
        return replayed or str(self.drawn % CLASSES)

    def record(self, group: Group) -> None:
        """Nothing is learned from results."""

    def state(self) -> dict[str, Any]:
        """The number of tasks drawn."""
        return {"drawn": self.drawn}

    def restore(self, state: dict[str, Any]) -> None:
        """The reverse of :meth:`state`."""
        self.drawn = state["drawn"]
