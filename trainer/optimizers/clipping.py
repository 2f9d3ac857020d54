"""The norm of gradients that lie on different meshes, and clipping by it.

``torch.nn.utils.clip_grad_norm_`` refuses parameters of several meshes. Here squares are summed on each mesh over the
dimensions that shard, and the sums are added: replicas are counted once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from excise.trainer.optimizers.sharding_layout import local_of


@torch.no_grad()
def clip_gradients(parameters: Iterable[torch.Tensor], max_norm: float = math.inf) -> torch.Tensor:
    """Scale all gradients down to a common Euclidean norm of at most ``max_norm``; the norm before, in float32.

    Equal on all ranks. A norm that is not finite scales nothing: the caller decides what to do with such a step.
    Every rank of the parameters' meshes has to call it.
    """
    by_place: dict[object, list[torch.Tensor]] = defaultdict(list)
    for parameter in parameters:
        if (gradient := parameter.grad) is not None:
            mesh = (gradient.device_mesh, gradient.placements) if isinstance(gradient, DTensor) else None
            by_place[mesh].append(gradient)
    if not by_place:
        return torch.zeros(())
    total = torch.stack([_square(gradients) for gradients in by_place.values()]).sum()
    norm = total.sqrt()
    if torch.isfinite(norm):
        factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for gradients in by_place.values():
            torch._foreach_mul_([local_of(gradient) for gradient in gradients], factor)
    return norm


def _square(gradients: list[torch.Tensor]) -> torch.Tensor:
    """Sum of squares of gradients of one mesh and placement."""
    first = gradients[0]
    norms = torch._foreach_norm(
        [local_of(gradient) for gradient in gradients], 2, dtype=torch.promote_types(first.dtype, torch.float32)
    )
    square = torch.stack(norms).square().sum()
    if isinstance(first, DTensor):
        for dimension, placement in enumerate(first.placements):
            if placement.is_shard():
                dist.all_reduce(square, group=first.device_mesh.get_group(dimension))
    return square
