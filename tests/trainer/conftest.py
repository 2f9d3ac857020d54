"""Tiny models and tokenizers, built in code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
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

from excise.pipeline.services.arena import TaskArena

torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))
"""The processes of a parallel test run share the cores: with more threads than cores, small models take many times as
long."""

SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_tokenizer(template: str = TEMPLATE) -> PreTrainedTokenizerFast:
    """One token a byte, and three special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(BPE(vocab={letter: n for n, letter in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    made = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|pad|>")
    made.chat_template = template
    return made


def tiny_model(seed: int = 0, *, kind: str = "qwen3", context: int = 512, scale: float = 4.0) -> Any:
    """About 110,000 parameters; ``scale`` makes its opinions strong, so that tests can see them."""
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


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    return byte_tokenizer()


@pytest.fixture
def going() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine to its end, within a minute."""

    def go(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(asyncio.wait_for(work, 60))

    return go


@pytest.fixture(scope="session")
def arena(stored: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskArena]:
    """The tasks of ``shapes``, with a folder for suspicious trajectories."""
    made = TaskArena(stored.taskset, stored.settings, suspicious=tmp_path_factory.mktemp("suspicious"))
    yield made
    made.close()
