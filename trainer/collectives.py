"""The processes that train one model together; one of them alone is the usual case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist

T = TypeVar("T")


class Ranks:
    """What one process knows of the others."""

    def __init__(self) -> None:
        self.world = dist.get_world_size() if dist.is_initialized() else 1
        self.rank = dist.get_rank() if dist.is_initialized() else 0

    @property
    def is_first(self) -> bool:
        """The one that samples, decides and writes."""
        return self.rank == 0

    def share(self, rows: Sequence[T]) -> list[tuple[T, bool]]:
        """This process's rows, as many as every other's: the last ones may be there for the company and not count."""
        each = -(-len(rows) // self.world)
        return [
            (rows[min(place, len(rows) - 1)], place < len(rows))
            for place in range(self.rank, each * self.world, self.world)
        ]

    def summed(self, values: dict[str, float]) -> dict[str, float]:
        """Sums over all processes, by name; one may have names that others lack."""
        if self.world == 1:
            return values
        every: list[Any] = [None] * self.world
        dist.all_gather_object(every, values)
        names = sorted({name for one in every for name in one})
        return {name: sum(one.get(name, 0.0) for one in every) for name in names}

    def most(self, number: int) -> int:
        """The largest of all processes' numbers."""
        if self.world == 1:
            return number
        every: list[int] = [0] * self.world
        dist.all_gather_object(every, number)
        return max(every)

    def whole(self, tensor: torch.Tensor) -> torch.Tensor:
        """A sharded tensor put together (every process has to ask); any other as it is."""
        full = getattr(tensor, "full_tensor", None)
        return tensor if full is None else full()

    def wait(self) -> None:
        """Until all are here. Raises after the group's deadline."""
        if self.world > 1:
            dist.barrier()

    def told(self, value: Any) -> Any:
        """What the first process says; the others' own value is ignored. Raises after the group's deadline."""
        if self.world == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]
