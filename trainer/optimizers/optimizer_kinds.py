"""The optimizers of a run and their settings, and gradient clipping over several meshes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal

import torch
import torch.distributed as dist
from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from torch.distributed.tensor import DTensor

from excise.errors import TrainingError
from excise.trainer.optimizers.matrix_blocks import block_rules
from excise.trainer.optimizers.muon import Muon, MuonSettings
from excise.trainer.optimizers.sharding_layout import layout_of, local_of


class OptimizerSettings(BaseModel):
    """``[optimizer]``: the optimizer and its constants."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["adamw", "muon"] = "adamw"
    """Muon is for models pretrained with Muon; it degrades models pretrained with Adam (arXiv 2605.10468)."""
    lr: float = Field(default=1e-6, gt=0)
    """Highest learning rate. Muon's updates have the root mean square of AdamW's, so the same value fits both."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay, not applied to vectors (norms and biases)."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW: decay rates of the running means."""
    eps: float = Field(default=1e-8, gt=0)
    """AdamW: added to the denominator."""
    momentum: float = Field(default=0.95, ge=0, lt=1)
    """Muon: decay rate of the momentum."""
    nesterov: bool = True
    """Muon: whether to use Nesterov momentum."""
    newton_schulz_steps: int = Field(default=5, ge=1, lt=100)
    """Muon: Newton-Schulz iterations per update."""


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """The optimizer of a Hugging Face model's trained parameters. With ``fully_shard``, call it after sharding.

    Parameter groups do not depend on the sharding, so checkpoints are portable. Raises :class:`TrainingError` for a
    model without trained parameters, and if Muon does not know how to divide a parameter.
    """
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not trained:
        raise TrainingError("The model has no parameter that is trained.")
    rules = block_rules(model) if settings.name == "muon" else dict.fromkeys(trained)
    blocks = {trained[name]: cut for name, cut in rules.items() if cut is not None}
    for name, parameter in trained.items():
        if parameter in blocks:
            layout_of(name, parameter)  # raises for a sharding that Muon does not support
    rest = [parameter for parameter in trained.values() if parameter not in blocks]
    groups = [
        _group("muon", list(blocks), settings.weight_decay),
        _group("adamw", [p for p in rest if p.ndim >= 2], settings.weight_decay),
        _group("adamw", [p for p in rest if p.ndim < 2], 0.0),
    ]
    groups = [group for group in groups if group["params"]]
    common: dict[str, Any] = {"lr": settings.lr, "betas": settings.betas, "eps": settings.eps}
    if settings.name == "adamw":
        several = len({getattr(parameter, "device_mesh", None) for parameter in rest}) > 1
        groups = [{key: group[key] for key in ("params", "weight_decay")} for group in groups]
        return torch.optim.AdamW(groups, foreach=False if several else None, **common)
    hyperparameters = MuonSettings(
        momentum=settings.momentum,
        nesterov=settings.nesterov,
        steps=settings.newton_schulz_steps,
        **common,
    )
    return Muon(groups, blocks, hyperparameters)


def _group(algorithm: str, parameters: list[nn.Parameter], weight_decay: float) -> dict[str, Any]:
    return {"params": parameters, "algorithm": algorithm, "weight_decay": weight_decay}


@torch.no_grad()
def clip_gradients(parameters: Iterable[torch.Tensor], max_norm: float = math.inf) -> torch.Tensor:
    """Scale all gradients to a common Euclidean norm of at most ``max_norm``; returns the norm before (float32).

    ``torch.nn.utils.clip_grad_norm_`` refuses parameters on several meshes. Here, squares are summed over the sharding
    dimensions of each mesh (so replicas count once) and then over meshes. The result is equal on all ranks, and all of
    them have to call this. Gradients stay unchanged if the norm is not finite.
    """
    by_placement: dict[object, list[torch.Tensor]] = defaultdict(list)
    for parameter in parameters:
        if (gradient := parameter.grad) is not None:
            mesh = (gradient.device_mesh, gradient.placements) if isinstance(gradient, DTensor) else None
            by_placement[mesh].append(gradient)
    if not by_placement:
        return torch.zeros(())
    total = torch.stack([_square(gradients) for gradients in by_placement.values()]).sum()
    norm = total.sqrt()
    if torch.isfinite(norm):
        factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for gradients in by_placement.values():
            torch._foreach_mul_([local_of(gradient) for gradient in gradients], factor)
    return norm


def _square(gradients: list[torch.Tensor]) -> torch.Tensor:
    """Sum of squares of gradients with the same mesh and placements."""
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
