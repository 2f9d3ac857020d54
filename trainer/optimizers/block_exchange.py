"""From parts of parameters to whole matrices and back: who owns which matrix, and who sends which piece to whom.

A batch is a number of parameters whose blocks have one shape. Every rank works out the same plan from shapes and
placements alone, so that nothing has to be agreed on at run time. A block that lies on one rank is, where that keeps
the work even, owned by that rank and sent to nobody; blocks that are cut by the borders of shards go to the ranks
that have the least to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from excise.trainer.optimizers.matrix_blocks import Block, Blocks
from excise.trainer.optimizers.sharding_layout import Box, Layout

Place = tuple[int | slice, ...]
Held = tuple[Place, Place, tuple[int, int]]
"""Place in the holder's part, place in the block, shape."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What of one block one rank holds."""

    parameter: int
    """Number of the parameter in the batch."""
    block: int
    """Number of the block in the batch."""
    holder: int
    """Rank that holds it."""
    owner: int
    """Rank that orthogonalises the block."""
    local: Place
    """Where it is in the holder's part."""
    inside: Place
    """Where it is in the block."""
    shape: tuple[int, int]
    """Its shape."""
    gathered: bool
    """It is sent to the owner; other replicas of it only come back."""

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Route:
    """One all-to-all as one rank sees it; buffers hold the pieces one behind the other, as listed."""

    sent: tuple[Piece, ...]
    """Pieces that this rank sends, by receiver."""
    sent_sizes: tuple[int, ...]
    """Elements for each rank."""
    received: tuple[Piece, ...]
    """Pieces that it gets, by sender."""
    received_sizes: tuple[int, ...]
    """Elements from each rank."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The plan of one batch for one rank."""

    there: Route
    """Pieces to the owners."""
    back: Route
    """Pieces to all who hold them."""
    owned: tuple[int, ...]
    """Blocks that this rank orthogonalises, by their numbers in the batch."""
    is_local: bool
    """No rank sends anything to another one."""


def plan_exchange(parameters: Sequence[tuple[Layout, Blocks]], rank: int, load: list[int]) -> Exchange:
    """The plan of one batch for ``rank``; ``load`` (work of each rank so far) grows by what the batch adds.

    All parameters lie on the same mesh with the same placements, and their blocks have one shape.
    """
    found = [(number, block, layout) for number, (layout, blocks) in enumerate(parameters) for block in blocks.each]
    alike: dict[tuple[object, ...], list[dict[int, Held]]] = {}  # layers are: what is worked out for one holds for all
    for layout, blocks in parameters:
        if (layout.shape, blocks) not in alike:
            alike[layout.shape, blocks] = [_held(block, layout.boxes) for block in blocks.each]
    held = [parts for layout, blocks in parameters for parts in alike[layout.shape, blocks]]
    owners = _owners([block for _, block, _ in found], held, load)
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
        for index, ((number, _, layout), owner) in enumerate(zip(found, owners, strict=True))
        for holder, (local, inside, shape) in held[index].items()
    ]
    world = len(load)
    there = [piece for piece in pieces if piece.gathered]
    return Exchange(
        there=_route(
            [(p.owner, p) for p in there if p.holder == rank], [(p.holder, p) for p in there if p.owner == rank], world
        ),
        back=_route(
            [(p.holder, p) for p in pieces if p.owner == rank],
            [(p.owner, p) for p in pieces if p.holder == rank],
            world,
        ),
        owned=tuple(index for index, owner in enumerate(owners) if owner == rank),
        is_local=all(piece.holder == piece.owner for piece in pieces),
    )


def _held(block: Block, boxes: Iterable[Box]) -> dict[int, Held]:
    """Rank to what it holds of the block: place in its part, place in the block, shape."""
    held: dict[int, Held] = {}
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
    """Those of ``wanted`` (which may skip) that lie in ``here`` (which does not)."""
    first = max(0, -(-(here.start - wanted.start) // wanted.step))
    last = max(first, -(-(here.stop - wanted.start) // wanted.step))
    return wanted[first:last]


def _owners(found: Sequence[Block], held: Sequence[Mapping[int, Held]], load: list[int]) -> list[int]:
    """An owner for each block: even work first, then as little as possible sent.

    No rank gets more than its share of the batch, rounded up; a block in one piece stays where it is if it can.
    """
    world, most = len(load), -(-len(found) // len(load))
    whole = [
        [r for r, (*_, shape) in parts.items() if shape == (len(b[-2]), len(b[-1]))]
        for b, parts in zip(found, held, strict=True)
    ]
    count, owners = [0] * world, [-1] * len(found)
    for index in sorted(range(len(found)), key=lambda index: not whole[index]):
        able = [rank for rank in range(world) if count[rank] < most]
        near = [rank for rank in whole[index] if rank in able]
        owners[index] = owner = min(near or able, key=lambda rank: (load[rank], rank not in held[index], rank))
        count[owner] += 1
        load[owner] += _work(found[index])
    return owners


def _route(sent: list[tuple[int, Piece]], received: list[tuple[int, Piece]], world: int) -> Route:
    def ordered(pieces: list[tuple[int, Piece]]) -> tuple[tuple[Piece, ...], tuple[int, ...]]:
        pieces = sorted(pieces, key=lambda pair: (pair[0], pair[1].block))
        sizes = {rank: sum(piece.size for _, piece in found) for rank, found in groupby(pieces, lambda pair: pair[0])}
        return tuple(piece for _, piece in pieces), tuple(sizes.get(rank, 0) for rank in range(world))

    return Route(*ordered(sent), *ordered(received))


def _work(block: Block) -> int:
    """Multiply-adds of one round of Newton-Schulz."""
    small, large = sorted(len(indices) for indices in block[-2:])
    return 2 * small * small * large + small**3


def batches(parameters: Sequence[tuple[Layout, Blocks]], sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """Numbers of parameters that go together: at least a block for each rank, then no more than ``most`` elements each.

    ``sizes`` are elements of the whole parameters.
    """
    batch: list[int] = []
    num_blocks = elements = 0
    for number, (layout, blocks) in enumerate(parameters):
        world = len(layout.boxes)
        if batch and num_blocks >= world and (elements + sizes[number]) / world > most:
            yield batch
            batch, num_blocks, elements = [], 0, 0
        batch.append(number)
        num_blocks += len(blocks.each)
        elements += sizes[number]
    if batch:
        yield batch
