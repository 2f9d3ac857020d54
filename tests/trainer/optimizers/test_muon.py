"""Muon in one process: the blocks of parameters, orthogonalisation, batches and restored state."""

from __future__ import annotations

import muon_models
import pytest
import torch
from torch import nn

from excise.errors import TrainingError
from excise.trainer.optimizers import muon
from excise.trainer.optimizers.matrix_blocks import block_rules
from excise.trainer.optimizers.muon import orthogonalise
from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings, build_optimizer


def test_many_batches_give_the_result_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _stepped()
    monkeypatch.setattr(muon, "BATCH_ELEMENTS", 1)
    model = _stepped()
    for one, other in zip(expected.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-3)


def _stepped() -> nn.Module:
    model = muon_models.dense()
    optimizer = build_optimizer(model, OptimizerSettings(name="muon", lr=0.02))
    assert isinstance(optimizer, muon.Muon)
    torch.manual_seed(1)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    return model


# ------------------------------------------------------------------------------------------- rules
class Experts(nn.Module):
    """Stacked experts as some models have them."""

    def __init__(self, *, is_transposed: bool, is_concatenated: bool) -> None:
        super().__init__()
        self.is_transposed, self.is_concatenated = is_transposed, is_concatenated
        shape = (2, 6, 8) if is_transposed else (2, 8, 6)
        self.gate_up_proj = nn.Parameter(torch.zeros(shape))
        self.gate_up_proj_bias = nn.Parameter(torch.zeros(2, 8))


def test_stacked_experts_are_divided_by_their_layout() -> None:
    columns = block_rules(nn.ModuleDict({"experts": Experts(is_transposed=True, is_concatenated=False)}))
    rows = block_rules(nn.ModuleDict({"experts": Experts(is_transposed=False, is_concatenated=True)}))
    assert columns["experts.gate_up_proj_bias"] is rows["experts.gate_up_proj_bias"] is None
    cut = columns["experts.gate_up_proj"]
    assert cut is not None
    assert cut.cuts[1:] == ((range(6),), (range(0, 8, 2), range(1, 8, 2)))
    cut = rows["experts.gate_up_proj"]
    assert cut is not None
    assert cut.each[-1] == (range(1, 2), range(4, 8), range(6))


def test_parameters_that_are_no_linear_maps_use_adamw() -> None:
    rules = block_rules(muon_models.moe())
    others = {name for name, cut in rules.items() if cut is None}
    assert others == {name for name in rules if any(w in name for w in ("embed", "lm_head", "norm", "mlp.gate.weight"))}


def test_frozen_parameters_do_not_change() -> None:
    model = muon_models.dense()
    model.requires_grad_(False)
    with pytest.raises(TrainingError, match="no parameter"):
        build_optimizer(model, OptimizerSettings(name="muon"))
    model.get_submodule("model.layers.1.mlp").requires_grad_(True)
    optimizer = build_optimizer(model, OptimizerSettings(name="muon"))
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 3


def test_rows_that_are_no_heads_are_refused() -> None:
    model = muon_models.dense()
    model.get_submodule("model.layers.0.self_attn").head_dim = 7
    with pytest.raises(TrainingError, match=r"layers\.0\.self_attn\.q_proj\.weight: 60 rows .* 7"):
        block_rules(model)


# --------------------------------------------------------------------------------------- arithmetic
@pytest.mark.parametrize("shape", [(1, 24, 40), (3, 40, 24), (2, 16, 16)])
def test_singular_values_end_near_one(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    matrices = torch.randn(shape) * torch.tensor([1e-3, 1.0, 1e3])[: shape[0], None, None]
    result = orthogonalise(matrices)
    values = torch.linalg.svdvals(result)
    assert values.min() > 0.3
    assert values.max() < 1.3
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    inside = u.mT @ result @ v.mT  # diagonal: the same singular vectors
    assert (inside - torch.diag_embed(inside.diagonal(dim1=1, dim2=2))).abs().max() < 1e-3


def test_a_zero_matrix_stays_zero() -> None:
    assert not orthogonalise(torch.zeros(2, 4, 6)).any()


def test_the_learning_rate_of_a_restored_optimizer_is_used() -> None:
    model = muon_models.dense()
    optimizer = build_optimizer(model, OptimizerSettings(name="muon", lr=0.02))
    optimizer.load_state_dict(optimizer.state_dict())
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))
