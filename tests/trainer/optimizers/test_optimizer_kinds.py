"""The choice of an optimizer, and the clipping of gradients."""

from __future__ import annotations

import math

import muon_models
import torch
from torch import nn

from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings, build_optimizer, clip_gradients


def test_the_default_is_the_adamw_of_torch() -> None:
    optimizer = build_optimizer(muon_models.dense(), OptimizerSettings(weight_decay=0.1))
    assert type(optimizer) is torch.optim.AdamW
    assert [(len(group["params"]), group["weight_decay"]) for group in optimizer.param_groups] == [(15, 0.1), (9, 0.0)]


def test_clipping_equals_that_of_torch() -> None:
    parameters = [nn.Parameter(torch.zeros(3, 4)), nn.Parameter(torch.zeros(5)), nn.Parameter(torch.zeros(2))]
    expected = [nn.Parameter(torch.zeros(3, 4)), nn.Parameter(torch.zeros(5))]
    for one, other in zip(parameters, expected, strict=False):
        one.grad = torch.randn_like(one)
        other.grad = one.grad.clone()
    norm = torch.nn.utils.clip_grad_norm_(expected, 0.5)
    torch.testing.assert_close(clip_gradients(parameters, 0.5), norm)
    for one, other in zip(parameters, expected, strict=False):
        torch.testing.assert_close(one.grad, other.grad)


def test_a_non_finite_norm_scales_no_gradient() -> None:
    parameters = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))]
    parameters[0].grad, parameters[1].grad = torch.tensor([1.0, math.inf]), torch.tensor([3.0, 4.0])
    assert not torch.isfinite(clip_gradients(parameters, 0.5))
    assert torch.equal(parameters[1].grad, torch.tensor([3.0, 4.0]))
    assert clip_gradients([nn.Parameter(torch.zeros(2))], 0.5) == 0
