"""A learner without a model: skill grows with training, and a task is passed if skill exceeds its difficulty."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from excise.datasets.difficulty.measures import Measures
from excise.datasets.difficulty.rungs import TYPICAL_LOC, Level, Rung, level_of, rung_of
from excise.trainer.curriculum.task_request import TaskRequest
from excise.trainer.rollout_types import Ending, Group, Rollout
from excise.types import Difficulty, FeatureKind, Task, Visibility

KINDS = {
    Level.FUNCTION: FeatureKind.FUNCTION,
    Level.CLASS: FeatureKind.CLASS,
    Level.MODULE: FeatureKind.MODULE,
    Level.SEVERAL: FeatureKind.MULTI,
    Level.CROSS_FILE: FeatureKind.CROSS_FILE,
}
STEP = 1.4
"""Difference in difficulty between neighbouring levels, in logits."""


def task(number: int, rung: Rung, loc: int | None = None) -> Task:
    """A task of a rung; all fields but those that decide its difficulty are placeholders."""
    kind = KINDS.get(rung.level, FeatureKind.FUNCTION)
    difficulty = Difficulty(
        kind=kind,
        tier=0,
        loc=loc or TYPICAL_LOC[rung.level],
        num_files=1,
        num_symbols=1,
        fan_in=0,
        complexity=1,
        num_f2p=1,
        num_p2p=1,
    )
    deleter = rung.level.value if rung.level.order <= Level.STUB.order else "remove"
    assert level_of(deleter, kind) is rung.level
    empty = dict.fromkeys(
        ("repo", "base_commit", "tree", "shipped_tree", "version", "patch", "test_patch", "deletion_patch"), ""
    )
    return Task(
        instance_id=f"t{number:05d}",
        language="python",
        problem_statement="",
        interface="",
        fail_to_pass=(),
        pass_to_pass=(),
        env_id="",
        visibility=rung.visibility,
        difficulty=difficulty,
        deleter=deleter,
        feature_id="",
        removed=(),
        created_at="",
        **empty,
    )


def group(instance_id: str, passes: list[bool], *, ending: Ending = Ending.FINISHED) -> Group:
    """A group with one attempt for each value of ``passes``."""
    rollouts = tuple(
        Rollout(
            rollout_id=f"r{number}",
            group_id="g",
            instance_id=instance_id,
            segments=(),
            ending=ending,
            task_reward=float(passed),
        )
        for number, passed in enumerate(passes)
    )
    return Group(group_id="g", instance_id=instance_id, rollouts=rollouts)


@dataclass
class World:
    """A simulated arena and learner, and a generator that answers requests some groups later."""

    seed: int = 0
    skill: float = 0.0
    tasks: dict[str, Task] = field(default_factory=dict)
    requests: dict[str, tuple[int, TaskRequest]] = field(default_factory=dict)
    """By request id, the time and the request; equal requests are answered once."""
    made_of: dict[str, list[str]] = field(default_factory=dict)
    """By request id, the tasks that were made, once it is answered."""
    barren: frozenset[Visibility] = frozenset()
    """Visibilities for which the generator makes no tasks."""
    clock: int = 0
    delay: int = 5
    rng: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.rng.seed(self.seed)

    def stock(self, rung: Rung, count: int) -> list[str]:
        """Add tasks of a rung, and return their ids."""
        new = [task(len(self.tasks) + number, rung) for number in range(count)]
        self.tasks |= {made.instance_id: made for made in new}
        return [made.instance_id for made in new]

    def __call__(self, request: TaskRequest) -> None:
        """Take a request."""
        self.requests.setdefault(request.request_id, (self.clock, request))

    def made(self, request: TaskRequest) -> list[str] | None:
        """See the protocol."""
        return self.made_of.get(request.request_id)

    def asked(self, after: int) -> list[TaskRequest]:
        """See the protocol."""
        return [request for _, request in self.requests.values() if request.number > after]

    def hardness(self, instance_id: str) -> float:
        """In logits, such that half of the first attempts at an expression pass."""
        made = self.tasks[instance_id]
        level, visibility = rung_of(made).order
        return STEP * level + 0.4 * visibility

    def chance(self, instance_id: str) -> float:
        """Probability that an attempt passes."""
        return 1 / (1 + math.exp(self.hardness(instance_id) - self.skill))

    def attempt(self, instance_id: str, size: int = 8) -> Group:
        """Make a group of attempts; the learner improves with their variance."""
        chance = self.chance(instance_id)
        passes = [self.rng.random() < chance for _ in range(size)]
        share = sum(passes) / size
        self.skill += 0.12 * share * (1 - share)
        self.clock += 1
        self._deliver()
        return group(instance_id, passes)

    def _deliver(self) -> None:
        for request_id, (when, request) in self.requests.items():
            if self.clock - when == self.delay:
                fitting = [
                    level
                    for level in Level
                    if request.fits(Measures(rung=Rung(level, request.visibility), loc=TYPICAL_LOC[level]))
                ]
                some = bool(fitting) and request.visibility not in self.barren
                rungs = [Rung(fitting[n % len(fitting)], request.visibility) for n in range(request.count * some)]
                self.made_of[request_id] = [name for rung in rungs for name in self.stock(rung, 1)]
