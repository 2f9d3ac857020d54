"""How far the student is from a teacher: a divergence over the student's likeliest tokens and the rest.

The support is the student's ``k`` likeliest tokens plus one bucket for all others, so that what lies outside still
counts with its sum. As a sum over a coarser partition it is a lower bound of the divergence over the whole vocabulary,
and equals it for ``k`` = V.
"""

from __future__ import annotations

from enum import StrEnum
from typing import cast

import torch
from torch.utils.checkpoint import checkpoint

from excise.trainer.objective.policy_forward import CHUNK, full_precision


class Divergence(StrEnum):
    """Which divergence."""

    REVERSE_KL = "reverse_kl"
    """KL(student ‖ teacher): the student leaves what the teacher would not say."""
    JSD = "jsd"
    """Half of each one's divergence from their mean: bounded by log 2."""


def top_and_rest(logprobs: torch.Tensor, top: torch.Tensor) -> torch.Tensor:
    """``[N, k + 1]``: log-probabilities of the chosen tokens and of all others together.

    ``log(1 - Σp)`` is taken as ``log(-expm1(logsumexp))`` with the logsumexp at most -1e-7, so that it stays finite
    where the chosen tokens have everything. ``top`` ``[N, k]`` of the whole vocabulary has no others: ``[N, k]``.
    """
    chosen = logprobs.gather(-1, top)
    if top.shape[-1] == logprobs.shape[-1]:
        return chosen
    rest = torch.log(-torch.expm1(chosen.logsumexp(-1).clamp(max=-1e-7)))
    return torch.cat([chosen, rest[:, None]], dim=-1)


def divergence(
    student: torch.Tensor, teacher: torch.Tensor, *, k: int = 100, kind: Divergence = Divergence.REVERSE_KL
) -> torch.Tensor:
    """``[N]``, in nats, from logits ``[N, V]`` of both at temperature 1; the gradient reaches the student alone."""
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


def lesson_loss(
    student: torch.Tensor,
    teacher: torch.Tensor,
    logprobs: torch.Tensor,
    sampler: torch.Tensor,
    *,
    k: int = 100,
    kind: Divergence = Divergence.REVERSE_KL,
    cap: float = 2.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``sum of sg(min(exp(log π - log μ), cap)) · divergence`` over the tokens of a lesson, and the unweighted sum.

    Logits ``[N, V]``, log-probabilities ``[N]`` of the sampled tokens. The weight corrects for tokens that the policy
    would no longer draw. The caller divides by the number of lesson tokens of the whole batch. Chunks of both logits
    are raised to float32 one after the other, and again for the gradient.
    """
    parts = [
        checkpoint(divergence, ours, theirs, k=k, kind=kind, use_reentrant=False)
        for ours, theirs in zip(student.split(CHUNK), teacher.split(CHUNK), strict=True)
    ]
    far = torch.cat(cast(list[torch.Tensor], parts))
    weight = torch.exp(logprobs.detach() - sampler.to(logprobs.dtype)).clamp(max=cap)
    return (weight * far).sum(), far.detach().sum()
