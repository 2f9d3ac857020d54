"""What the trainer is about: tokens that a model sampled, in which context, and what they earned.

Token ids come from the engine and are never made again from text: what is trained on is what was sampled. Torch is not
imported here, so that rollouts can be read and stored without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from excise.types import Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn. Nothing is cut off the distribution: with top-p the recorded probabilities were wrong."""

    max_tokens: int
    """Tokens of one answer."""
    temperature: float = 1.0
    """0 takes the likeliest token (for evaluation only)."""
    stop_ids: tuple[int, ...] = ()
    """Token ids that end an answer; the one that did is part of it."""
    seed: int | None = None
    """Makes the answer repeatable where the engine can."""


class Stop(StrEnum):
    """Why an answer ended."""

    END = "end"
    """A stop token."""
    LENGTH = "length"
    """``max_tokens``, or the model's context, is used up."""
    ABORTED = "aborted"
    """The engine gave up: nothing can be said about the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One sampled answer."""

    ids: tuple[int, ...]
    """Sampled tokens, the stop token included."""
    logprobs: tuple[float, ...]
    """Of each token, natural logarithm, under the distribution it was drawn from (temperature applied)."""
    versions: tuple[int, ...]
    """Version of the policy that drew each token: weights may be updated while an answer is written."""
    stop: Stop
    """Why it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model inside a segment."""

    start: int
    """Place of its first token in the segment."""
    end: int
    """Behind its last one."""
    stop: Stop
    """Why it ended."""
    calls: int = 0
    """Tool calls in it."""
    thinking: int = 0
    """Tokens of thinking among it."""
    hint: str = ""
    """What a detector says about it, for the teacher's context; empty for a turn without fault."""
    hint_ids: tuple[int, ...] = ()
    """The hint as tokens, to be spliced in before :attr:`prompt_end`'s generation prompt."""
    prompt_end: int = 0
    """Where the hint goes: the place in the segment before this turn's generation prompt."""
    detector: str = ""
    """Which detector found the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A context that grew by appending only: prompt, answers, what tools said. Trained on as one sequence."""

    ids: tuple[int, ...]
    """All tokens."""
    sampled: tuple[bool, ...]
    """Which of them the model drew; the loss is on these alone."""
    logprobs: tuple[float, ...]
    """Sampler's log-probability of drawn tokens, 0 for others."""
    versions: tuple[int, ...]
    """Policy version of drawn tokens, -1 for others."""
    turns: tuple[Turn, ...]
    """The model's answers in it, in order."""
    is_summary: bool = False
    """Its last answer is a summary that begins the next segment."""


SAME_REWARD = 1e-9
"""Rewards that are closer are equal: what is between them is rounding."""


class Ending(StrEnum):
    """How a rollout ended."""

    FINISHED = "finished"
    """The model said so."""
    TURNS = "turn_limit"
    """Too many answers."""
    TOKENS = "token_limit"
    """Too many tokens, or the context is full."""
    TIME = "time_limit"
    """Too slow."""
    MALFORMED = "malformed_calls"
    """Answer after answer without a call that can be run."""
    INFRA = "infra_error"
    """Engine, sandbox or grader failed: the rollout says nothing about the model and is left out of its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a rollout spent, for the effort penalty and for people. Tokens unless said otherwise."""

    prompt: int = 0
    """The first prompt."""
    thinking: int = 0
    """Sampled, between the model's marks of thinking."""
    calls: int = 0
    """Sampled, in tool calls."""
    tool_output: int = 0
    """What tools said."""
    final: int = 0
    """Sampled, everything else."""
    num_calls: int = 0
    """Tool calls."""
    num_turns: int = 0
    """Answers."""
    num_summaries: int = 0
    """Summaries of itself."""
    wall_s: float = 0.0
    """Seconds from the first prompt to the grade."""
    engine_s: float = 0.0
    """Seconds of that in the engine."""
    sandbox_s: float = 0.0
    """Seconds of that in tools."""
    grade_s: float = 0.0
    """Seconds of that in the grader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One attempt at one task."""

    rollout_id: str
    """Unique in a run."""
    group_id: str
    """Attempts at the same task with the same prompt."""
    instance_id: str
    """Task."""
    segments: tuple[Segment, ...]
    """In order of time."""
    ending: Ending
    """How it ended."""
    grade: Grade | None = None
    """The grader's word; ``None`` if it was not asked."""
    task_reward: float = 0.0
    """From the grade: 0 or 1, or partial credit where that is configured."""
    penalty: float = 0.0
    """Effort; subtracted."""
    usage: Usage = field(default_factory=Usage)
    """What it spent."""
    diff: str = ""
    """What it handed in."""
    flags: tuple[str, ...] = ()
    """Labels of the monitor: a flagged rollout is left out of its group and kept for ``excise audit``."""
    privileged: tuple[int, ...] = ()
    """What a teacher may know of it, as tokens, where nothing of its group succeeded."""
    detail: str = ""
    """For people: what went wrong."""

    @property
    def reward(self) -> float:
        """What the objective sees."""
        return self.task_reward - self.penalty

    @property
    def counts(self) -> bool:
        """Whether it may be part of a group's baseline."""
        return self.ending is not Ending.INFRA and not self.flags and (self.grade is None or self.grade.decided)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All attempts at one task that share a baseline."""

    group_id: str
    """Unique in a run."""
    instance_id: str
    """Task."""
    rollouts: tuple[Rollout, ...]
    """Attempts, those that do not count among them."""

    @property
    def counting(self) -> tuple[Rollout, ...]:
        """Attempts that say something about the model."""
        return tuple(rollout for rollout in self.rollouts if rollout.counts)

    @property
    def failed(self) -> bool:
        """Nothing in it succeeded."""
        return bool(self.counting) and all(rollout.task_reward <= 0 for rollout in self.counting)

    @property
    def has_signal(self) -> bool:
        """Whether their rewards differ, and something succeeded: to fail at less expense is nothing to learn."""
        rewards = [rollout.reward for rollout in self.counting]
        return not self.failed and bool(rewards) and max(rewards) - min(rewards) >= SAME_REWARD
