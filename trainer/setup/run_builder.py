"""From settings to the parts of a run. The only place that knows how they fit together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from excise.datasets.rollouts import write_rollouts
from excise.errors import ConfigError, TrainingError
from excise.trainer.collectives import Ranks
from excise.trainer.curriculum.rungs import rung_of
from excise.trainer.interfaces import Curriculum, Engine, RolloutMaker
from excise.trainer.loop.controller import Parts
from excise.trainer.loop.learner import Learner, LearnerSettings, LessonSettings
from excise.trainer.loop.rank_commands import LeadingLearner, shard
from excise.trainer.objective.block_attention import attend_in_blocks
from excise.trainer.objective.policy_forward import without_dropout
from excise.trainer.objective.privileged_context import PrivilegedContext
from excise.trainer.objective.rewards import with_penalties
from excise.trainer.objective.teachers import (
    EmaTeacher,
    FrozenTeacher,
    Teacher,
    TeacherKind,
    TrustRegionTeacher,
    frozen_copy,
)
from excise.trainer.objective.training_sequences import sequences
from excise.trainer.optimizers.optimizer_kinds import build_optimizer
from excise.trainer.reporting.engine_metrics import MeteredEngine
from excise.trainer.reporting.rollout_rows import rollout_rows, stored_as
from excise.trainer.rollout_types import Group
from excise.trainer.rollouts.demonstrations import DemonstrationMaker, Epochs, Templated, read_demonstrations
from excise.trainer.rollouts.single_turn import comment
from excise.trainer.setup.model_folder import load_tokenizer
from excise.trainer.setup.training_config import Method, RateTable, TrainSettings
from excise.types import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is trained, and its tokenizer."""

    learner: Learner
    """The policy."""
    tokenizer: Any
    """Of its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplies:
    """What reinforcement learning needs of other parts; plain distillation needs none of it."""

    maker: Callable[[Engine, Any], RolloutMaker]
    """From engine (the metered one) and tokenizer."""
    curriculum: Curriculum
    """Chooses tasks."""
    tasks: Callable[[], Mapping[str, Task]]
    """The tasks that there are now."""


def build_policy(settings: TrainSettings) -> Policy:
    """Model, optimizer, teacher. Raises :class:`TrainingError` or :class:`ConfigError` if the model cannot be had."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(settings.seed)
    tokenizer = load_tokenizer(settings.policy.model)
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            settings.policy.model,
            dtype=getattr(torch, settings.policy.dtype),
            attn_implementation=settings.policy.attention,
        )
    except (OSError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())
        raise TrainingError(f"{settings.policy.model}: no model that can be trained: {said}") from error
    if settings.policy.activation_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return Policy(learner=build_learner(settings, model, _device(settings.policy.device)), tokenizer=tokenizer)


def build_learner(settings: TrainSettings, model: torch.nn.Module, device: torch.device | None = None) -> Learner:
    """The learner of a model that is there, on ``device`` (where it is, if nothing is said)."""
    wanted = _fitting(learner_settings(settings), model)
    without_dropout(model)
    ranks = Ranks()
    device = device or next(model.parameters()).device
    if device.type == "cpu":
        attend_in_blocks(model)
    taught = wanted.lessons is not None
    first_needed = wanted.loss.beta > 0 or (taught and settings.teacher.kind is not TeacherKind.EMA)
    first = frozen_copy(model) if first_needed else None
    average = frozen_copy(model).float() if taught and settings.teacher.kind is TeacherKind.EMA else None
    for one in (model, first, average):
        if one is not None and ranks.world > 1:
            shard(one, device, settings.policy.replicas, bf16=wanted.bf16)
        elif one is not None:
            one.to(device)
    optimizer = build_optimizer(model, settings.optimizer)
    return (LeadingLearner if ranks.world > 1 and ranks.is_first else Learner)(
        model,
        optimizer,
        wanted,
        scheduler=torch.optim.lr_scheduler.LambdaLR(optimizer, rate_of(settings.rate, settings.loop.steps)),
        teacher=_teacher(settings, model, first, average) if taught else None,
        reference=first if wanted.loss.beta > 0 else None,
        ranks=ranks,
    )


def learner_settings(settings: TrainSettings) -> LearnerSettings:
    """Those of ``[learner]``; for plain distillation lessons alone, which then weigh 1 if nothing is said."""
    if settings.method is Method.RL:
        return settings.learner
    lessons = settings.learner.lessons or LessonSettings(weight=1.0)
    return replace(settings.learner, policy_weight=0.0, lessons=lessons)


def _fitting(wanted: LearnerSettings, model: torch.nn.Module) -> LearnerSettings:
    """The same, without lessons for which the model's context is too short."""
    config: Any = getattr(model, "config", None)
    most = getattr(config.get_text_config(), "max_position_embeddings", None) if config is not None else None
    if wanted.lessons is None or not most:
        return wanted
    limits = replace(wanted.lessons.limits, sequence=min(wanted.lessons.limits.sequence, int(most)))
    return replace(wanted, lessons=replace(wanted.lessons, limits=limits))


def rate_of(table: RateTable, steps: int) -> Callable[[int], float]:
    """Share of the highest learning rate at each step, from 0."""

    def share(step: int) -> float:
        if step < table.warmup:
            return (step + 1) / table.warmup
        if table.decay == "constant":
            return 1.0
        done = min(1.0, (step - table.warmup) / max(1, steps - table.warmup))
        left = 1 - done if table.decay == "linear" else (1 + math.cos(math.pi * done)) / 2
        return table.floor + (1 - table.floor) * left

    return share


def build(settings: TrainSettings, engine: Engine, policy: Policy, supplies: Supplies | None = None) -> Parts:
    """Everything put together. Raises :class:`ConfigError` where something is missing."""
    metered = MeteredEngine(engine)
    learner = policy.learner
    lessons = learner.settings.lessons

    def teaches(group: Group) -> bool:
        assert lessons is not None
        return bool(sequences([group], {}, hints=lessons.limits)[0])

    if settings.method is Method.SDFT:
        assert settings.sdft is not None
        known = read_demonstrations(settings.sdft.demonstrations)
        maker = DemonstrationMaker(
            metered,
            policy.tokenizer,
            known,
            answer_tokens=settings.sdft.answer_tokens,
            temperature=learner.settings.temperature,
        )
        curriculum = Epochs([one.demonstration_id for one in known], epochs=settings.sdft.epochs, seed=settings.seed)
        return Parts(learner=learner, engine=metered, maker=maker, curriculum=curriculum, worth=teaches)
    if supplies is None:
        raise ConfigError("Reinforcement learning needs a task set: name it as excise.out.")

    def tier_of(instance_id: str) -> float | None:
        task = supplies.tasks().get(instance_id)
        return None if task is None else rung_of(task).height

    return Parts(
        learner=learner,
        engine=metered,
        maker=supplies.maker(metered, policy.tokenizer),
        curriculum=supplies.curriculum,
        lessons=teaches if lessons is not None else None,
        prepare=_preparation(settings, policy.tokenizer, supplies.tasks),
        tier_of=tier_of,
        keep_rollouts=keeper(settings, policy.tokenizer, tier_of),
    )


def keeper(
    settings: TrainSettings, tokenizer: Any, tier_of: Callable[[str], float | None]
) -> Callable[[int, Sequence[Group]], None] | None:
    """Stores rollouts beside the task set; ``None`` without one."""
    if "out" not in settings.excise:
        return None
    store = Path(settings.excise["out"])
    run = stored_as(settings.folder, store)

    def keep(step: int, groups: Sequence[Group]) -> None:
        write_rollouts(store, run, step, rollout_rows(run, step, groups, tokenizer.decode, tier_of))

    return keep


def _teacher(
    settings: TrainSettings, model: torch.nn.Module, first: torch.nn.Module | None, average: torch.nn.Module | None
) -> Teacher:
    rate = settings.teacher.pace
    if average is not None:
        return EmaTeacher(average, rate, next(model.parameters()).dtype)
    assert first is not None
    if settings.teacher.kind is TeacherKind.TRUST_REGION:
        return TrustRegionTeacher(first, model, rate)
    return FrozenTeacher(first)


def _preparation(
    settings: TrainSettings, tokenizer: Any, tasks: Callable[[], Mapping[str, Task]]
) -> Callable[[Group], Group]:
    """What is done to a group once it is finished: effort has its price, and teachers are told what they may know."""
    told = None
    if settings.teacher.privileged is not None:

        def aside(text: str) -> tuple[int, ...]:
            if settings.eval.mode == "line":
                return tuple(tokenizer.encode(comment(text), add_special_tokens=False))
            return Templated(tokenizer).aside("?", text)

        told = PrivilegedContext(settings.teacher.privileged, tasks, aside)

    def prepare(group: Group) -> Group:
        group = told(group) if told is not None else group
        return with_penalties(group, settings.effort) if settings.effort.scale else group

    return prepare


def _device(wanted: str) -> torch.device:
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wanted)
