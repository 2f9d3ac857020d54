"""What a rollout may spend, and how it is carried out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSettings:
    """Budgets and habits of rollouts; the sampling's own are here, too."""

    temperature: float = 1.0
    """Of sampling; 0 takes the likeliest token."""
    answer_tokens: int = 2048
    """Tokens of one answer."""
    max_tokens: int = 32_768
    """Sampled tokens of one rollout."""
    max_turns: int = 40
    """Answers of one rollout."""
    max_malformed: int = 3
    """Answers in a row without one call that can be run."""
    time_s: float = 1200.0
    """Wall seconds of one rollout, its grade not among them."""
    command_s: float = 120.0
    """Wall seconds of one command."""
    output_chars: int = 8000
    """Characters of one tool's result."""
    summary_at: int = 0
    """Tokens of a context at which the model sums up and goes on from its summary; 0: never."""
    summary_tokens: int = 1024
    """Tokens of a summary."""
    partial_credit: float = 0.0
    """What a grade of 0 gets for all of its hidden tests passing, in parts: reward is this times ``Grade.partial``."""
    detectors: tuple[str, ...] = ()
    """Detectors of bad turns that write hints; empty for all of them, ``("none",)`` for none."""
    hint_tokens: int = 256
    """A longer hint is left out."""
    at_once: int = 64
    """Rollouts that are under way at once; further ones wait."""
