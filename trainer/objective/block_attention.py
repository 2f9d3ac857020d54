"""Block-wise attention of packed rows: computes only the part of the attention matrix that the mask allows.

Masked attention over a row of ``T`` tokens costs ``T²``, whatever the mask. Here each sequence attends to itself and to
its shared prompt, and nothing else is computed; the gradients equal those of the masked row. On a GPU that is one call
of flash attention over sequences of different lengths (:func:`torch.nn.attention.varlen.varlen_attn`), which needs
16-bit numbers; for others, and on GPUs without flash attention, the mask is used. On a CPU, SDPA runs on slices of the
row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import torch
from torch.nn.functional import scaled_dot_product_attention

from excise.trainer.objective.attention_blocks import AttentionBlocks, PromptCopies, blocks_of, not_compiled
from excise.trainer.objective.policy_forward import keeps_sequences_apart
from excise.trainer.objective.row_packing import can_share, dense_mask

NAME = "excise_blocks"
"""Name under which this implementation is registered with transformers."""
HALF_PRECISION = (torch.bfloat16, torch.float16)
"""Number formats of flash attention."""
LARGEST_HEAD = 256
"""Largest size of a head that flash attention supports; sizes are multiples of 8."""
FLASH_CAPABILITY = (8, 0)
"""Compute capability of the oldest GPUs with flash attention."""


def enable_block_attention(model: Any) -> None:
    """Switch a model to block attention if it supports shared prompts; otherwise leave it unchanged."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    if not can_share(model):
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
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if attention_mask is not None and attention_mask.dtype == torch.int64:
        number_format = _number_format(query)
        if _has_flash_attention(query, number_format):
            q, k, v = (states.to(number_format) for states in (query, key, value))
            return _flash_attention(q, k, v, blocks_of(attention_mask), scaling), None
        if query.device.type == "cpu":
            return _sliced_attention(module, query, key, value, blocks_of(attention_mask), scaling), None
        attention_mask = _dense(attention_mask)
    whole: tuple[torch.Tensor, None] = sdpa_attention_forward(
        module, query, key, value, attention_mask, scaling=scaling, **rest
    )
    return whole


def _number_format(states: torch.Tensor) -> torch.dtype:
    """The number format that SDPA would compute in."""
    kind = states.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype


def _has_flash_attention(query: torch.Tensor, number_format: torch.dtype) -> bool:
    """Whether the device has flash attention for queries ``[1, H, T, D]`` in a number format."""
    if query.device.type != "cuda" or number_format not in HALF_PRECISION:
        return False
    size = query.shape[-1]
    return size <= LARGEST_HEAD and size % 8 == 0 and torch.cuda.get_device_capability(query.device) >= FLASH_CAPABILITY


@not_compiled
@lru_cache(maxsize=1)
def _dense(blocks: torch.Tensor) -> torch.Tensor:
    """The mask for SDPA; all layers of a forward pass ask with the same tensor, and tensors are equal by identity."""
    return dense_mask(blocks[0, 0])


def _flash_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, blocks: AttentionBlocks, scaling: float | None
) -> torch.Tensor:
    """``[1, T, H, D]``: attention of a row's queries ``[1, H, T, D]`` and its keys and values."""
    from torch.nn.attention.varlen import varlen_attn

    queries, keys, values = (states[0].transpose(0, 1) for states in (query, key, value))
    found = varlen_attn(
        queries,
        _with_prompts(keys, blocks.copies),
        _with_prompts(values, blocks.copies),
        blocks.query_offsets,
        blocks.key_offsets,
        blocks.most_queries,
        blocks.most_keys,
        scale=scaling,
        window_size=(-1, 0),  # causal, where the last query sees the last key
        enable_gqa=True,
    )
    assert isinstance(found, torch.Tensor)
    return found[None]


class _CopyPrompts(torch.autograd.Function):
    """``states[taken_from]``. The gradient is a sum without atomic additions, so it is always the same."""

    @staticmethod
    def forward(
        context: Any,
        states: torch.Tensor,
        taken_from: torch.Tensor,
        kept_at: torch.Tensor,
        shared: torch.Tensor,
        copied_to: torch.Tensor,
    ) -> torch.Tensor:
        """See :class:`~excise.trainer.objective.attention_blocks.PromptCopies`."""
        context.save_for_backward(kept_at, shared, copied_to)
        return states[taken_from]

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None, None]:
        """The gradient of each token's state: that of its own block and those of all copies."""
        (gradient,) = gradients
        kept_at, shared, copied_to = context.saved_tensors
        padded = torch.cat([gradient, gradient.new_zeros(1, *gradient.shape[1:])])
        summed = padded[copied_to].sum(1)
        found = gradient[kept_at]
        return found.index_put((shared,), found[shared] + summed), None, None, None, None


def _with_prompts(states: torch.Tensor, copies: PromptCopies | None) -> torch.Tensor:
    """``[K, H, D]``: states of a row, ``[T, H, D]``, with those of its prompt before each block."""
    if copies is None:
        return states
    indices = copies.taken_from, copies.kept_at, copies.shared, copies.copied_to
    return cast(torch.Tensor, _CopyPrompts.apply(states, *indices))  # type: ignore[no-untyped-call]


@not_compiled
def _sliced_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    blocks: AttentionBlocks,
    scaling: float | None,
) -> torch.Tensor:
    """``[1, T, H, D]``: the same by SDPA on slices of the row."""
    from transformers.integrations.sdpa_attention import repeat_kv

    groups = int(getattr(module, "num_key_value_groups", 1))
    queries = query.split(blocks.lengths, dim=2)
    keys, values = (repeat_kv(states, groups).split(blocks.lengths, dim=2) for states in (key, value))
    parts = []
    for number, (length, prompt) in enumerate(zip(blocks.lengths, blocks.prompts, strict=True)):
        k, v, mask = keys[number], values[number], None
        if prompt >= 0:
            k, v = torch.cat([keys[prompt], k], dim=2), torch.cat([values[prompt], v], dim=2)
            mask = torch.ones(length, k.shape[2], dtype=torch.bool).tril(k.shape[2] - length)
        parts.append(
            scaled_dot_product_attention(queries[number], k, v, attn_mask=mask, is_causal=mask is None, scale=scaling)
        )
    return torch.cat(parts, dim=2).transpose(1, 2).contiguous()
