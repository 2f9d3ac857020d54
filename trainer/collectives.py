"""Collective operations of the processes (ranks) that train one model together; usually there is only one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist

T = TypeVar("T")


class RankGroup:
    """This process's rank and the collective operations with the other ranks; all of them are no-ops for one rank.

    Every rank has to call a collective operation, in the same order. Operations raise after the timeout of the process
    group.
    """

    def __init__(self) -> None:
        self.world_size = dist.get_world_size() if dist.is_initialized() else 1
        self.rank = dist.get_rank() if dist.is_initialized() else 0

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which samples, decides and writes files."""
        return self.rank == 0

    def local_rows(self, rows: Sequence[T]) -> list[tuple[T, bool]]:
        """This rank's rows, the same number on each rank, as (row, whether it counts).

        Where rows cannot be divided evenly, the last row is repeated as padding, which does not count.
        """
        per_rank = -(-len(rows) // self.world_size)
        return [
            (rows[min(index, len(rows) - 1)], index < len(rows))
            for index in range(self.rank, per_rank * self.world_size, self.world_size)
        ]

    def sum_by_name(self, values: dict[str, float]) -> dict[str, float]:
        """Sums over all ranks, by name. A name missing on a rank counts as 0 there."""
        if self.world_size == 1:
            return values
        gathered: list[Any] = [None] * self.world_size
        dist.all_gather_object(gathered, values)
        names = sorted({name for one in gathered for name in one})
        return {name: sum(one.get(name, 0.0) for one in gathered) for name in names}

    def max_over_ranks(self, number: int) -> int:
        """The largest of the numbers of all ranks."""
        if self.world_size == 1:
            return number
        gathered: list[int] = [0] * self.world_size
        dist.all_gather_object(gathered, number)
        return max(gathered)

    def full_tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """A sharded tensor gathered from all ranks; any other tensor unchanged."""
        gather = getattr(tensor, "full_tensor", None)
        return tensor if gather is None else gather()

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        if self.world_size > 1:
            dist.barrier()

    def broadcast(self, value: Any) -> Any:
        """Rank 0's value; the values of other ranks are ignored."""
        if self.world_size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]
