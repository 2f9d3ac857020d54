"""Layout of sharded parameters: which rank holds which indices of the whole tensor.

Supports the layouts of FSDP2 and HSDP: meshes whose dimensions either replicate or shard into contiguous chunks,
divided as by ``torch.chunk`` (the last chunks may be smaller or empty).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

from excise.errors import TrainingError

Box = tuple[range, ...]
"""Index range along each dimension of the whole tensor that one rank holds."""


@dataclass(frozen=True)
class Layout:
    """How a tensor is divided over a device mesh. Ranks are numbered in the mesh, in order of their global ranks."""

    shape: tuple[int, ...]
    """Shape of the whole tensor."""
    mesh: DeviceMesh | None
    """The mesh; ``None`` if every process has the whole tensor."""
    placements: tuple[Placement, ...] = ()
    """Placement along each dimension of the mesh."""

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """The part of each rank."""
        return tuple(self._box(coordinate) for coordinate in self._coordinates)

    @cached_property
    def replicas(self) -> tuple[tuple[int, ...], ...]:
        """Coordinates of each rank along the replicating dimensions; equal for ranks that together hold one copy."""
        kept = [i for i, placement in enumerate(self.placements) if placement.is_replicate()]
        return tuple(tuple(coordinate[i] for i in kept) for coordinate in self._coordinates)

    @cached_property
    def _coordinates(self) -> tuple[tuple[int, ...], ...]:
        if self.mesh is None:
            return ((),)
        ranks = self.mesh.mesh
        order = ranks.flatten().argsort()
        return tuple(tuple(int(i) for i in torch.unravel_index(place, ranks.shape)) for place in order)

    def _box(self, coordinate: Sequence[int]) -> Box:
        box = [range(size) for size in self.shape]
        for place, placement, parts in zip(coordinate, self.placements, self._sizes, strict=True):
            if isinstance(placement, Shard):
                cut = box[placement.dim]
                step = -(-len(cut) // parts)
                box[placement.dim] = cut[place * step : (place + 1) * step]
        return tuple(box)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return () if self.mesh is None else tuple(self.mesh.mesh.shape)


def layout_of(name: str, tensor: torch.Tensor) -> Layout:
    """The layout of a parameter. Raises :class:`TrainingError` for unsupported placements."""
    if not isinstance(tensor, DTensor):
        return Layout(tuple(tensor.shape), None)
    for placement in tensor.placements:
        plain = isinstance(placement, (Shard, Replicate)) and not isinstance(placement, _StridedShard)
        if not plain:
            raise TrainingError(f"{name}: Muon does not know the placement {placement}; shard with fully_shard alone.")
    return Layout(tuple(tensor.shape), tensor.device_mesh, tuple(tensor.placements))


def group_of(mesh: DeviceMesh) -> dist.ProcessGroup:
    """The process group of all ranks of a mesh. All of them have to call this, in the same order."""
    ranks = sorted(int(rank) for rank in mesh.mesh.flatten())
    if len(ranks) == dist.get_world_size():
        group = dist.group.WORLD
        assert group is not None
        return group
    if mesh.ndim == 1:
        return mesh.get_group()
    made = dist.new_group(ranks, use_local_synchronization=True)
    assert isinstance(made, dist.ProcessGroup)
    return made


def local_of(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's part of a tensor, sharing its memory."""
    if not isinstance(tensor, DTensor):
        return tensor
    part: torch.Tensor = tensor.to_local()
    return part.wait() if hasattr(part, "wait") else part
