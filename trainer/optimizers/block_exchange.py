"""Plans the all-to-all exchanges that turn sharded parameters into whole matrix blocks and back.

Each block is assigned an owner rank, which orthogonalises it. A batch is a set of parameters whose blocks have the same
shape. Every rank computes the same plan from shapes and placements, so no communication is needed for it. A block that
lies completely on one rank is owned by that rank if the work stays balanced; blocks that are split over several shards
go to the ranks with the least work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from excise.trainer.optimizers.matrix_blocks import Block, Blocks
from excise.trainer.optimizers.sharding_layout import Box, Layout

Index = tuple[int | slice, ...]
HeldPart = tuple[Index, Index, tuple[int, int]]
"""Index in the holder's local tensor, index in the block, shape."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of one block that one rank holds."""

    parameter: int
    """Index of the parameter in the batch."""
    block: int
    """Index of the block in the batch."""
    holder: int
    """Rank that holds the piece."""
    owner: int
    """Rank that orthogonalises the block."""
    local: Index
    """Index of the piece in the holder's local tensor."""
    inside: Index
    """Index of the piece in the block."""
    shape: tuple[int, int]
    """Rows and columns of the piece."""
    gathered: bool
    """Whether the piece is sent to the owner. Other replicas of it only receive the result."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Route:
    """One rank's part in an all-to-all exchange. Buffers contain the pieces one after the other, in this order."""

    sent: tuple[Piece, ...]
    """Pieces that this rank sends, sorted by receiver."""
    sent_sizes: tuple[int, ...]
    """Number of elements for each receiver."""
    received: tuple[Piece, ...]
    """Pieces that this rank receives, sorted by sender."""
    received_sizes: tuple[int, ...]
    """Number of elements from each sender."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The plan of one batch for one rank."""

    gather: Route
    """Exchange that brings the pieces to the owners."""
    scatter: Route
    """Exchange that returns the results to all holders."""
    owned: tuple[int, ...]
    """Indices in the batch of the blocks that this rank orthogonalises."""
    is_local: bool
    """Whether no rank sends anything to another."""


def plan_exchange(parameters: Sequence[tuple[Layout, Blocks]], rank: int, load: list[int]) -> Exchange:
    """The plan of one batch for ``rank``. Adds the batch's work to ``load`` (the work of each rank so far).

    All parameters must have the same mesh and placements, and blocks of the same shape.
    """
    numbered = [(number, block, layout) for number, (layout, blocks) in enumerate(parameters) for block in blocks.each]
    holders_of: dict[tuple[object, ...], list[dict[int, HeldPart]]] = {}  # shared by parameters of equal layout
    for layout, blocks in parameters:
        if (layout.shape, blocks) not in holders_of:
            holders_of[layout.shape, blocks] = [_holders(block, layout.boxes) for block in blocks.each]
    holders = [parts for layout, blocks in parameters for parts in holders_of[layout.shape, blocks]]
    owners = _owners([block for _, block, _ in numbered], holders, load)
    pieces = [
        Piece(
            parameter=number,
            block=index,
            holder=holder,
            owner=owner,
            local=local,
            inside=inside,
            shape=shape,
            gathered=layout.replicas[holder] == layout.replicas[owner],
        )
        for index, ((number, _, layout), owner) in enumerate(zip(numbered, owners, strict=True))
        for holder, (local, inside, shape) in holders[index].items()
    ]
    world = len(load)
    gathered = [piece for piece in pieces if piece.gathered]
    return Exchange(
        gather=_route(
            [(p.owner, p) for p in gathered if p.holder == rank],
            [(p.holder, p) for p in gathered if p.owner == rank],
            world,
        ),
        scatter=_route(
            [(p.holder, p) for p in pieces if p.owner == rank],
            [(p.owner, p) for p in pieces if p.holder == rank],
            world,
        ),
        owned=tuple(index for index, owner in enumerate(owners) if owner == rank),
        is_local=all(piece.holder == piece.owner for piece in pieces),
    )


def _holders(block: Block, boxes: Iterable[Box]) -> dict[int, HeldPart]:
    """Rank to the part of the block that it holds."""
    held: dict[int, HeldPart] = {}
    for rank, box in enumerate(boxes):
        cuts = list(takewhile(len, map(_overlap, block, box)))
        if len(cuts) == len(block):
            *batch, rows, columns = (
                slice(cut[0] - here.start, cut[-1] - here.start + 1, cut.step)
                for cut, here in zip(cuts, box, strict=True)
            )
            inside = tuple(
                slice(wanted.index(cut[0]), wanted.index(cut[-1]) + 1)
                for cut, wanted in zip(cuts[-2:], block[-2:], strict=True)
            )
            shape = len(cuts[-2]), len(cuts[-1])
            held[rank] = (*(cut.start for cut in batch), rows, columns), inside, shape
    return held


def _overlap(wanted: range, here: range) -> range:
    """The indices of ``wanted`` (any step) that are in ``here`` (step 1)."""
    first = max(0, -(-(here.start - wanted.start) // wanted.step))
    last = max(first, -(-(here.stop - wanted.start) // wanted.step))
    return wanted[first:last]


def _owners(blocks: Sequence[Block], holders: Sequence[Mapping[int, HeldPart]], load: list[int]) -> list[int]:
    """An owner for each block, chosen for balanced work first and little communication second.

    No rank owns more than its share of the batch, rounded up. A block on a single rank stays there if possible.
    """
    world, max_blocks = len(load), -(-len(blocks) // len(load))
    whole = [
        [r for r, (*_, shape) in parts.items() if shape == (len(b[-2]), len(b[-1]))]
        for b, parts in zip(blocks, holders, strict=True)
    ]
    count, owners = [0] * world, [-1] * len(blocks)
    for index in sorted(range(len(blocks)), key=lambda index: not whole[index]):
        available = [rank for rank in range(world) if count[rank] < max_blocks]
        complete = [rank for rank in whole[index] if rank in available]
        owners[index] = owner = min(
            complete or available, key=lambda rank: (load[rank], rank not in holders[index], rank)
        )
        count[owner] += 1
        load[owner] += _work(blocks[index])
    return owners


def _route(sent: list[tuple[int, Piece]], received: list[tuple[int, Piece]], world: int) -> Route:
    def ordered(pieces: list[tuple[int, Piece]]) -> tuple[tuple[Piece, ...], tuple[int, ...]]:
        pieces = sorted(pieces, key=lambda pair: (pair[0], pair[1].block))
        sizes = {rank: sum(piece.size for _, piece in found) for rank, found in groupby(pieces, lambda pair: pair[0])}
        return tuple(piece for _, piece in pieces), tuple(sizes.get(rank, 0) for rank in range(world))

    return Route(*ordered(sent), *ordered(received))


def _work(block: Block) -> int:
    """Multiply-adds of one Newton-Schulz iteration."""
    small, large = sorted(len(indices) for indices in block[-2:])
    return 2 * small * small * large + small**3


def batches(
    parameters: Sequence[tuple[Layout, Blocks]], sizes: Sequence[int], max_elements: int
) -> Iterator[list[int]]:
    """Divide parameters into batches; yields the indices of each.

    A batch has at least one block per rank; beyond that, at most ``max_elements`` per rank. ``sizes`` are the numbers
    of elements of the whole parameters.
    """
    batch: list[int] = []
    num_blocks = elements = 0
    for number, (layout, blocks) in enumerate(parameters):
        world = len(layout.boxes)
        if batch and num_blocks >= world and (elements + sizes[number]) / world > max_elements:
            yield batch
            batch, num_blocks, elements = [], 0, 0
        batch.append(number)
        num_blocks += len(blocks.each)
        elements += sizes[number]
    if batch:
        yield batch
