"""What a rollout may spend, and how it is carried out."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RolloutSettings(BaseModel):
    """Budgets and habits of rollouts, the sampling's own among them: the table ``[rollouts]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: float = Field(default=1.0, ge=0)
    """Of sampling; 0 takes the likeliest token."""
    answer_tokens: int = Field(default=2048, ge=1)
    """Tokens of one answer."""
    max_tokens: int = Field(default=32_768, ge=1)
    """Sampled tokens of one rollout."""
    max_turns: int = Field(default=40, ge=1)
    """Answers of one rollout."""
    max_malformed: int = Field(default=3, ge=1)
    """Answers in a row without one call that can be run."""
    time_s: float = Field(default=1200.0, gt=0)
    """Wall seconds of one rollout, its grade not among them."""
    command_s: float = Field(default=120.0, gt=0)
    """Wall seconds of one command."""
    output_chars: int = Field(default=8000, ge=100)
    """Characters of one tool's result."""
    summary_at: int = Field(default=0, ge=0)
    """Tokens of a context at which the model sums up and goes on from its summary; 0: never."""
    summary_tokens: int = Field(default=1024, ge=16)
    """Tokens of a summary."""
    partial_credit: float = Field(default=0.0, ge=0, le=1)
    """What a grade of 0 gets for all of its hidden tests passing, in parts: reward is this times ``Grade.partial``."""
    detectors: tuple[str, ...] = ()
    """Detectors of bad turns that write hints; empty for all of them, ``("none",)`` for none."""
    hint_tokens: int = Field(default=256, ge=0)
    """A longer hint is left out."""
    at_once: int = Field(default=64, ge=1)
    """Rollouts that are under way at once; further ones wait."""
