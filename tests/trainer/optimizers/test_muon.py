"""The parts of Muon: which blocks, who owns them, what the iteration comes to, and clipping."""

from __future__ import annotations

import math
from itertools import product

import muon_models
import pytest
import torch
from torch import nn
from torch.distributed.tensor import Replicate, Shard

from excise.errors import TrainingError
from excise.trainer.optimizers import muon
from excise.trainer.optimizers.block_exchange import Exchange, batches, plan_exchange
from excise.trainer.optimizers.matrix_blocks import Blocks, block_rules
from excise.trainer.optimizers.muon import orthogonalise
from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings, build_optimizer, clip_gradients
from excise.trainer.optimizers.sharding_layout import Layout


class FakeMesh:
    """The shape of a mesh, without processes."""

    def __init__(self, *sizes: int) -> None:
        self.mesh = torch.arange(math.prod(sizes)).view(sizes)


def layout(shape: tuple[int, ...], mesh: FakeMesh, *placements: object) -> Layout:
    return Layout(shape, mesh, placements)  # type: ignore[arg-type]


def rows_of(size: int, step: int, columns: int) -> Blocks:
    return Blocks((tuple(range(i, i + step) for i in range(0, size, step)), (range(columns),)))


CASES = {
    "heads that do not divide": (layout((60, 8), FakeMesh(4), Shard(0)), rows_of(60, 10, 8)),
    "fewer rows than ranks": (layout((3, 8), FakeMesh(4), Shard(0)), rows_of(3, 3, 8)),
    "replicas": (layout((60, 8), FakeMesh(2, 3), Replicate(), Shard(0)), rows_of(60, 10, 8)),
    "columns": (layout((12, 10), FakeMesh(4), Shard(1)), rows_of(12, 4, 10)),
    "rows and columns": (layout((12, 10), FakeMesh(2, 2), Shard(0), Shard(1)), rows_of(12, 4, 10)),
    "the same rows twice": (layout((14, 6), FakeMesh(2, 3), Shard(0), Shard(0)), rows_of(14, 7, 6)),
    "experts": (
        layout((5, 4, 6), FakeMesh(4), Shard(0)),
        Blocks((tuple(range(i, i + 1) for i in range(5)), (range(2), range(2, 4)), (range(6),))),
    ),
    "interleaved gate and up": (
        layout((3, 6, 8), FakeMesh(3), Shard(2)),
        Blocks((tuple(range(i, i + 1) for i in range(3)), (range(6),), (range(0, 8, 2), range(1, 8, 2)))),
    ),
}


def part(whole: torch.Tensor, layout: Layout, rank: int) -> torch.Tensor:
    """What a rank holds."""
    return whole[tuple(slice(cut.start, cut.stop) for cut in layout.boxes[rank])].clone()


@pytest.mark.parametrize("case", CASES)
def test_every_block_is_put_together_once_and_comes_back_to_all(case: str) -> None:
    where, blocks = CASES[case]
    world = len(where.boxes)
    plans = [plan_exchange([(where, blocks)], rank, [0] * world) for rank in range(world)]
    whole = torch.arange(1.0, 1.0 + math.prod(where.shape)).view(where.shape)
    found = {block: torch.zeros(blocks.shape) for block in range(len(blocks.each))}
    for rank, plan in enumerate(plans):
        for piece in plan.gather.sent:
            found[piece.block][piece.inside] += part(whole, where, rank)[piece.local]
    for number, block in enumerate(blocks.each):
        assert torch.equal(
            found[number], whole[torch.meshgrid(*map(torch.tensor, map(list, block)), indexing="ij")].view(blocks.shape)
        )
    for rank in range(world):
        mine = torch.zeros_like(part(whole, where, rank))
        for piece in plans[rank].scatter.received:
            mine[piece.local] += found[piece.block][piece.inside]
        assert torch.equal(mine, part(whole, where, rank))
    _agree(plans)


def _agree(plans: list[Exchange]) -> None:
    """What one rank sends to another is what that one expects, in the same order; the work is even."""
    for (sender, one), (receiver, other) in product(enumerate(plans), repeat=2):
        for mine, theirs in ((one.gather, other.gather), (one.scatter, other.scatter)):
            assert mine.sent_sizes[receiver] == theirs.received_sizes[sender]
        sent = [p for p in one.gather.sent if p.owner == receiver]
        assert sent == [p for p in other.gather.received if p.holder == sender]
        sent = [p for p in one.scatter.sent if p.holder == receiver]
        assert sent == [p for p in other.scatter.received if p.owner == sender]
    owned = [len(plan.owned) for plan in plans]
    assert max(owned) <= -(-sum(owned) // len(plans))


def test_whole_blocks_stay_at_home() -> None:
    where = layout((64, 8), FakeMesh(4), Shard(0))
    plans = [plan_exchange([(where, rows_of(64, 8, 8))], rank, [0] * 4) for rank in range(4)]
    assert all(plan.is_local for plan in plans)
    assert [plan.owned for plan in plans] == [(0, 1), (2, 3), (4, 5), (6, 7)]


def test_single_matrices_go_around() -> None:
    where, load = layout((8, 8), FakeMesh(4), Shard(0)), [0] * 4
    owners = [next(r for r in range(4) if plan_exchange([(where, rows_of(8, 8, 8))], r, list(load)).owned)]
    for _ in range(3):
        plan_exchange([(where, rows_of(8, 8, 8))], 0, load)
        owned = [bool(plan_exchange([(where, rows_of(8, 8, 8))], r, list(load)).owned) for r in range(4)]
        owners.append(owned.index(True))
    assert sorted(owners) == [0, 1, 2, 3]


def test_batches_hold_a_block_for_each_rank_and_end_when_they_are_large() -> None:
    members = [(layout((8, 8), FakeMesh(4), Shard(0)), rows_of(8, 8, 8))] * 10
    assert list(batches(members, [64] * 10, 32)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(batches(members, [64] * 10, 1 << 20)) == [list(range(10))]


def test_many_batches_are_the_same_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_stacked_experts_are_cut_as_they_are_laid_out() -> None:
    columns = block_rules(nn.ModuleDict({"experts": Experts(is_transposed=True, is_concatenated=False)}))
    rows = block_rules(nn.ModuleDict({"experts": Experts(is_transposed=False, is_concatenated=True)}))
    assert columns["experts.gate_up_proj_bias"] is rows["experts.gate_up_proj_bias"] is None
    cut = columns["experts.gate_up_proj"]
    assert cut is not None
    assert cut.cuts[1:] == ((range(6),), (range(0, 8, 2), range(1, 8, 2)))
    cut = rows["experts.gate_up_proj"]
    assert cut is not None
    assert cut.each[-1] == (range(1, 2), range(4, 8), range(6))


def test_what_is_no_linear_map_is_adamws() -> None:
    rules = block_rules(muon_models.moe())
    others = {name for name, cut in rules.items() if cut is None}
    assert others == {name for name in rules if any(w in name for w in ("embed", "lm_head", "norm", "mlp.gate.weight"))}


def test_frozen_parameters_are_left_alone() -> None:
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


def test_adamw_is_the_default_and_torchs_own() -> None:
    optimizer = build_optimizer(muon_models.dense(), OptimizerSettings(weight_decay=0.1))
    assert type(optimizer) is torch.optim.AdamW
    assert [(len(group["params"]), group["weight_decay"]) for group in optimizer.param_groups] == [(15, 0.1), (9, 0.0)]


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


def test_zero_stays_zero() -> None:
    assert not orthogonalise(torch.zeros(2, 4, 6)).any()


def test_the_learning_rate_of_a_restored_optimizer_counts() -> None:
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


def test_clipping_is_torchs_where_torch_can() -> None:
    parameters = [nn.Parameter(torch.zeros(3, 4)), nn.Parameter(torch.zeros(5)), nn.Parameter(torch.zeros(2))]
    expected = [nn.Parameter(torch.zeros(3, 4)), nn.Parameter(torch.zeros(5))]
    for one, other in zip(parameters, expected, strict=False):
        one.grad = torch.randn_like(one)
        other.grad = one.grad.clone()
    norm = torch.nn.utils.clip_grad_norm_(expected, 0.5)
    torch.testing.assert_close(clip_gradients(parameters, 0.5), norm)
    for one, other in zip(parameters, expected, strict=False):
        torch.testing.assert_close(one.grad, other.grad)


def test_a_norm_that_is_not_finite_scales_nothing() -> None:
    parameters = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))]
    parameters[0].grad, parameters[1].grad = torch.tensor([1.0, math.inf]), torch.tensor([3.0, 4.0])
    assert not torch.isfinite(clip_gradients(parameters, 0.5))
    assert torch.equal(parameters[1].grad, torch.tensor([3.0, 4.0]))
    assert clip_gradients([nn.Parameter(torch.zeros(2))], 0.5) == 0
