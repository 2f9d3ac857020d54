"""The loss written out token by token, and gradients to compare."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from excise.trainer.loop.learner import Learner, LearnerSettings
from excise.trainer.rollout_types import Ending, Group

from ..tiny_policy import plain_logprobs, random_group, rollout_of, segment_of


def written_out_loss(
    model: torch.nn.Module, groups: list[Group], settings: LearnerSettings, reference: torch.nn.Module | None = None
) -> torch.Tensor:
    """The loss of the policy gradient, token by token, with one forward pass per segment."""
    constants = settings.loss
    counting = [r for g in groups for r in g.rollouts if r.is_valid and g.has_signal]
    normaliser = len(counting) * settings.reference_length
    total = torch.zeros((), dtype=torch.float64)
    for group in groups:
        mine = [r for r in group.rollouts if r.is_valid]
        if not group.has_signal:
            continue
        for rollout in mine:
            advantage = rollout.reward - sum(r.reward for r in mine) / len(mine)
            for segment in rollout.segments:
                ours = plain_logprobs(model, segment.ids, settings.temperature)
                theirs = plain_logprobs(reference, segment.ids, settings.temperature).detach() if reference else None
                for place, drawn in enumerate(segment.sampled):
                    if not drawn:
                        continue
                    mu = segment.logprobs[place]
                    moved = math.exp(ours[place].item()) - math.exp(mu)
                    masked = (advantage > 0 and moved > 0.2) or (advantage < 0 and moved < -0.2)
                    ratio = min(math.exp(ours[place].item() - mu), constants.cap)
                    drift = ours[place].item() - theirs[place].item() if theirs is not None else 0.0
                    weight = 0.0 if masked else ratio * (advantage - constants.beta * drift)
                    total = total - weight * ours[place] / normaliser
                    total = total + constants.kappa * (ours[place] - mu) ** 2 / normaliser
    return total


def gradients(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def gradient_of_step(
    model: torch.nn.Module, groups: list[Group], settings: LearnerSettings, **rest: object
) -> torch.Tensor:
    """The gradient of one step with learning rate 0."""
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), settings, **rest)  # type: ignore[arg-type]
    learner.step(groups, version=0)
    return gradients(model)


def mixed_groups() -> list[Group]:
    """Two groups with signal, one of them with invalid rollouts, and one without signal."""
    infra = rollout_of("c-9", [segment_of([1, 2, 3, 4], [(2, 4)], [-1.0] * 4)], 1.0, ending=Ending.INFRA)
    flagged = rollout_of("c-8", [segment_of([1, 2, 3, 4], [(2, 4)], [-1.0] * 4)], 1.0, flags=("leak_used",))
    third = random_group("c", 3, [0.0, 0.5, 1.0])
    return [
        random_group("a", 1, [1.0, 0.0, 0.0, 1.0]),
        random_group("b", 2, [1.0, 1.0]),
        replace(third, rollouts=(*third.rollouts, infra, flagged)),
    ]


def close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether two results agree to the precision of float32, in which the model computes its norms."""
    return bool((found - wanted).norm() < 1e-6 * wanted.norm())


UNCLIPPED = LearnerSettings(reference_length=10, row_tokens=64, max_grad_norm=1e9)
