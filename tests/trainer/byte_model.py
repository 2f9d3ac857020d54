"""A tiny model that reads bytes, its tokenizer, and chat templates: all built in code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN_LIKE = (
    "{% if tools %}<|im_start|>system\n{% if messages[0].role == 'system' %}{{ messages[0].content }}\n\n{% endif %}"
    "# Tools\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}"
    "Calls: <tool_call>{...}</tool_call><|im_end|>\n{% endif %}"
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}"
    "{% endif %}{% endfor %}"
    "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n"
    "{% if loop.index0 < ns.last and '</think>' in m.content %}{{ m.content.split('</think>')[-1].lstrip('\n') }}"
    "{% else %}{{ m.content }}{% endif %}<|im_end|>\n"
    "{% elif m.role == 'tool' %}"
    "{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}"
    "\n<tool_response>\n{{ m.content }}\n</tool_response>"
    "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}<|im_end|>\n{% endif %}"
    "{% elif not (m.role == 'system' and tools) %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A template as Qwen's: lists the tools itself, joins neighbouring tool results, and drops thinking before the last
message of the user."""


def byte_tokenizer(template: str = TEMPLATE) -> PreTrainedTokenizerFast:
    """A tokenizer with one token per byte and three special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(BPE(vocab={letter: n for n, letter in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    made = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|pad|>")
    made.chat_template = template
    return made


def byte_model(seed: int = 0, *, kind: str = "qwen3", context: int = 512, scale: float = 4.0) -> Any:
    """A model of about 110,000 parameters; ``scale`` multiplies its logits: its distributions are far from uniform."""
    torch.manual_seed(seed)
    shape: dict[str, Any] = {
        "vocab_size": 264, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": context,
        "pad_token_id": 256, "bos_token_id": None, "eos_token_id": 258,
    }  # fmt: skip
    kinds: dict[str, Callable[[], Any]] = {
        "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**shape)),
        "llama": lambda: LlamaForCausalLM(LlamaConfig(**shape)),
        "windowed": lambda: MistralForCausalLM(MistralConfig(**shape, sliding_window=12)),
        "mixture": lambda: Qwen3MoeForCausalLM(
            Qwen3MoeConfig(**shape, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
        ),
    }
    model = kinds[kind]()
    with torch.no_grad():
        model.lm_head.weight.mul_(scale)
    return model.eval()
