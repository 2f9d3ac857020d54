"""The exchange of blocks between ranks: who owns which block, and what is sent."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch.distributed.tensor import Replicate, Shard

from excise.trainer.optimizers.block_exchange import Exchange, batches, plan_exchange
from excise.trainer.optimizers.matrix_blocks import Blocks
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
    """The part of a tensor that a rank holds."""
    return whole[tuple(slice(cut.start, cut.stop) for cut in layout.boxes[rank])].clone()


@pytest.mark.parametrize("case", CASES)
def test_each_block_is_gathered_once_and_scattered_back(case: str) -> None:
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
    """Check that each rank receives what another sends, in the same order, and that the work is even."""
    for (sender, one), (receiver, other) in product(enumerate(plans), repeat=2):
        for mine, theirs in ((one.gather, other.gather), (one.scatter, other.scatter)):
            assert mine.sent_sizes[receiver] == theirs.received_sizes[sender]
        sent = [p for p in one.gather.sent if p.owner == receiver]
        assert sent == [p for p in other.gather.received if p.holder == sender]
        sent = [p for p in one.scatter.sent if p.holder == receiver]
        assert sent == [p for p in other.scatter.received if p.owner == sender]
    owned = [len(plan.owned) for plan in plans]
    assert max(owned) <= -(-sum(owned) // len(plans))


def test_blocks_that_one_rank_holds_whole_are_not_exchanged() -> None:
    where = layout((64, 8), FakeMesh(4), Shard(0))
    plans = [plan_exchange([(where, rows_of(64, 8, 8))], rank, [0] * 4) for rank in range(4)]
    assert all(plan.is_local for plan in plans)
    assert [plan.owned for plan in plans] == [(0, 1), (2, 3), (4, 5), (6, 7)]


def test_single_matrices_are_distributed_over_the_ranks() -> None:
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
