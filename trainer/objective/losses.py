"""The policy gradient with a trust region.

With ``r_t = exp(log π_t - log μ_t)`` (policy over sampler) and a rollout's advantage ``A``::

    L = -(1/Z) Σ m_t · sg(min(r_t, C)) · (A - β sg(log π_t - log π_ref,t)) · log π_t  +  (κ/Z) Σ (log r_t)²

``m_t`` is 0 where the policy has moved past the trust region in the direction that the advantage pushes: its
probability is more than ``δ`` above the sampler's with A > 0, or below it with A < 0. The last term, over all tokens,
draws the policy back to the sampler. ``Z`` is a constant of the batch, so that every token weighs the same and sums
over parts of a batch add up to the batch. The KL to the reference is part of the reward: the gradient of its estimate
``log π - log π_ref`` as a loss would be zero on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSettings:
    """The constants of the formula."""

    cap: float = 20.0
    """C: an importance weight counts as this at most."""
    trust_region: float = 0.2
    """δ, in probability."""
    kappa: float = 1e-3
    """κ."""
    beta: float = 0.0
    """β; 0 needs no reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLoss:
    """The loss of one row, and what was seen on the way (sums over its counted tokens, detached)."""

    loss: torch.Tensor
    """Scalar, divided by Z."""
    sums: dict[str, torch.Tensor]
    """Name to sum: tokens, masked_positive, masked_negative, capped, log_ratio, kl_sampler, kl_reference."""


def policy_loss(
    logprobs: torch.Tensor,
    sampler: torch.Tensor,
    advantages: torch.Tensor,
    counted: torch.Tensor,
    normaliser: float,
    settings: LossSettings,
    reference: torch.Tensor | None = None,
) -> PolicyLoss:
    """The loss over tokens ``[P]``; only ``counted`` ones take part. ``reference``: log π_ref, for β > 0."""
    sampler = sampler.to(logprobs.dtype)
    log_ratio = logprobs - sampler
    with torch.no_grad():
        moved = logprobs.exp() - sampler.exp()
        above = counted & (advantages > 0) & (moved > settings.trust_region)
        below = counted & (advantages < 0) & (moved < -settings.trust_region)
        ratio = log_ratio.exp()
        weight = ratio.clamp(max=settings.cap) * (counted & ~above & ~below)
        drift = logprobs - reference if reference is not None else torch.zeros_like(logprobs)
        earned = advantages.to(logprobs.dtype) - settings.beta * drift
    kept = torch.where(counted, logprobs, 0.0)
    squares = torch.where(counted, log_ratio, 0.0).square()
    loss = (-(weight * earned * kept).sum() + settings.kappa * squares.sum()) / normaliser
    with torch.no_grad():
        seen = counted.to(logprobs.dtype)
        sums = {
            "tokens": seen.sum(),
            "masked_positive": above.sum().to(logprobs.dtype),
            "masked_negative": below.sum().to(logprobs.dtype),
            "capped": ((ratio > settings.cap) & counted).sum().to(logprobs.dtype),
            "log_ratio": (log_ratio.abs() * seen).sum(),
            "kl_sampler": ((ratio - 1 - log_ratio) * seen).sum(),
            "kl_reference": (drift * seen).sum(),
        }
    return PolicyLoss(loss=loss, sums=sums)
