"""The losses: a policy gradient with a trust region, and distillation from a teacher.

With ``r_t = exp(log π_t - log μ_t)`` (policy over sampler) and a rollout's advantage ``A``::

    L = -(1/Z) Σ m_t · sg(min(r_t, C)) · (A - β sg(log π_t - log π_ref,t)) · log π_t  +  (κ/Z) Σ (log r_t)²

``m_t`` is 0 where the policy has left the trust region in the direction of the advantage: its probability is more
than ``δ`` above the sampler's with A > 0, or more than ``δ`` below it with A < 0. The last term, over all tokens, pulls
the policy back towards the sampler. ``Z`` is constant for a batch, so all tokens weigh the same and the losses of parts
of a batch can be summed. The KL to the reference is part of the reward: as a loss, its estimate ``log π - log π_ref``
has a gradient of zero on average.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, cast

import torch
from pydantic import Field
from torch.utils.checkpoint import checkpoint

from excise.trainer.objective.policy_forward import CHUNK, full_precision
from excise.trainer.objective.training_sequences import LessonLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSettings:
    """``[learner.loss]``: the constants of the policy-gradient loss (see the module's docstring)."""

    cap: Annotated[float, Field(gt=0)] = 20.0
    """C: upper limit of the importance weight."""
    trust_region: float = 0.2
    """δ: half-width of the trust region, as a difference of probabilities."""
    kappa: float = 1e-3
    """κ: weight of the squared log-ratio."""
    beta: float = 0.0
    """β: weight of the KL to the reference; 0 needs no reference model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTokens:
    """Inputs of the policy loss for the tokens of a row besides the policy's log-probabilities; ``[P]`` each."""

    sampler: torch.Tensor
    """log μ: the sampler's log-probabilities."""
    advantages: torch.Tensor
    """A: the advantage of each token's rollout."""
    counted: torch.Tensor
    """Bool: which tokens are part of the loss."""
    reference: torch.Tensor | None = None
    """log π_ref, needed if β > 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLoss:
    """The loss of one row, and statistics (detached sums over its counted tokens)."""

    loss: torch.Tensor
    """Scalar, divided by Z."""
    sums: dict[str, torch.Tensor]
    """Name to sum: tokens, masked_positive, masked_negative, capped, log_ratio, kl_sampler, kl_reference."""


def policy_loss(logprobs: torch.Tensor, tokens: PolicyTokens, normaliser: float, settings: LossSettings) -> PolicyLoss:
    """The loss of log-probabilities ``[P]`` under the policy, divided by ``normaliser`` (Z)."""
    counted, advantages, reference = tokens.counted, tokens.advantages, tokens.reference
    sampler = tokens.sampler.to(logprobs.dtype)
    log_ratio = logprobs - sampler
    with torch.no_grad():
        moved = logprobs.exp() - sampler.exp()
        above = counted & (advantages > 0) & (moved > settings.trust_region)
        below = counted & (advantages < 0) & (moved < -settings.trust_region)
        ratio = log_ratio.exp()
        weight = ratio.clamp(max=settings.cap) * (counted & ~above & ~below)
        drift = logprobs - reference if reference is not None else torch.zeros_like(logprobs)
        reward = advantages.to(logprobs.dtype) - settings.beta * drift
    kept = torch.where(counted, logprobs, 0.0)
    squares = torch.where(counted, log_ratio, 0.0).square()
    loss = (-(weight * reward * kept).sum() + settings.kappa * squares.sum()) / normaliser
    with torch.no_grad():
        included = counted.to(logprobs.dtype)
        sums = {
            "tokens": included.sum(),
            "masked_positive": above.sum().to(logprobs.dtype),
            "masked_negative": below.sum().to(logprobs.dtype),
            "capped": ((ratio > settings.cap) & counted).sum().to(logprobs.dtype),
            "log_ratio": (log_ratio.abs() * included).sum(),
            "kl_sampler": ((ratio - 1 - log_ratio) * included).sum(),
            "kl_reference": (drift * included).sum(),
        }
    return PolicyLoss(loss=loss, sums=sums)


class Divergence(StrEnum):
    """The divergence between student and teacher."""

    REVERSE_KL = "reverse_kl"
    """KL(student ‖ teacher): mode-seeking; the student avoids what the teacher finds unlikely."""
    JSD = "jsd"
    """Jensen-Shannon divergence with equal weights: bounded by log 2."""


def top_and_rest(logprobs: torch.Tensor, top: torch.Tensor) -> torch.Tensor:
    """``[N, k + 1]``: log-probabilities of the tokens ``top`` ``[N, k]``, and of all other tokens together.

    ``log(1 - Σp)`` is computed as ``log(-expm1(logsumexp))`` with the logsumexp clamped to at most -1e-7, so that it is
    finite even if the chosen tokens have all the probability. If ``top`` is the whole vocabulary, the result has no
    rest: ``[N, k]``.
    """
    chosen = logprobs.gather(-1, top)
    if top.shape[-1] == logprobs.shape[-1]:
        return chosen
    rest = torch.log(-torch.expm1(chosen.logsumexp(-1).clamp(max=-1e-7)))
    return torch.cat([chosen, rest[:, None]], dim=-1)


def divergence(
    student: torch.Tensor, teacher: torch.Tensor, *, k: int = 100, kind: Divergence = Divergence.REVERSE_KL
) -> torch.Tensor:
    """``[N]``: the divergence in nats, from logits ``[N, V]`` at temperature 1. Only the student gets a gradient."""
    ours = full_precision(student).log_softmax(-1)
    theirs = full_precision(teacher.detach()).to(ours.dtype).log_softmax(-1)
    top = ours.detach().topk(min(k, ours.shape[-1]), dim=-1).indices
    p, q = top_and_rest(ours, top), top_and_rest(theirs, top)
    if kind is Divergence.REVERSE_KL:
        return _kl(p, q)
    mean = torch.logaddexp(p, q) - torch.log(torch.tensor(2.0, dtype=p.dtype, device=p.device))
    return (_kl(p, mean) + _kl(q, mean)) / 2


def _kl(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return (p.exp() * (p - q)).sum(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonSettings:
    """``[learner.lessons]``: the distillation loss from a teacher with more context."""

    weight: float = 0.1
    """Weight of the lessons' loss relative to the policy gradient's. The loss is the mean over the tokens of each kind
    of lesson (hints, privileged context, demonstrations), summed over the kinds; divergences are at temperature 1."""
    k: int = 100
    """Number of the student's likeliest tokens that the divergence distinguishes; the rest are one bucket."""
    kind: Divergence = Divergence.REVERSE_KL
    """The divergence between student and teacher."""
    cap: float = 2.0
    """Upper limit of a token's importance weight (policy over sampler)."""
    limits: LessonLimits = field(default_factory=LessonLimits)
    """Maximum lengths of lessons; longer ones are skipped."""


def lesson_loss(
    student: torch.Tensor,
    teacher: torch.Tensor,
    logprobs: torch.Tensor,
    sampler: torch.Tensor,
    settings: LessonSettings,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``Σ sg(min(exp(log π - log μ), cap)) · divergence`` over the tokens of a lesson, and the sum without weights.

    ``student`` and ``teacher`` are logits ``[N, V]``; ``logprobs`` and ``sampler`` are log-probabilities ``[N]`` of the
    sampled tokens under policy and sampler. The weight corrects for tokens that the policy would no longer sample. The
    caller divides by the number of lesson tokens in the batch. The logits are converted to float32 in chunks, and again
    in the backward pass.
    """
    parts = [
        checkpoint(divergence, ours, theirs, k=settings.k, kind=settings.kind, use_reentrant=False)
        for ours, theirs in zip(student.split(CHUNK), teacher.split(CHUNK), strict=True)
    ]
    distances = torch.cat(cast(list[torch.Tensor], parts))
    weight = torch.exp(logprobs.detach() - sampler.to(logprobs.dtype)).clamp(max=settings.cap)
    return (weight * distances).sum(), distances.detach().sum()
