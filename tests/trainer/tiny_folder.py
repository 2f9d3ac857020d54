"""A model folder as Hugging Face has it, built in code: one token per character, a chat template, random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CHARACTERS = "\n abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;()[]{}=+-*/<>!?'\"_#"
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>", "<|system|>")


def make_tokenizer(template: bool = True) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {text: number for number, text in enumerate([*SPECIAL, "?", *[c for c in CHARACTERS if c != "?"]])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", additional_special_tokens=list(SPECIAL[1:])
    )
    if template:
        fast.chat_template = TEMPLATE
    return fast


def make_folder(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """Write a model of some thousand parameters with its tokenizer into ``folder``; ``changes`` go to its config."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = make_tokenizer()
    torch.manual_seed(seed)
    config = Qwen3Config(
        **{
            "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512,
            "tie_word_embeddings": True, "initializer_range": 0.05, "eos_token_id": 0, "pad_token_id": 0,
        }
        | changes
    )  # fmt: skip
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_demonstrations(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(json.dumps({"prompt": p, "demonstration": d}) + "\n" for p, d in pairs))
    return path
