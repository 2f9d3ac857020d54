"""Block-wise attention of packed rows on a CPU: computes only the part of the attention matrix that the mask allows.

Masked attention over a row of ``T`` tokens costs ``T²``, whatever the mask. Here SDPA runs on slices of the row, so
each sequence attends to itself and to its shared prompt; the gradients equal those of the masked row. On a GPU, many
small kernels would cost more than they save.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from excise.trainer.objective.policy_forward import keeps_sequences_apart
from excise.trainer.objective.row_packing import can_share

NAME = "excise_blocks"
"""Name under which this implementation is registered with transformers."""


def enable_block_attention(model: Any) -> None:
    """Switch a CPU model to block attention if it supports shared prompts; otherwise leave it unchanged."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    if not can_share(model) or next(model.parameters()).device.type != "cpu":
        return
    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    try:
        model.set_attn_implementation(NAME)
        works = uses_block_attention(model) and keeps_sequences_apart(model, share=True, blocks=True)
    except (RuntimeError, TypeError, ValueError, AttributeError):  # models with their own attention code
        works = False
    if not works:
        model.set_attn_implementation("sdpa")


def uses_block_attention(model: torch.nn.Module) -> bool:
    """Whether block attention is enabled for a model."""
    return getattr(getattr(model, "config", None), "_attn_implementation", None) == NAME


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **rest: Any,
) -> tuple[torch.Tensor, None]:
    """Attention function for transformers. ``attention_mask`` has blocks as in ``PackedIds.mask``, or is for SDPA."""
    from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

    if attention_mask is None or attention_mask.dtype != torch.int64:
        whole: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **rest
        )
        return whole
    groups = int(getattr(module, "num_key_value_groups", 1))
    blocks: list[list[int]] = attention_mask[0, 0].tolist()
    lengths = [length for length, _ in blocks]
    queries = query.split(lengths, dim=2)
    keys, values = (repeat_kv(states, groups).split(lengths, dim=2) for states in (key, value))
    parts = []
    for number, (length, prompt) in enumerate(blocks):
        k, v, mask = keys[number], values[number], None
        if prompt >= 0:
            k, v = torch.cat([keys[prompt], k], dim=2), torch.cat([values[prompt], v], dim=2)
            mask = torch.ones(length, k.shape[2], dtype=torch.bool).tril(k.shape[2] - length)
        parts.append(
            scaled_dot_product_attention(queries[number], k, v, attn_mask=mask, is_causal=mask is None, scale=scaling)
        )
    return torch.cat(parts, dim=2).transpose(1, 2).contiguous(), None
