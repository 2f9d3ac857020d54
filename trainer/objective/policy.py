"""The policy as a distribution over tokens: logits at chosen places, log-probabilities, entropy."""

from __future__ import annotations

from typing import cast

import torch
from torch.utils.checkpoint import checkpoint

from excise.trainer.objective.packing import PackedIds

CHUNK = 1024
"""Predictions whose probabilities are held in full precision at a time."""


def predicted_logits(model: torch.nn.Module, packed: PackedIds) -> torch.Tensor:
    """``[P, V]``: the logits of the wanted predictions alone; the output layer sees no other place."""
    given = {} if packed.mask is None else {"attention_mask": packed.mask}
    answer = model(
        input_ids=packed.ids, position_ids=packed.positions, logits_to_keep=packed.predict, use_cache=False, **given
    )
    return cast(torch.Tensor, answer.logits)[0]


def token_logprobs(logits: torch.Tensor, targets: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """``[P]``: log-probability of each target, in full precision.

    Chunks of the logits are raised to float32 one after the other, and again for the gradient, so that no second copy
    of ``[P, V]`` is kept.
    """
    parts = [
        checkpoint(_target_logprobs, part, target, temperature, use_reentrant=False)
        for part, target in zip(logits.split(CHUNK), targets.split(CHUNK), strict=True)
    ]
    return torch.cat(cast(list[torch.Tensor], parts))


def _target_logprobs(logits: torch.Tensor, targets: torch.Tensor, temperature: float) -> torch.Tensor:
    scaled = full_precision(logits) / temperature
    return scaled.gather(-1, targets[:, None])[:, 0] - scaled.logsumexp(-1)


@torch.no_grad()
def entropies(logits: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """``[P]``: entropy of each prediction, in nats."""
    parts = []
    for part in logits.split(CHUNK):
        logprobs = (full_precision(part) / temperature).log_softmax(-1)
        parts.append(-(logprobs.exp() * logprobs).sum(-1))
    return torch.cat(parts)


def full_precision(logits: torch.Tensor) -> torch.Tensor:
    """At least float32."""
    return logits if logits.dtype == torch.float64 else logits.float()
