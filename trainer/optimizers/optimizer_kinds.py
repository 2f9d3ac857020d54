"""The optimizer of a run."""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from excise.errors import TrainingError
from excise.trainer.optimizers.matrix_blocks import block_rules
from excise.trainer.optimizers.muon import Muon
from excise.trainer.optimizers.sharding_layout import layout_of


class OptimizerSettings(BaseModel):
    """``[optimizer]`` of a training configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["adamw", "muon"] = "adamw"
    """Muon is for models pretrained with it: full-parameter Muon degrades models trained with Adam (2605.10468)."""
    lr: float = Field(default=1e-6, gt=0)
    """Learning rate; Muon's steps have the root mean square of AdamW's, so that the same one fits both."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled; not on vectors (norms and biases)."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's running means."""
    eps: float = Field(default=1e-8, gt=0)
    """AdamW's."""
    momentum: float = Field(default=0.95, ge=0, lt=1)
    """Muon's."""
    nesterov: bool = True
    """Muon's."""
    newton_schulz_steps: int = Field(default=5, ge=1, lt=100)
    """Muon's."""


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """The optimizer of a Hugging Face model's trained parameters, after ``fully_shard`` where that is used.

    Groups are the same however the model is sharded, so that checkpoints fit. Raises :class:`TrainingError` for a
    model without trained parameters, and where Muon cannot know how to cut it.
    """
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not trained:
        raise TrainingError("The model has no parameter that is trained.")
    rules = block_rules(model) if settings.name == "muon" else dict.fromkeys(trained)
    blocks = {trained[name]: cut for name, cut in rules.items() if cut is not None}
    for name, parameter in trained.items():
        if parameter in blocks:
            layout_of(name, parameter)  # names the parameter that is sharded in a way Muon does not know
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
    return Muon(
        groups,
        blocks,
        momentum=settings.momentum,
        nesterov=settings.nesterov,
        steps=settings.newton_schulz_steps,
        **common,
    )


def _group(algorithm: str, parameters: list[nn.Parameter], weight_decay: float) -> dict[str, Any]:
    return {"params": parameters, "algorithm": algorithm, "weight_decay": weight_decay}
