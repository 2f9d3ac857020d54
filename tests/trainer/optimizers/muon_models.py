"""Models of some ten thousand parameters, made in code: dense, fused, and with experts."""

from __future__ import annotations

import torch
from torch import nn
from transformers import Phi3Config, Phi3ForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

VOCABULARY = 64

_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def dense() -> nn.Module:
    """Six query heads, two key heads and an MLP of 52: none can be divided evenly among four ranks."""
    torch.manual_seed(0)
    return Qwen3ForCausalLM(Qwen3Config(**_COMMON, head_dim=10, intermediate_size=52, tie_word_embeddings=True))


def fused() -> nn.Module:
    """A model with fused projections: queries, keys and values in one, gate and up in one."""
    torch.manual_seed(0)
    common = {**_COMMON, "hidden_size": 48}
    return Phi3ForCausalLM(Phi3Config(**common, intermediate_size=56))


def moe() -> nn.Module:
    """A model with six experts, stacked in three-dimensional parameters."""
    torch.manual_seed(0)
    config = Qwen3MoeConfig(
        **_COMMON, head_dim=10, intermediate_size=52, moe_intermediate_size=20, num_experts=6, num_experts_per_tok=2
    )
    return Qwen3MoeForCausalLM(config)


MODELS = {"dense": dense, "fused": fused, "moe": moe}
