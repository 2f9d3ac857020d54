"""Block attention: the same results as the attention mask, in fewer operations."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from excise.trainer.objective.block_attention import enable_block_attention, uses_block_attention
from excise.trainer.objective.policy_forward import predicted_logits
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
