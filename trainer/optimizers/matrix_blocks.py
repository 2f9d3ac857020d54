"""Decides which matrices Muon orthogonalises: a whole parameter, each attention head, or each expert separately.

The rules use the names and shapes of Hugging Face models. Parameters that are not matrices of linear maps between
hidden states (embeddings, the output head, norms, biases, routers, convolutions) have no blocks; AdamW optimises them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Any

from torch import nn

from excise.errors import TrainingError

_BY_HEAD = re.compile(r"(^|\.)(q_proj|k_proj|v_proj|qkv_proj|query_key_value|q_b_proj|kv_b_proj)\.weight$")
"""Projections whose rows are attention heads; fused ones contain the heads of queries, keys and values."""
_GATE_AND_UP = re.compile(r"(^|\.)gate_up_proj(\.weight)?$")
"""Gate and up projection fused in one parameter."""
_ADAMW = re.compile(r"(^|\.)(router|gate|shared_expert_gate|\w*norm\w*|conv1d|\w*bias)(\.weight|$)")
"""Routers and other parameters that may have two dimensions but must not be orthogonalised."""

Cut = tuple[range, ...]
"""The index ranges that one dimension is divided into."""
Block = tuple[range, ...]
"""Index range along each dimension of a parameter: the last two are the matrix, the others have one index each."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Division of a parameter into matrices of equal shape."""

    cuts: tuple[Cut, ...]
    """For each dimension, the ranges of equal length that it is divided into."""

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
    """Name of each trained parameter of a Hugging Face model to its blocks; ``None`` for parameters of AdamW.

    Raises :class:`TrainingError` if the rows of a projection are not divisible by the size of a head.
    """
    tables = _embedding_tables(model)
    rules: dict[str, Blocks | None] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            module = model.get_submodule(name.rpartition(".")[0])
            is_linear = parameter.ndim >= 2 and id(parameter) not in tables and not _ADAMW.search(name)
            rules[name] = _divide(name, tuple(parameter.shape), module, model) if is_linear else None
    return rules


def _embedding_tables(model: nn.Module) -> frozenset[int]:
    """Ids of the parameters of embeddings and output head, whose rows belong to single tokens."""
    found = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    head = getattr(model, "get_output_embeddings", lambda: None)()
    if isinstance(head, nn.Module):
        found.update(id(parameter) for parameter in head.parameters())
    return frozenset(found)


def _divide(name: str, shape: tuple[int, ...], module: nn.Module, model: nn.Module) -> Blocks | None:
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
    """Rows per attention head, from the attention module of the projection or else from the configuration."""
    attention = model.get_submodule(name.rsplit(".", 2)[0]) if name.count(".") > 1 else model
    config: Any = getattr(model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    num_heads = getattr(config, "num_attention_heads", 1)
    per_head: object = getattr(attention, "head_dim", None) or getattr(config, "head_dim", None)
    if ".q_b_proj." in name or ".kv_b_proj." in name:  # latent attention: heads consist of parts of different size
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
