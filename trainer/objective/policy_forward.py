"""The policy as a distribution over tokens: logits at chosen places, log-probabilities, entropy."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.utils.checkpoint import checkpoint

from excise.trainer.objective.row_packing import PackedIds, pack_ids

CHUNK = 1024
"""Predictions whose probabilities are held in full precision at a time."""


APART = {torch.float64: 1e-6, torch.float32: 1e-4}
"""How much of their spread logits may change with what they do not depend on, by number format: experts work on more or
fewer tokens then, and round otherwise."""
LESS_EXACT = 2e-2
"""The same in other formats."""


def without_dropout(model: torch.nn.Module) -> torch.nn.Module:
    """The same model, which drops nothing in training: noise in its probabilities would count as off-policy.

    ``eval()`` would do it as well, but switches activation checkpointing off.
    """
    for module in model.modules():
        names = ("p",) if isinstance(module, torch.nn.modules.dropout._DropoutNd) else tuple(vars(module))
        for name in names:
            if (name == "p" or "dropout" in name) and isinstance(getattr(module, name), float):
                setattr(module, name, 0.0)
    return model


@torch.no_grad()
def keeps_apart(model: torch.nn.Module, *, share: bool = False, blocks: bool = False) -> bool:
    """Whether a sequence stays as it is, whatever stands before it in its row. It is tried out with few tokens.

    Layers that carry a state along (convolutions, linear attention) do not heed position ids, and models without such
    ids (Bloom) have no other mask. With a process group every rank has to ask.
    """
    config: Any = getattr(model, "config", None)
    if config is None:
        return False
    size = int(config.get_text_config().vocab_size)
    prompt, last = _some(3, 5, size), _some(11, 6, size)
    was = model.training
    model.eval()
    found = []
    for seed in (17, 23):
        both = [[*prompt, *_some(seed, 7, size)], [*prompt, *last]]
        places = [range(len(prompt), len(ids)) for ids in both]
        packed = pack_ids(both, places, _device_of(model), share=share, blocks=blocks)
        found.append(full_precision(predicted_logits(model, packed)[-len(last) :]))
    model.train(was)
    kind = next(model.parameters()).dtype
    change = (found[0] - found[1]).abs().max() / found[0].std()
    return bool(change <= APART.get(kind, LESS_EXACT))


def _some(seed: int, number: int, size: int) -> list[int]:
    """Tokens that differ from those of other seeds."""
    return [(seed * (place + 1) + place * place) % size for place in range(number)]


def _device_of(model: torch.nn.Module) -> torch.device:
    return next(model.parameters()).device


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
    scaled = _at(temperature, logits)
    return scaled.gather(-1, targets[:, None])[:, 0] - scaled.logsumexp(-1)


@torch.no_grad()
def entropies(logits: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """``[P]``: entropy of each prediction, in nats."""
    parts = []
    for part in logits.split(CHUNK):
        logprobs = _at(temperature, part).log_softmax(-1)
        parts.append(-(logprobs.exp() * logprobs).sum(-1))
    return torch.cat(parts)


def _at(temperature: float, logits: torch.Tensor) -> torch.Tensor:
    """In full precision; no copy is made for nothing."""
    exact = full_precision(logits)
    return exact if temperature == 1 else exact / temperature


def full_precision(logits: torch.Tensor) -> torch.Tensor:
    """At least float32."""
    return logits if logits.dtype == torch.float64 else logits.float()
