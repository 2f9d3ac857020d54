"""The trainer's records, from small to large: generation, turn, segment, rollout, group.

Token ids come from the engine and are never produced again by tokenizing text, so the policy is trained on exactly what
it sampled. Torch is not imported here, so rollouts can be read and stored without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from excise.types import Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling parameters. There is no top-p or top-k: with them, the recorded log-probabilities would be wrong."""

    max_tokens: int
    """Maximum number of tokens of one answer."""
    temperature: float = 1.0
    """Softmax temperature; 0 is greedy decoding (for evaluation only)."""
    stop_ids: tuple[int, ...] = ()
    """Token ids that end an answer. The stop token is part of the answer."""
    seed: int | None = None
    """Random seed, for engines that can repeat an answer."""


class Stop(StrEnum):
    """Why an answer ended."""

    END = "end"
    """A stop token."""
    LENGTH = "length"
    """``max_tokens`` or the model's context length was reached."""
    ABORTED = "aborted"
    """The engine failed: the answer says nothing about the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One sampled answer."""

    ids: tuple[int, ...]
    """Sampled token ids, including the stop token."""
    logprobs: tuple[float, ...]
    """Log-probability (nats) of each token under the distribution that it was sampled from, temperature applied."""
    versions: tuple[int, ...]
    """Policy version that sampled each token: weights may be updated in the middle of an answer."""
    stop: Stop
    """Why the answer ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model inside a segment, as the token range ``[start, end)``."""

    start: int
    """Index of the answer's first token in the segment."""
    end: int
    """Index after the answer's last token."""
    stop: Stop
    """Why the answer ended."""
    calls: int = 0
    """Number of tool calls."""
    thinking: int = 0
    """Number of thinking tokens."""
    hint: str = ""
    """Text of a detector's hint for the teacher's context; empty if no detector found a fault."""
    hint_ids: tuple[int, ...] = ()
    """The hint as tokens, inserted at :attr:`prompt_end` in the teacher's context."""
    prompt_end: int = 0
    """Index in the segment just before this turn's generation prompt; the hint is inserted there."""
    detector: str = ""
    """Name of the detector that found a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A context that only grew at its end: prompt, answers, tool results. Trained on as one sequence."""

    ids: tuple[int, ...]
    """All token ids."""
    sampled: tuple[bool, ...]
    """For each token, whether the model sampled it. Only sampled tokens have a loss."""
    logprobs: tuple[float, ...]
    """The sampler's log-probability of sampled tokens, 0 for others."""
    versions: tuple[int, ...]
    """Policy version of sampled tokens, -1 for others."""
    turns: tuple[Turn, ...]
    """The model's answers, in order."""
    is_summary: bool = False
    """Whether the segment's last answer is a summary that starts the next segment."""


SAME_REWARD = 1e-9
"""Rewards that differ by less are considered equal; the difference is rounding."""


class Ending(StrEnum):
    """How a rollout ended."""

    FINISHED = "finished"
    """The model declared its work done."""
    TURNS = "turn_limit"
    """The limit of turns was reached."""
    TOKENS = "token_limit"
    """The limit of tokens was reached, or the context is full."""
    TIME = "time_limit"
    """The time limit was reached."""
    MALFORMED = "malformed_calls"
    """Several answers in a row had no valid tool call."""
    INFRA = "infra_error"
    """Engine, sandbox or grader failed. The rollout says nothing about the model and is left out of its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Resources used by a rollout, for the effort penalty and for reports. In tokens unless stated otherwise."""

    prompt: int = 0
    """Tokens of the first prompt."""
    thinking: int = 0
    """Sampled tokens of thinking (between the model's thinking tags, which count too)."""
    calls: int = 0
    """Sampled tokens of tool calls."""
    tool_output: int = 0
    """Tokens of tool results (not sampled)."""
    final: int = 0
    """All other sampled tokens."""
    num_calls: int = 0
    """Number of tool calls."""
    num_turns: int = 0
    """Number of answers."""
    num_summaries: int = 0
    """Number of self-summaries."""
    wall_s: float = 0.0
    """Seconds from the first prompt to the grade."""
    engine_s: float = 0.0
    """Part of ``wall_s`` spent waiting for the engine."""
    sandbox_s: float = 0.0
    """Part of ``wall_s`` spent in the sandbox."""
    grade_s: float = 0.0
    """Part of ``wall_s`` spent waiting for the grader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One attempt at one task."""

    rollout_id: str
    """Unique in a run."""
    group_id: str
    """Group of the attempts at the same task that share a baseline."""
    instance_id: str
    """The task."""
    segments: tuple[Segment, ...]
    """The segments, in chronological order."""
    ending: Ending
    """How the rollout ended."""
    grade: Grade | None = None
    """The grader's result; ``None`` if the rollout was not graded (its diff is empty)."""
    task_reward: float = 0.0
    """Reward from the grade: 0 or 1, or between where partial credit is configured."""
    penalty: float = 0.0
    """Effort penalty, subtracted from the task reward."""
    usage: Usage = field(default_factory=Usage)
    """Resources that the rollout used."""
    diff: str = ""
    """The submitted diff."""
    flags: tuple[str, ...] = ()
    """Labels of the monitor. A flagged rollout is left out of its group and kept for ``excise audit``."""
    privileged: tuple[int, ...] = ()
    """Tokens of privileged context for the teacher (the gold patch, for example), set if its whole group failed."""
    detail: str = ""
    """Human-readable description of a failure."""

    @property
    def reward(self) -> float:
        """Task reward minus penalty: what the objective uses."""
        return self.task_reward - self.penalty

    @property
    def is_valid(self) -> bool:
        """Whether the rollout takes part in its group's baseline: no infrastructure failure, not flagged, decided
        grade."""
        return self.ending is not Ending.INFRA and not self.flags and (self.grade is None or self.grade.decided)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All attempts at one task that share a baseline."""

    group_id: str
    """Unique in a run."""
    instance_id: str
    """The task."""
    rollouts: tuple[Rollout, ...]
    """All attempts, valid or not."""

    @property
    def valid_rollouts(self) -> tuple[Rollout, ...]:
        """The attempts that take part in the baseline (:attr:`Rollout.is_valid`)."""
        return tuple(rollout for rollout in self.rollouts if rollout.is_valid)

    @property
    def all_failed(self) -> bool:
        """Whether there are valid attempts and none of them earned a task reward."""
        return bool(self.valid_rollouts) and all(rollout.task_reward <= 0 for rollout in self.valid_rollouts)

    @property
    def has_signal(self) -> bool:
        """Whether a policy gradient can be taken: rewards differ, and not only by the effort of failed attempts."""
        rewards = [rollout.reward for rollout in self.valid_rollouts]
        return not self.all_failed and bool(rewards) and max(rewards) - min(rewards) >= SAME_REWARD
