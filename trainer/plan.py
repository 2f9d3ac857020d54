"""What a run would do, without doing it: for ``excise train --dry-run``."""

from __future__ import annotations

import json
from typing import Any

from excise.errors import ConfigError
from excise.trainer.checkpoints import Checkpoints
from excise.trainer.config import Method, TrainSettings
from excise.trainer.sdft import read_demonstrations


def plan(settings: TrainSettings) -> dict[str, Any]:
    """Names and values for people, after everything was checked that needs no model in memory.

    Raises :class:`ConfigError` if model, task set or demonstrations are not there.
    """
    schedule, learner = settings.loop.schedule, settings.learner
    model = _model(settings)
    rollouts = schedule.batch * schedule.group_size
    products = "bfloat16" if learner.bf16 else settings.policy.dtype
    found: dict[str, Any] = {
        "method": str(settings.method),
        "folder": str(settings.folder),
        "begins at step": max(Checkpoints(settings.folder / "checkpoints").steps(), default=0),
        "model": f"{settings.policy.model}: {model}",
        "steps": settings.loop.steps,
        "groups of a step": f"{schedule.batch} of {schedule.group_size} rollouts",
        "in flight": f"at most {(schedule.staleness + 1) * schedule.batch} groups, {schedule.staleness} steps ahead",
        "normaliser of a full batch": rollouts * learner.reference_length,
        "tokens of a forward pass": learner.row_tokens,
        "precision": f"{settings.policy.dtype} weights, {products} products",
        "optimizer": f"{settings.optimizer.name}, learning rate {settings.optimizer.lr:g}, then {settings.rate.decay}",
        "lessons": _lessons(settings),
        "effort": f"{settings.effort.scale:g} per unit of cost" if settings.effort.scale else "not priced",
        "checkpoints": f"every {settings.loop.checkpoint_every} steps, the last {settings.loop.keep} are kept",
    }
    if settings.method is Method.SDFT:
        assert settings.sdft is not None
        found["demonstrations"] = len(read_demonstrations(settings.sdft.demonstrations))
    else:
        found["tasks"] = _tasks(settings)
    return found


def _model(settings: TrainSettings) -> str:
    path = settings.policy.model / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: no model of Hugging Face's format ({error}).") from error
    size = sum(file.stat().st_size for file in settings.policy.model.glob("*.safetensors"))
    return f"{config.get('model_type', 'unknown')}, {size / 1e6:.0f} MB of weights"


def _tasks(settings: TrainSettings) -> int:
    from excise.datasets.taskset import TaskSet

    if "out" not in settings.excise:
        raise ConfigError("Reinforcement learning needs a task set: name it as excise.out.")
    taskset = TaskSet.open(settings.excise["out"])
    every = {task.instance_id for task in taskset.tasks()}
    if not every:
        raise ConfigError(f"{settings.excise['out']} has no task. Make some with `excise generate`.")
    left = every if settings.curriculum.tests_only else every - taskset.tests_only()
    if not left:
        raise ConfigError(
            f"No task in {settings.excise['out']} has recorded calls that tell anything. Sets of older programs "
            "say it of none: make them again, or set curriculum.tests_only = true."
        )
    return len(left)


def _lessons(settings: TrainSettings) -> str:
    lessons = settings.learner.lessons
    if lessons is None and settings.method is Method.RL:
        return "none"
    teacher = f"{settings.teacher.kind} at rate {settings.teacher.pace:g}"
    told = f", told {settings.teacher.privileged} where a whole group failed" if settings.teacher.privileged else ""
    return f"weight {lessons.weight if lessons else 1.0:g} from a teacher ({teacher}){told}"
