"""The check and description of a run by ``excise train --dry-run``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from excise.errors import ConfigError
from excise.trainer.loop.checkpoints import Checkpoints
from excise.trainer.rollouts.demonstrations import read_demonstrations
from excise.trainer.setup.evaluation_config import eligible_tasks
from excise.trainer.setup.model_folder import require_model
from excise.trainer.setup.training_config import Method, TrainSettings
from excise.types import Task


def describe_run(settings: TrainSettings) -> dict[str, Any]:
    """Check everything that needs no model in memory, and describe the run as names and values.

    Raises :class:`ConfigError` if the model, tasks to train on, or demonstrations are missing.
    """
    schedule, learner = settings.loop.schedule, settings.learner
    model = require_model(settings.policy.model)
    rollouts = schedule.batch * schedule.group_size
    products = "bfloat16" if learner.bf16 else settings.policy.dtype
    description: dict[str, Any] = {
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
        description["demonstrations"] = len(read_demonstrations(settings.sdft.demonstrations))
    else:
        description["tasks"] = _count_tasks(settings)
    return description


def trainable_tasks(settings: TrainSettings, tasks: Mapping[str, Task], tests_only: Collection[str]) -> tuple[str, ...]:
    """Ids of the tasks of a set that are not held out and that the configured mode can attempt.

    ``tests_only`` are the tasks without useful recorded calls. The result is empty if the mode can attempt no task of
    the set: the run then starts by requesting tasks. Raises :class:`ConfigError` with a remedy if the settings exclude
    all tasks.
    """
    out = settings.excise["out"]
    if not tasks:
        raise ConfigError(f"{out} has no task. Make some with `excise generate`.")
    left = {name: task for name, task in tasks.items() if settings.curriculum.tests_only or name not in tests_only}
    if not left:
        raise ConfigError(
            f"No task in {out} has recorded calls that tell anything. Sets of older programs "
            "say it of none: make them again, or set curriculum.tests_only = true."
        )
    found = eligible_tasks(settings.eval, left, held_out=False)
    if not found and eligible_tasks(settings.eval, left):
        raise ConfigError(
            f"All tasks in {out} that fit are held out, or share files with what is: "
            "hold out less in [eval.held_out], or make more with `excise generate`."
        )
    return found


def _count_tasks(settings: TrainSettings) -> int | str:
    from excise.datasets.taskset import TaskSet

    if "out" not in settings.excise:
        raise ConfigError("Reinforcement learning needs a task set: name it as excise.out.")
    taskset = TaskSet.open(settings.excise["out"])
    tests_only = frozenset() if settings.curriculum.tests_only else taskset.tests_only()
    found = trainable_tasks(settings, {task.instance_id: task for task in taskset.tasks()}, tests_only)
    request = f"none that eval.mode = {settings.eval.mode!r} can try: the run begins by asking the generator for some"
    return len(found) or request


def _lessons(settings: TrainSettings) -> str:
    lessons = settings.learner.lessons
    if lessons is None and settings.method is Method.RL:
        return "none"
    teacher = f"{settings.teacher.kind} at rate {settings.teacher.effective_rate:g}"
    context = f", told {settings.teacher.privileged} where a whole group failed" if settings.teacher.privileged else ""
    return f"weight {lessons.weight if lessons else 1.0:g} from a teacher ({teacher}){context}"
