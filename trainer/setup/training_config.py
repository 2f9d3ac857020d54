"""The settings of a training run: one TOML file, tables as below, unknown keys refused.

Tables that belong to one part are that part's own settings (``[learner]`` is :class:`LearnerSettings`, ``[loop]`` is
:class:`LoopSettings`); those of engine, rollouts, curriculum and optimizer stand with their parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from excise.trainer.curriculum.task_pool import CurriculumSettings
from excise.trainer.engines.engine_kinds import EngineSettings
from excise.trainer.loop.controller import LoopSettings
from excise.trainer.loop.learner import LearnerSettings
from excise.trainer.objective.privileged_context import PrivilegedKind
from excise.trainer.objective.rewards import EffortPrices
from excise.trainer.objective.teachers import USUAL_RATE, TeacherKind
from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.trainer.setup.evaluation_config import EvalSettings
from excise.trainer.setup.tables import read_tables, settings_from


class Method(StrEnum):
    """How the policy is trained."""

    RL = "rl"
    """Reinforcement learning on the tasks of a set."""
    SDFT = "sdft"
    """On-policy distillation from demonstrations (arXiv 2601.19897): adapts to them and forgets less."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PolicyTable(_Table):
    """``[policy]``: the model that is trained."""

    model: Path
    """Hugging Face folder (safetensors)."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of weights and optimizer; bfloat16 loses updates smaller than its steps: prefer float32 with ``learner.bf16``."""
    device: str = "auto"
    """``cpu``, ``cuda``; ``auto`` takes a GPU if there is one."""
    activation_checkpointing: bool = False
    """Make activations again for the gradient, instead of keeping them."""
    replicas: int = Field(default=1, ge=1)
    """Under ``torchrun``, how many times the ranks hold the whole model between them (HSDP), say one a node; experts of
    a mixture are held once."""
    attention: str = "sdpa"
    """Kind of attention, as transformers calls it."""


class RateTable(_Table):
    """``[rate]``: the learning rate over steps, as a share of the highest."""

    warmup: int = Field(default=5, ge=0)
    """Steps in which it rises from nothing."""
    decay: Literal["constant", "linear", "cosine"] = "constant"
    """What it does afterwards, down to ``floor`` at the last step."""
    floor: float = Field(default=0.1, ge=0, le=1)
    """Share that is left at the end."""


class TeacherTable(_Table):
    """``[teacher]``: who gives lessons, where ``[learner.lessons]`` is there."""

    kind: TeacherKind = TeacherKind.EMA
    """Which."""
    rate: float | None = Field(default=None, gt=0, le=1)
    """Of the moving average per step (0.02 if nothing is said); for the trust region, the live policy's share of the
    logits (0.01)."""
    privileged: PrivilegedKind | None = None
    """What the teacher is told where a whole group failed; nothing by default."""

    @property
    def pace(self) -> float:
        """:attr:`rate`, or what is usual for the teacher; 0 for one that stays as it is."""
        return USUAL_RATE.get(self.kind, 0.0) if self.rate is None else self.rate


class SdftTable(_Table):
    """``[sdft]``: for ``--method sdft``."""

    demonstrations: Path
    """JSON lines with ``prompt`` and ``demonstration``."""
    answer_tokens: int = Field(default=512, ge=1)
    """Most tokens that the policy says to a prompt."""
    epochs: int = Field(default=1, ge=1)
    """How often each prompt is used."""


class TrainSettings(_Table):
    """A whole training run."""

    folder: Path
    """The run's folder: checkpoints, journal, metrics; its name is the run's, unless another of the task set has it."""
    method: Method = Method.RL
    """How."""
    seed: int = 0
    """Decides everything that is drawn, as far as the engine repeats it."""
    policy: PolicyTable
    """The model."""
    optimizer: OptimizerSettings = OptimizerSettings()
    """The optimizer."""
    rate: RateTable = RateTable()
    """The learning rate over time."""
    learner: LearnerSettings = LearnerSettings()
    """One step."""
    teacher: TeacherTable = TeacherTable()
    """Lessons."""
    effort: EffortPrices = EffortPrices()
    """What effort costs; nothing by default."""
    loop: LoopSettings = LoopSettings()
    """Groups, checkpoints, deadlines."""
    sdft: SdftTable | None = None
    """Demonstrations."""
    engine: EngineSettings = EngineSettings()
    """What samples."""
    rollouts: RolloutSettings = RolloutSettings()
    """Budgets and habits of attempts."""
    curriculum: CurriculumSettings = CurriculumSettings()
    """Which tasks."""
    excise: dict[str, Any] = Field(default_factory=dict)
    """Settings of ``excise generate``: ``out`` is the task set; ``cache``, ``sandbox``, …"""
    eval: EvalSettings = EvalSettings()
    """How a policy is evaluated; ``mode`` and ``graders`` are training's, too."""

    @model_validator(mode="before")
    @classmethod
    def _one_seed(cls, values: Any) -> Any:
        """``seed`` is that of tables which have one and do not say another."""
        if not isinstance(values, dict) or "seed" not in values:
            return values
        loop, curriculum = values.get("loop", {}), values.get("curriculum", {})
        if isinstance(curriculum, dict):
            values = values | {"curriculum": {"seed": values["seed"]} | curriculum}
        if isinstance(loop, dict) and isinstance(schedule := loop.get("schedule", {}), dict):
            values = values | {"loop": loop | {"schedule": {"seed": values["seed"]} | schedule}}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> TrainSettings:
        """Raise ``ValueError`` for settings that contradict each other."""
        wrong = [f"{name} has to be above 0" for name, value in self._positive().items() if not value > 0]
        wrong += [f"{name} has to be 0 or more" for name, value in self._not_negative().items() if not value >= 0]
        schedule, loop = self.loop.schedule, self.loop
        if not 0 <= schedule.window <= 1:
            wrong.append("loop.schedule.window has to be from 0 to 1: it is a share of a batch")
        if schedule.staleness < 0 or schedule.staleness > schedule.drop_after:
            wrong.append("loop.schedule.staleness has to be from 0 to drop_after")
        if self.engine.is_own_server and loop.load_deadline_s * loop.load_tries < self.engine.start_s:
            wrong.append(
                f"loop.load_deadline_s times load_tries ({loop.load_deadline_s * loop.load_tries:g} s) has to be "
                f"engine.start_s ({self.engine.start_s:g} s) or more: a server that died starts again meanwhile"
            )
        if self.method is Method.SDFT and self.sdft is None:
            wrong.append("method sdft needs [sdft] with demonstrations")
        if self.method is Method.RL and schedule.group_size < 2:
            wrong.append("loop.schedule.group_size has to be 2 or more: a rollout is judged by the others of its group")
        if self.teacher.privileged is not None and self.learner.lessons is None:
            wrong.append("teacher.privileged needs [learner.lessons]")
        if self.rollouts.temperature != self.learner.temperature:
            wrong.append("rollouts.temperature and learner.temperature differ: what is trained on is what was drawn")
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def _positive(self) -> dict[str, float]:
        """Values that have to be above 0, by name."""
        loop, schedule, learner = self.loop, self.loop.schedule, self.learner
        return {
            "loop.steps": loop.steps,
            "loop.checkpoint_every": loop.checkpoint_every,
            "loop.keep": loop.keep,
            "loop.tolerance": loop.tolerance,
            "loop.step_deadline_s": loop.step_deadline_s,
            "loop.load_deadline_s": loop.load_deadline_s,
            "loop.load_tries": loop.load_tries,
            "loop.empty_batches": loop.empty_batches,
            "loop.schedule.batch": schedule.batch,
            "loop.schedule.group_size": schedule.group_size,
            "loop.schedule.drop_after": schedule.drop_after,
            "loop.schedule.group_deadline_s": schedule.group_deadline_s,
            "loop.schedule.batch_deadline_s": schedule.batch_deadline_s,
            "learner.reference_length": learner.reference_length,
            "learner.row_tokens": learner.row_tokens,
            "learner.temperature": learner.temperature,
            "learner.loss.cap": learner.loss.cap,
        }

    def _not_negative(self) -> dict[str, float]:
        """Values that may be 0, by name."""
        return {
            "loop.patience_s": self.loop.patience_s,
            "loop.peak_tflops": self.loop.peak_tflops,
            "loop.schedule.retries": self.loop.schedule.retries,
            "loop.schedule.retry_delay_s": self.loop.schedule.retry_delay_s,
        }


def load_training(path: Path, overrides: Sequence[str] = (), **direct: Any) -> TrainSettings:
    """Read a file as :func:`read_tables` does; ``direct`` are values of the top level (``None`` is ignored).

    Raises :class:`ConfigError` that names the key and what was expected.
    """
    values = read_tables(path, overrides) | {key: value for key, value in direct.items() if value is not None}
    return settings_from(values, TrainSettings, path)
