"""The settings of rollouts: budgets, sampling and detectors."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from excise.types import StatementStyle


class RolloutSettings(BaseModel):
    """``[rollouts]``: budgets, sampling and detectors of rollouts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: float = Field(default=1.0, ge=0)
    """Sampling temperature; 0 is greedy decoding."""
    answer_tokens: int = Field(default=2048, ge=1)
    """Maximum number of tokens of one answer."""
    max_tokens: int = Field(default=32_768, ge=1)
    """Maximum number of sampled tokens of one rollout."""
    max_turns: int = Field(default=40, ge=1)
    """Maximum number of answers of one rollout."""
    max_malformed: int = Field(default=3, ge=1)
    """The rollout ends after this many answers in a row without a valid tool call."""
    time_s: float = Field(default=1200.0, gt=0)
    """Maximum wall seconds of one rollout, without grading."""
    command_s: float = Field(default=120.0, gt=0)
    """Maximum wall seconds of one command."""
    output_chars: int = Field(default=8000, ge=100)
    """Maximum number of characters of one tool result; longer ones are shortened in the middle."""
    summary_at: int = Field(default=0, ge=0)
    """Context length in tokens at which the model is asked for a summary and continues from it; 0: never."""
    summary_tokens: int = Field(default=1024, ge=16)
    """Maximum number of tokens of a summary."""
    partial_credit: float = Field(default=0.0, ge=0, le=1)
    """Reward of a failed attempt, as a multiple of ``Grade.partial`` (the share of hidden tests that passed)."""
    detectors: tuple[str, ...] = ()
    """Names of the detectors that write hints; empty means all, ``("none",)`` means none."""
    hint_tokens: int = Field(default=256, ge=0)
    """Maximum number of tokens of a hint; a longer one gives no lesson."""
    style: StatementStyle = StatementStyle.SPECIFICATION
    """Style of the statements. Specifications and issues give everything that hidden tests need; ``terse`` and
    ``ambiguous`` leave things out, so that a right solution may fail."""
    model_written: bool = False
    """Whether a statement that a model wrote is preferred, where the set has one in this style."""
    at_once: int = Field(default=64, ge=1)
    """Maximum number of rollouts that run at the same time; others wait."""
