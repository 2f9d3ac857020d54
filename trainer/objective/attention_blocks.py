"""The blocks of a packed row, in the forms that block attention needs; made once for all layers.

A row consists of blocks: prompts, and answers that attend to their prompt and to themselves. A model gets them as its
attention mask, the only argument that all models hand on to their layers unchanged. What is made of them hangs on that
tensor, so that compiled layers read tensors instead of computing with lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar, cast

import torch

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_ATTRIBUTE = "excise_blocks"
"""Attribute of a mask that holds its :class:`AttentionBlocks`."""


def not_compiled(function: FunctionT) -> FunctionT:
    """Keep a function out of the graphs of ``torch.compile``: it has to read values that graphs do not know."""
    return cast(FunctionT, torch.compiler.disable(function))


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCopies:
    """How to put the keys of its prompt before those of each block, and how to sum the gradients of these copies.

    T is the number of the row's tokens, K that of the keys with the copies, S that of the tokens of copied prompts.
    """

    taken_from: torch.Tensor
    """``[K]``: the token of each key."""
    kept_at: torch.Tensor
    """``[T]``: where among the keys each token stands in its own block."""
    shared: torch.Tensor
    """``[S]``: the tokens that are copied."""
    copied_to: torch.Tensor
    """``[S, N]``: where their copies are, padded with K to the largest number of copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionBlocks:
    """The blocks of one row."""

    lengths: tuple[int, ...]
    """Number of tokens of each block."""
    prompts: tuple[int, ...]
    """For each block, the number of its prompt's block; -1 for none."""
    query_offsets: torch.Tensor
    """``[B + 1]``, int32: where the queries of each block begin, and where the last ones end."""
    key_offsets: torch.Tensor
    """The same for the keys of each block, those of its prompt included."""
    most_queries: int
    """Number of queries of the longest block."""
    most_keys: int
    """Largest number of keys of a block."""
    copies: PromptCopies | None
    """``None`` if no block has a prompt."""

    @classmethod
    def of(cls, pairs: Sequence[Sequence[int]], device: torch.device) -> AttentionBlocks:
        """From each block's length and the number of its prompt's block (-1 for none)."""
        lengths, prompts = zip(*pairs, strict=True)
        key_lengths = [length + (lengths[prompt] if prompt >= 0 else 0) for length, prompt in pairs]

        def offsets(sizes: Sequence[int]) -> torch.Tensor:
            return torch.tensor([0, *accumulate(sizes)], dtype=torch.int32, device=device)

        return cls(
            lengths=lengths,
            prompts=prompts,
            query_offsets=offsets(lengths),
            key_offsets=offsets(key_lengths),
            most_queries=max(lengths),
            most_keys=max(key_lengths),
            copies=_copies(lengths, prompts, device) if max(prompts) >= 0 else None,
        )


def _copies(lengths: Sequence[int], prompts: Sequence[int], device: torch.device) -> PromptCopies:
    starts = list(accumulate(lengths, initial=0))
    tokens = [torch.arange(start, start + length) for start, length in zip(starts, lengths, strict=False)]
    taken_from: list[torch.Tensor] = []
    kept_at: list[torch.Tensor] = []
    places: dict[int, list[int]] = {}
    size = 0
    for number, prompt in enumerate(prompts):
        if prompt >= 0:
            places.setdefault(prompt, []).append(size)
            taken_from.append(tokens[prompt])
            size += lengths[prompt]
        taken_from.append(tokens[number])
        kept_at.append(torch.arange(size, size + lengths[number]))
        size += lengths[number]
    most = max(map(len, places.values()))
    copied_to = []
    for prompt, found in places.items():
        padded = torch.full((lengths[prompt], most), size)
        padded[:, : len(found)] = torch.tensor(found) + torch.arange(lengths[prompt])[:, None]
        copied_to.append(padded)
    return PromptCopies(
        taken_from=torch.cat(taken_from).to(device),
        kept_at=torch.cat(kept_at).to(device),
        shared=torch.cat([tokens[prompt] for prompt in places]).to(device),
        copied_to=torch.cat(copied_to).to(device),
    )


def block_mask(pairs: Sequence[Sequence[int]], device: torch.device) -> torch.Tensor:
    """The mask of a row, ``[1, 1, B, 2]``, int64: for each block its length and the number of its prompt's block."""
    mask: Any = torch.tensor(pairs, dtype=torch.int64, device=device)[None, None]
    setattr(mask, _ATTRIBUTE, AttentionBlocks.of(pairs, device))
    found: torch.Tensor = mask
    return found


def blocks_of(mask: torch.Tensor) -> AttentionBlocks:
    """The blocks of a mask of :func:`block_mask`, or of its copy."""
    found: AttentionBlocks | None = getattr(mask, _ATTRIBUTE, None)
    return found if found is not None else _read(mask)


@not_compiled
def _read(mask: torch.Tensor) -> AttentionBlocks:
    return AttentionBlocks.of(mask[0, 0].tolist(), mask.device)
