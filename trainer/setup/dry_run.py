"""What a run will do, checked before it begins, and all that ``excise train --dry-run`` does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from excise.errors import ConfigError
from excise.trainer.loop.checkpoints import Checkpoints
from excise.trainer.rollouts.demonstrations import read_demonstrations
from excise.trainer.setup.evaluation_config import Trial, tasks_of
from excise.trainer.setup.model_folder import require_model
from excise.trainer.setup.training_config import Method, TrainSettings
from excise.types import Task


def plan(settings: TrainSettings) -> dict[str, Any]:
    """Names and values for people, after everything was checked that needs no model in memory.

    Raises :class:`ConfigError` if model, tasks to train on or demonstrations are not there.
    """
    schedule, learner = settings.loop.schedule, settings.learner
    model = require_model(settings.policy.model)
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


def trainable(settings: TrainSettings, tasks: Mapping[str, Task], tests_only: Collection[str]) -> tuple[str, ...]:
    """Ids of the tasks of a set that training may see and the mode can try; ``tests_only`` are those of which recorded
    calls tell nothing. None of them, if the mode can try none: the run then begins by asking the generator for some.

    Raises :class:`ConfigError` that says what to do where settings leave out all that there is.
    """
    out, trial = settings.excise["out"], Trial(eval=settings.eval)
    if not tasks:
        raise ConfigError(f"{out} has no task. Make some with `excise generate`.")
    left = {name: task for name, task in tasks.items() if settings.curriculum.tests_only or name not in tests_only}
    if not left:
        raise ConfigError(
            f"No task in {out} has recorded calls that tell anything. Sets of older programs "
            "say it of none: make them again, or set curriculum.tests_only = true."
        )
    found = tasks_of(trial, left, held_out=False)
    if not found and tasks_of(trial, left):
        raise ConfigError(
            f"All tasks in {out} that fit are held out, or share files with what is: "
            "hold out less in [eval.held_out], or make more with `excise generate`."
        )
    return found


def _tasks(settings: TrainSettings) -> int | str:
    from excise.datasets.taskset import TaskSet

    if "out" not in settings.excise:
        raise ConfigError("Reinforcement learning needs a task set: name it as excise.out.")
    taskset = TaskSet.open(settings.excise["out"])
    tests_only = frozenset() if settings.curriculum.tests_only else taskset.tests_only()
    found = trainable(settings, {task.instance_id: task for task in taskset.tasks()}, tests_only)
    asks = f"none that eval.mode = {settings.eval.mode!r} can try: the run begins by asking the generator for some"
    return len(found) or asks


def _lessons(settings: TrainSettings) -> str:
    lessons = settings.learner.lessons
    if lessons is None and settings.method is Method.RL:
        return "none"
    teacher = f"{settings.teacher.kind} at rate {settings.teacher.pace:g}"
    told = f", told {settings.teacher.privileged} where a whole group failed" if settings.teacher.privileged else ""
    return f"weight {lessons.weight if lessons else 1.0:g} from a teacher ({teacher}){told}"
