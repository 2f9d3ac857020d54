"""Builds the components of a training run from its settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from excise.datasets.difficulty.rungs import rung_of
from excise.datasets.queries.rollouts import write_rollouts
from excise.errors import ConfigError, TrainingError
from excise.trainer.collectives import RankGroup
from excise.trainer.interfaces import Curriculum, Engine, RolloutMaker
from excise.trainer.loop.controller import RunComponents
from excise.trainer.loop.group_queue import GroupRules
from excise.trainer.loop.learner import Learner, LearnerSettings
from excise.trainer.loop.rank_commands import RankZeroLearner, shard_model
from excise.trainer.objective.block_attention import enable_block_attention
from excise.trainer.objective.losses import LessonSettings
from excise.trainer.objective.policy_forward import can_compile, compile_layers, without_dropout
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
from excise.trainer.objective.training_sequences import training_sequences
from excise.trainer.optimizers.optimizer_kinds import build_optimizer
from excise.trainer.reporting.engine_metrics import MeteredEngine
from excise.trainer.reporting.rollout_rows import rollout_rows, stored_as
from excise.trainer.rollout_types import Group
from excise.trainer.rollouts.demonstrations import (
    DemonstrationRolloutMaker,
    EpochCurriculum,
    PromptTemplate,
    read_demonstrations,
)
from excise.trainer.rollouts.single_turn import as_comment
from excise.trainer.setup.model_folder import load_tokenizer
from excise.trainer.setup.training_config import Method, RateTable, TrainSettings
from excise.types import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The policy to train, with its tokenizer."""

    learner: Learner
    """The learner of the policy."""
    tokenizer: Any
    """The tokenizer of the policy's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSetComponents:
    """The components that reinforcement learning needs from the task set; distillation needs none of them."""

    maker: Callable[[Engine], RolloutMaker]
    """Builds the rollout maker from the metered engine."""
    curriculum: Curriculum
    """Chooses tasks."""
    tasks: Callable[[], Mapping[str, Task]]
    """Returns the tasks that are currently available."""


def build_policy(settings: TrainSettings) -> Policy:
    """Load the model and build optimizer and teacher.

    Raises :class:`TrainingError` or :class:`ConfigError` if the model cannot be loaded.
    """
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
        message = " ".join(str(error).split())
        raise TrainingError(f"{settings.policy.model}: no model that can be trained: {message}") from error
    if settings.policy.activation_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return Policy(learner=build_learner(settings, model, _device(settings.policy.device)), tokenizer=tokenizer)


def build_learner(settings: TrainSettings, model: torch.nn.Module, device: torch.device | None = None) -> Learner:
    """Build the learner of a loaded model, on ``device`` (default: where the model is)."""
    wanted = _fit_to_context(learner_settings(settings), model)
    without_dropout(model)
    ranks = RankGroup()
    device = device or next(model.parameters()).device
    enable_block_attention(model)
    has_teacher = wanted.lessons is not None
    needs_initial = wanted.loss.beta > 0 or (has_teacher and settings.teacher.kind is not TeacherKind.EMA)
    initial = frozen_copy(model) if needs_initial else None
    average = frozen_copy(model).float() if has_teacher and settings.teacher.kind is TeacherKind.EMA else None
    for one in (model, initial, average):
        if one is not None and ranks.world_size > 1:
            shard_model(one, device, settings.policy.replicas, bf16=wanted.bf16)
        elif one is not None:
            one.to(device)
    optimizer = build_optimizer(model, settings.optimizer)
    learner = (RankZeroLearner if ranks.world_size > 1 and ranks.is_first else Learner)(
        model,
        optimizer,
        wanted,
        scheduler=torch.optim.lr_scheduler.LambdaLR(optimizer, rate_schedule(settings.rate, settings.loop.steps)),
        teacher=_teacher(settings, model, initial, average) if has_teacher else None,
        reference=initial if wanted.loss.beta > 0 else None,
    )
    if settings.policy.compile is True or (
        settings.policy.compile == "auto" and can_compile(model, device, ranks.world_size)
    ):
        compile_layers(model)
    return learner


def learner_settings(settings: TrainSettings) -> LearnerSettings:
    """The settings of ``[learner]``; for ``sdft`` without policy gradient, and with lessons of weight 1 by default."""
    if settings.method is Method.RL:
        return settings.learner
    lessons = settings.learner.lessons or LessonSettings(weight=1.0)
    return replace(settings.learner, policy_weight=0.0, lessons=lessons)


def _fit_to_context(wanted: LearnerSettings, model: torch.nn.Module) -> LearnerSettings:
    """The settings with the limit of lesson sequences lowered to the model's context length."""
    config: Any = getattr(model, "config", None)
    context_length = getattr(config.get_text_config(), "max_position_embeddings", None) if config is not None else None
    if wanted.lessons is None or not context_length:
        return wanted
    limits = replace(wanted.lessons.limits, sequence=min(wanted.lessons.limits.sequence, int(context_length)))
    return replace(wanted, lessons=replace(wanted.lessons, limits=limits))


def rate_schedule(table: RateTable, steps: int) -> Callable[[int], float]:
    """The factor of the learning rate at each step, counted from 0."""

    def share(step: int) -> float:
        if step < table.warmup:
            return (step + 1) / table.warmup
        if table.decay == "constant":
            return 1.0
        done = min(1.0, (step - table.warmup) / max(1, steps - table.warmup))
        left = 1 - done if table.decay == "linear" else (1 + math.cos(math.pi * done)) / 2
        return table.floor + (1 - table.floor) * left

    return share


def build_run(
    settings: TrainSettings, engine: Engine, policy: Policy, task_set: TaskSetComponents | None = None
) -> RunComponents:
    """The components of a run. Raises :class:`ConfigError` if reinforcement learning has no task set."""
    metered = MeteredEngine(engine)
    learner = policy.learner
    lessons = learner.settings.lessons

    def has_lessons(group: Group) -> bool:
        assert lessons is not None
        return bool(training_sequences([group], {}, limits=lessons.limits)[0])

    if settings.method is Method.SDFT:
        assert settings.sdft is not None
        demonstrations = read_demonstrations(settings.sdft.demonstrations)
        maker = DemonstrationRolloutMaker(
            metered,
            policy.tokenizer,
            demonstrations,
            answer_tokens=settings.sdft.answer_tokens,
            temperature=learner.settings.temperature,
        )
        curriculum = EpochCurriculum(
            [one.demonstration_id for one in demonstrations], epochs=settings.sdft.epochs, seed=settings.seed
        )
        rules = GroupRules(fills_batch=has_lessons)
        return RunComponents(learner=learner, engine=metered, maker=maker, curriculum=curriculum, rules=rules)
    if task_set is None:
        raise ConfigError("Reinforcement learning needs a task set: name it as excise.out.")

    def tier_of(instance_id: str) -> float | None:
        task = task_set.tasks().get(instance_id)
        return None if task is None else rung_of(task).height

    return RunComponents(
        learner=learner,
        engine=metered,
        maker=task_set.maker(metered),
        curriculum=task_set.curriculum,
        rules=GroupRules(
            is_auxiliary=has_lessons if lessons is not None else lambda _: False,
            prepare=_preparation(settings, policy.tokenizer, task_set.tasks),
        ),
        tier_of=tier_of,
        store_rollouts=rollout_writer(settings, policy.tokenizer, tier_of),
    )


def rollout_writer(
    settings: TrainSettings, tokenizer: Any, tier_of: Callable[[str], float | None]
) -> Callable[[int, Sequence[Group]], None] | None:
    """A function that stores rollouts in the table ``rollouts`` beside the task set; ``None`` without a task set."""
    if "out" not in settings.excise:
        return None
    set_folder = Path(settings.excise["out"])
    run = stored_as(settings.folder, set_folder)

    def store(step: int, groups: Sequence[Group]) -> None:
        write_rollouts(set_folder, run, step, rollout_rows(run, step, groups, tokenizer.decode, tier_of))

    return store


def _teacher(
    settings: TrainSettings, model: torch.nn.Module, initial: torch.nn.Module | None, average: torch.nn.Module | None
) -> Teacher:
    rate = settings.teacher.effective_rate
    if average is not None:
        return EmaTeacher(average, rate, next(model.parameters()).dtype)
    assert initial is not None
    if settings.teacher.kind is TeacherKind.TRUST_REGION:
        return TrustRegionTeacher(initial, model, rate)
    return FrozenTeacher(initial)


def _preparation(
    settings: TrainSettings, tokenizer: Any, tasks: Callable[[], Mapping[str, Task]]
) -> Callable[[Group], Group]:
    """A function that adds privileged context for the teacher and the effort penalty to finished groups."""
    add_context = None
    if settings.teacher.privileged is not None:

        def encode(text: str) -> tuple[int, ...]:
            if settings.eval.mode == "line":
                return tuple(tokenizer.encode(as_comment(text), add_special_tokens=False))
            return PromptTemplate(tokenizer).further_message("?", text)

        add_context = PrivilegedContext(settings.teacher.privileged, tasks, encode)

    def prepare(group: Group) -> Group:
        group = add_context(group) if add_context is not None else group
        return with_penalties(group, settings.effort) if settings.effort.scale else group

    return prepare


def _device(wanted: str) -> torch.device:
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wanted)
