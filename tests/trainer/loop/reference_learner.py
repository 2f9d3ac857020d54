"""A learner with all losses switched on and batches for it, for one process as well as for several ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from excise.trainer.loop.checkpoints import Checkpoints, RunState
from excise.trainer.loop.learner import Learner
from excise.trainer.loop.queue_state import QueueState
from excise.trainer.rollout_types import Group
from excise.trainer.setup.run_builder import build_learner
from excise.trainer.setup.training_config import TrainSettings

from ..tiny_policy import random_group, tiny_mixture, tiny_model


def make_learner(*, mixture: bool = False, replicas: int = 1, bf16: bool = False) -> Learner:
    settings = TrainSettings.model_validate(
        {
            "folder": "unused", "policy": {"model": "unused", "replicas": replicas}, "rate": {"warmup": 2},
            "optimizer": {"lr": 0.01},
            "learner": {
                "reference_length": 10, "row_tokens": 30, "loss": {"beta": 0.1}, "lessons": {"weight": 0.5},
                "bf16": bf16,
            },
            "teacher": {"kind": "ema", "rate": 0.5},
        }
    )  # fmt: skip
    return build_learner(settings, tiny_mixture(0) if mixture else tiny_model(0, torch.float32))


def batch(number: int) -> list[Group]:
    """Five groups; one turn has a hint."""
    found = [random_group(f"{name}", 10 * number + i, [1.0, 0.0, 0.0]) for i, name in enumerate("abcde")]
    first, *others = found[0].rollouts
    turn = replace(first.segments[0].turns[0], hint="No.", hint_ids=(1, 2), detector="unknown_tool")
    segment: Any = replace(first.segments[0], turns=(turn,))
    found[0] = replace(found[0], rollouts=(replace(first, segments=(segment,)), *others))
    return found


def learn(learner: Learner, checkpoints: Checkpoints, steps: int, resume: bool) -> list[dict[str, float]]:
    """Make steps, each with another batch, write a checkpoint, and return the metrics of each step."""
    begun = checkpoints.load(max(checkpoints.steps()), learner).step if resume else 0
    metrics = [learner.step(batch(number), number) for number in range(begun, steps)]
    metrics[-1]["score"] = sum(learner.score([[1, 2, 3, 4]])[0])
    metrics[-1]["lesson_kl"] = learner.lesson_kl(batch(0))
    checkpoints.save(learner, RunState(step=steps, queue=QueueState()))
    return metrics


def learn_alone(folder: Path, steps: int, resume: bool = False, *, mixture: bool = False) -> dict[str, torch.Tensor]:
    """Learn in this process, and return the weights."""
    learner = make_learner(mixture=mixture)
    learn(learner, Checkpoints(folder / "checkpoints"), steps, resume)
    return dict(learner.weights())
