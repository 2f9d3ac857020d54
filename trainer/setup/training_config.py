"""The configuration file of ``excise train``: one TOML file with the tables below; unknown keys are errors.

The settings of a component are defined in its own module: ``[learner]`` is :class:`LearnerSettings`, ``[loop]``
:class:`LoopSettings`, and so on for engine, rollouts, curriculum and optimizer.
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
from excise.trainer.objective.teachers import DEFAULT_RATE, TeacherKind
from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.trainer.setup.evaluation_config import EvalSettings, read_run_file, validated_run


class Method(StrEnum):
    """Training method."""

    RL = "rl"
    """Reinforcement learning on the tasks of a set."""
    SDFT = "sdft"
    """On-policy distillation from demonstrations (arXiv 2601.19897)."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PolicyTable(_Table):
    """``[policy]``: the model to train."""

    model: Path
    """Hugging Face folder (safetensors)."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number format of weights and optimizer. bfloat16 loses small updates: prefer float32 with ``learner.bf16``."""
    device: str = "auto"
    """``cpu`` or ``cuda``; ``auto`` uses a GPU if there is one."""
    activation_checkpointing: bool = False
    """Recompute activations in the backward pass instead of storing them."""
    compile: bool | Literal["auto"] = "auto"
    """Compile the model's layers with ``torch.compile``: steps on a GPU take 0.55 to 0.65 of the time, the first one 10
    to 30 s more. ``auto`` compiles in a single process on a GPU, if Triton and a C compiler are there,
    models without experts."""
    replicas: int = Field(default=1, ge=1)
    """Under ``torchrun``, number of copies of the model over all ranks (HSDP), for example one per node. The experts of
    a mixture are sharded over all ranks and exist once."""
    attention: str = "sdpa"
    """Attention implementation, by its name in transformers."""


class RateTable(_Table):
    """``[rate]``: the learning-rate schedule, as a factor of ``optimizer.lr``."""

    warmup: int = Field(default=5, ge=0)
    """Steps of linear warm-up."""
    decay: Literal["constant", "linear", "cosine"] = "constant"
    """Shape of the schedule after warm-up, down to ``floor`` at the last step."""
    floor: float = Field(default=0.1, ge=0, le=1)
    """Factor at the last step (not for ``constant``)."""


class TeacherTable(_Table):
    """``[teacher]``: the teacher of the lessons; unused without ``[learner.lessons]`` (except for ``sdft``)."""

    kind: TeacherKind = TeacherKind.EMA
    """Kind of teacher."""
    rate: float | None = Field(default=None, gt=0, le=1)
    """Rate of the moving average per step (default 0.02); for the trust region, the live policy's share of the
    logits (default 0.01)."""
    privileged: PrivilegedKind | None = None
    """Privileged context for the teacher when a whole group failed; none by default."""

    @property
    def effective_rate(self) -> float:
        """:attr:`rate`, or the default of the kind of teacher; 0 for a frozen teacher."""
        return DEFAULT_RATE.get(self.kind, 0.0) if self.rate is None else self.rate


class SdftTable(_Table):
    """``[sdft]``: settings of the method ``sdft``."""

    demonstrations: Path
    """JSON lines with ``prompt`` and ``demonstration``."""
    answer_tokens: int = Field(default=512, ge=1)
    """Maximum number of tokens of the policy's answer to a prompt."""
    epochs: int = Field(default=1, ge=1)
    """Number of times that each prompt is used."""


class TrainSettings(_Table):
    """All settings of a training run."""

    folder: Path
    """The run's folder (checkpoints, journal, metrics). The run is named after this folder, unless
    the task set already has a run of that name."""
    method: Method = Method.RL
    """Training method."""
    seed: int = 0
    """Random seed of everything that is sampled, as far as the engine can repeat it."""
    policy: PolicyTable
    """The model to train."""
    optimizer: OptimizerSettings = OptimizerSettings()
    """The optimizer."""
    rate: RateTable = RateTable()
    """The learning-rate schedule."""
    learner: LearnerSettings = LearnerSettings()
    """Loss and batch layout of one step."""
    teacher: TeacherTable = TeacherTable()
    """The teacher of the lessons."""
    effort: EffortPrices = EffortPrices()
    """Effort penalty; none by default."""
    loop: LoopSettings = LoopSettings()
    """Steps, groups, checkpoints, deadlines."""
    sdft: SdftTable | None = None
    """Demonstrations."""
    engine: EngineSettings = EngineSettings()
    """The engine that samples."""
    rollouts: RolloutSettings = RolloutSettings()
    """Budgets and sampling of attempts."""
    curriculum: CurriculumSettings = CurriculumSettings()
    """Choice of tasks."""
    excise: dict[str, Any] = Field(default_factory=dict)
    """Settings of ``excise generate``: ``out`` is the task set; ``cache``, ``sandbox``, …"""
    eval: EvalSettings = EvalSettings()
    """How a policy is evaluated; ``mode`` and ``graders`` apply to training, too."""

    @model_validator(mode="before")
    @classmethod
    def _share_seed(cls, values: Any) -> Any:
        """Use ``seed`` in the tables that have a seed and do not set it."""
        if not isinstance(values, dict) or "seed" not in values:
            return values
        loop, curriculum = values.get("loop", {}), values.get("curriculum", {})
        if isinstance(curriculum, dict):
            values = values | {"curriculum": {"seed": values["seed"]} | curriculum}
        if isinstance(loop, dict) and isinstance(schedule := loop.get("schedule", {}), dict):
            values = values | {"loop": loop | {"schedule": {"seed": values["seed"]} | schedule}}
        return values

    @model_validator(mode="after")
    def _check_consistency(self) -> TrainSettings:
        """Raise ``ValueError`` for settings that contradict each other."""
        wrong = []
        schedule, loop = self.loop.schedule, self.loop
        if schedule.staleness > schedule.drop_after:
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


def load_training(path: Path, overrides: Sequence[str] = (), **direct: Any) -> TrainSettings:
    """Read a file as :func:`read_run_file` does; ``direct`` are top-level values from options (``None``: not given).

    Raises :class:`ConfigError` that names the key and what was expected.
    """
    values = read_run_file(path, overrides) | {key: value for key, value in direct.items() if value is not None}
    return validated_run(values, TrainSettings, path)
