"""Which matrices Muon orthogonalises: a parameter whole, one attention head at a time, or one expert at a time.

The rules go by the names and shapes of Hugging Face models. What is no matrix of a linear map between hidden states
(embeddings, the output head, norms, biases, routers, convolutions) has no blocks and is AdamW's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Any

from torch import nn

from excise.errors import TrainingError

_BY_HEAD = re.compile(r"(^|\.)(q_proj|k_proj|v_proj|qkv_proj|query_key_value|q_b_proj|kv_b_proj)\.weight$")
"""Projections whose rows are heads, one after the other; fused ones hold those of queries, keys and values."""
_GATE_AND_UP = re.compile(r"(^|\.)gate_up_proj(\.weight)?$")
"""Two projections in one parameter."""
_ADAMW = re.compile(r"(^|\.)(router|gate|shared_expert_gate|\w*norm\w*|conv1d|\w*bias)(\.weight|$)")
"""Routers and whatever else is not to be orthogonalised although it may have two dimensions."""

Cut = tuple[range, ...]
"""What one dimension is cut into."""
Block = tuple[range, ...]
"""Indices along each dimension of the whole parameter; two of them hold the matrix, those before it one index each."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """How a parameter is cut into matrices of one shape that together cover it."""

    cuts: tuple[Cut, ...]
    """For each dimension, the ranges it is cut into, all equally long."""

    @property
    def each(self) -> tuple[Block, ...]:
        """Every block, in order."""
        return tuple(product(*self.cuts))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of one block."""
        *_, rows, columns = (len(cut[0]) for cut in self.cuts)
        return rows, columns


def block_rules(model: nn.Module) -> dict[str, Blocks | None]:
    """Name of each trained parameter of a Hugging Face model to its blocks; ``None`` for those that are AdamW's.

    Raises :class:`TrainingError` where the rows of a projection are no whole number of heads.
    """
    others = _tables(model)
    rules: dict[str, Blocks | None] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            module = model.get_submodule(name.rpartition(".")[0])
            is_linear = parameter.ndim >= 2 and id(parameter) not in others and not _ADAMW.search(name)
            rules[name] = _cut(name, tuple(parameter.shape), module, model) if is_linear else None
    return rules


def _tables(model: nn.Module) -> frozenset[int]:
    """Embeddings and the output head: rows looked up, or compared with, one at a time."""
    found = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    head = getattr(model, "get_output_embeddings", lambda: None)()
    if isinstance(head, nn.Module):
        found.update(id(parameter) for parameter in head.parameters())
    return frozenset(found)


def _cut(name: str, shape: tuple[int, ...], module: nn.Module, model: nn.Module) -> Blocks | None:
    *batch, rows, columns = shape
    if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        return None
    row_cut: Cut = (range(rows),)
    column_cut: Cut = (range(columns),)
    if _BY_HEAD.search(name):
        row_cut = _equal(rows, _head_rows(name, rows, model))
    elif _GATE_AND_UP.search(name):
        halves = _halves if getattr(module, "is_concatenated", True) else _interleaved
        if getattr(module, "is_transposed", False):
            column_cut = halves(columns)
        else:
            row_cut = halves(rows)
    return Blocks((*(_equal(size, 1) for size in batch), row_cut, column_cut))


def _head_rows(name: str, rows: int, model: nn.Module) -> int:
    """Rows of one head: of the attention module that holds the projection, else of the configuration."""
    attention = model.get_submodule(name.rsplit(".", 2)[0]) if name.count(".") > 1 else model
    config: Any = getattr(model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    num_heads = getattr(config, "num_attention_heads", 1)
    per_head: object = getattr(attention, "head_dim", None) or getattr(config, "head_dim", None)
    if ".q_b_proj." in name or ".kv_b_proj." in name:  # latent attention: its heads have parts of several lengths
        per_head = rows // num_heads
    elif per_head is None and config is not None:
        per_head = config.hidden_size // num_heads
    if not isinstance(per_head, int) or per_head < 1 or rows % per_head:
        raise TrainingError(
            f"{name}: {rows} rows are no whole number of heads of {per_head}; use AdamW for this model."
        )
    return per_head


def _equal(size: int, step: int) -> Cut:
    return tuple(range(start, start + step) for start in range(0, size, step))


def _halves(size: int) -> Cut:
    return _equal(size, size // 2)


def _interleaved(size: int) -> Cut:
    return range(0, size, 2), range(1, size, 2)
