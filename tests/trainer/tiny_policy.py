"""Models of some thousand parameters with random weights, and rollouts of random tokens for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from excise.trainer.rollout_types import Ending, Group, Rollout, Segment, Stop, Turn

VOCABULARY = 17


def tiny_model(seed: int = 0, dtype: torch.dtype = torch.float64, **changes: Any) -> torch.nn.Module:
    """A Qwen3 with two layers and grouped heads, as larger models have; ``changes`` go to its config."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        **{
            "vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 256,
            "tie_word_embeddings": False, "initializer_range": 0.3,
        }
        | changes
    )  # fmt: skip
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(config).to(dtype)
    torch.set_rng_state(state)
    return model


def tiny_mixture(seed: int = 0) -> torch.nn.Module:
    """A Qwen3 with four experts in each layer, two of them for a token."""
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, moe_intermediate_size=12, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=256, num_experts=4,
        num_experts_per_tok=2, tie_word_embeddings=False, initializer_range=0.3,
    )  # fmt: skip
    torch.manual_seed(seed)
    return Qwen3MoeForCausalLM(config)


def plain_logprobs(model: torch.nn.Module, ids: Sequence[int], temperature: float = 1.0) -> torch.Tensor:
    """The log-probability of each token given those before it, shape [T], the first 0: one plain forward pass."""
    logits = model(input_ids=torch.tensor([list(ids)])).logits[0] / temperature
    table = torch.log_softmax(logits, -1)
    rest = [table[place - 1, ids[place]] for place in range(1, len(ids))]
    return torch.stack([torch.zeros((), dtype=table.dtype), *rest])


def segment_of(
    ids: Sequence[int], turns: Sequence[tuple[int, int]], logprobs: Sequence[float], version: int = 0, **turn: Any
) -> Segment:
    """A segment whose sampled tokens are those of the turns; further fields go to every turn."""
    drawn = [any(start <= place < end for start, end in turns) for place in range(len(ids))]
    return Segment(
        ids=tuple(ids),
        sampled=tuple(drawn),
        logprobs=tuple(p if d else 0.0 for p, d in zip(logprobs, drawn, strict=True)),
        versions=tuple(version if d else -1 for d in drawn),
        turns=tuple(
            replace(Turn(start=start, end=end, stop=Stop.END, prompt_end=start - 1), **turn) for start, end in turns
        ),
    )


def rollout_of(name: str, segments: Sequence[Segment], reward: float, **fields: Any) -> Rollout:
    return Rollout(
        **{
            "rollout_id": name, "group_id": name.partition("-")[0], "instance_id": "task", "segments": tuple(segments),
            "ending": Ending.FINISHED, "task_reward": reward,
        }
        | fields
    )  # fmt: skip


def random_group(name: str, seed: int, rewards: Sequence[float], shift: float = 0.0) -> Group:
    """Rollouts of random tokens in one or two segments of one or two turns, with random log-probabilities."""
    generator = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=generator))

    def segment() -> Segment:
        length = number(8, 14)
        ids = [number(0, VOCABULARY) for _ in range(length)]
        turns = [(2, 4), (6, length)] if number(0, 2) else [(3, length - 1)]
        near = [-math.log(VOCABULARY) + shift + float(torch.randn((), generator=generator)) for _ in ids]
        return segment_of(ids, turns, [min(p, -1e-3) for p in near])

    rollouts = tuple(
        rollout_of(f"{name}-{i}", [segment() for _ in range(number(1, 3))], reward) for i, reward in enumerate(rewards)
    )
    return Group(group_id=name, instance_id="task", rollouts=rollouts)
