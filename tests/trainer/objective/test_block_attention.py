"""Block attention: the same results as the attention mask, in fewer operations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from excise.trainer.objective import block_attention
from excise.trainer.objective.block_attention import enable_block_attention, uses_block_attention
from excise.trainer.objective.policy_forward import compile_layers, predicted_logits
from excise.trainer.objective.row_packing import pack_ids

from ..tiny_policy import tiny_model
from .reference_loss import close

ANSWERS = [[3, 1, 4, 1, 5], [3, 1, 4, 9, 2, 6, 5], [8, 8, 8, 3], [3, 1, 4, 3]]
"""Three sequences with a prompt of three tokens in common, one with another prompt."""
DRAWN = [[3, 4], [3, 5, 6], [2, 3], [3]]


@pytest.mark.parametrize("share", [False, True])
def test_block_attention_equals_masked_attention(share: bool) -> None:
    model = tiny_model(0)
    masked = predicted_logits(model, pack_ids(ANSWERS, DRAWN, torch.device("cpu"), share=share))
    enable_block_attention(model)
    packed = pack_ids(ANSWERS, DRAWN, torch.device("cpu"), share=share, blocks=True)
    assert packed.mask is not None
    shared = [[3, -1], [2, 0], [4, 0], [2, -1], [2, 3], [3, -1], [1, 5]]
    assert packed.mask[0, 0].tolist() == (shared if share else [[5, -1], [7, -1], [4, -1], [4, -1]])
    assert close(predicted_logits(model, packed), masked)
    plain = model(input_ids=torch.tensor([ANSWERS[0]])).logits
    model.set_attn_implementation("sdpa")  # type: ignore[operator]
    assert close(plain, model(input_ids=torch.tensor([ANSWERS[0]])).logits)


def test_models_with_sliding_windows_keep_their_attention(tmp_path: Path) -> None:
    windows = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0}
    model = tiny_model(0, layer_types=["sliding_attention", "full_attention"], **windows)
    enable_block_attention(model)
    assert not uses_block_attention(model)
    whole = tiny_model(0)
    enable_block_attention(whole)
    whole.save_pretrained(tmp_path)  # type: ignore[operator]
    assert "blocks" not in (tmp_path / "config.json").read_text()


def reference_varlen(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, query_offsets: torch.Tensor, key_offsets: torch.Tensor,
    longest_query: int, longest_key: int, *, scale: float, window_size: tuple[int, int], enable_gqa: bool,
) -> torch.Tensor:  # fmt: skip
    """What ``torch.nn.attention.varlen.varlen_attn`` computes, which exists on GPUs only."""
    assert (window_size, enable_gqa) == ((-1, 0), True)
    assert query_offsets.diff().max() == longest_query
    assert key_offsets.diff().max() == longest_key
    found = []
    for place in range(len(query_offsets) - 1):
        q = query[query_offsets[place] : query_offsets[place + 1]].transpose(0, 1)
        k, v = (states[key_offsets[place] : key_offsets[place + 1]].transpose(0, 1) for states in (key, value))
        k, v = (states.repeat_interleave(len(q) // len(states), 0) for states in (k, v))
        scores = scale * q @ k.transpose(1, 2)
        seen = torch.ones_like(scores, dtype=torch.bool).tril(k.shape[1] - q.shape[1])
        found.append((scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v).transpose(0, 1))
    return torch.cat(found)


def gradient(model: Any, *, share: bool, blocks: bool, answers: list[list[int]] = ANSWERS) -> torch.Tensor:
    """The gradient of the answers' log-probability."""
    packed = pack_ids(answers, DRAWN, torch.device("cpu"), share=share, blocks=blocks)
    model.zero_grad()
    predicted_logits(model, packed).log_softmax(-1)[range(len(packed.targets)), packed.targets].sum().backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


@pytest.fixture
def flash_on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of flash attention, with a slow stand-in for it."""
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", reference_varlen)
    monkeypatch.setattr(block_attention, "_has_flash_attention", lambda *_: True)


@pytest.mark.usefixtures("flash_on_cpu")
@pytest.mark.parametrize("share", [False, True])
def test_flash_attention_gets_the_keys_of_each_block(share: bool) -> None:
    model = tiny_model(0)
    masked = gradient(model, share=share, blocks=False)
    enable_block_attention(model)
    assert close(gradient(model, share=share, blocks=True), masked)


@pytest.mark.usefixtures("flash_on_cpu")
def test_compiled_layers_are_one_graph_with_the_same_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = tiny_model(0)
    enable_block_attention(model)
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", torch.compiler.allow_in_graph(mean_of_keys))
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    longer = [*ANSWERS[:3], [3, 1, 4, 3, 7, 7]]
    plain = [gradient(model, share=True, blocks=True, answers=answers) for answers in (ANSWERS, longer)]
    torch._dynamo.reset()
    counters.clear()
    compile_layers(model, "aot_eager")
    compiled = [gradient(model, share=True, blocks=True, answers=answers) for answers in (ANSWERS, longer)]
    assert all(map(close, compiled, plain))
    assert not counters["graph_break"]
    assert counters["stats"]["unique_graphs"] <= 2  # the first layer's input has no gradient under a checkpoint


def mean_of_keys(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Something of the shape of attention that graphs can hold; it depends on all inputs."""
    return query * key.mean() + value.mean()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.05)])
def test_a_gpu_computes_the_same_logits(share: bool, dtype: torch.dtype, tolerance: float) -> None:
    exact = predicted_logits(tiny_model(0), pack_ids(ANSWERS, DRAWN, torch.device("cpu"), share=share))
    model = tiny_model(0, dtype).cuda()
    enable_block_attention(model)
    assert uses_block_attention(model)
    found = predicted_logits(model, pack_ids(ANSWERS, DRAWN, torch.device("cuda"), share=share, blocks=True))
    assert (found.double().cpu() - exact).norm() < tolerance * exact.norm()
