"""The settings of a training run: one TOML file, tables as below, unknown keys refused.

Tables that belong to one part are that part's own settings (``[learner]`` is :class:`LearnerSettings`, ``[loop]`` is
:class:`LoopSettings`); those of engine, rollouts, curriculum and optimizer stand with their parts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from excise.errors import ConfigError
from excise.trainer.curriculum.pool import CurriculumSettings
from excise.trainer.engines.build import EngineSettings
from excise.trainer.learner import LearnerSettings
from excise.trainer.loop import LoopSettings
from excise.trainer.objective.effort import EffortPrices
from excise.trainer.objective.privileged import PrivilegedKind
from excise.trainer.objective.teachers import USUAL_RATE, TeacherKind
from excise.trainer.optimizers.build import OptimizerSettings
from excise.trainer.rollouts.settings import RolloutSettings
from excise.trainer.trial import EvalSettings

_PATHS = (
    "folder",
    "policy.model",
    "sdft.demonstrations",
    "excise.out",
    "excise.cache",
    "engine.python",
    "engine.weights",
)


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
    """The run's folder: checkpoints, journal, metrics; its name is the run's."""
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
        schedule, loss = self.loop.schedule, self.learner.loss
        positive = {
            "loop.steps": self.loop.steps,
            "loop.checkpoint_every": self.loop.checkpoint_every,
            "loop.keep": self.loop.keep,
            "loop.schedule.batch": schedule.batch,
            "loop.schedule.group_size": schedule.group_size,
            "loop.schedule.drop_after": schedule.drop_after,
            "loop.schedule.group_deadline_s": schedule.group_deadline_s,
            "loop.schedule.batch_deadline_s": schedule.batch_deadline_s,
            "loop.step_deadline_s": self.loop.step_deadline_s,
            "loop.load_deadline_s": self.loop.load_deadline_s,
            "learner.reference_length": self.learner.reference_length,
            "learner.row_tokens": self.learner.row_tokens,
            "learner.temperature": self.learner.temperature,
            "learner.loss.cap": loss.cap,
        }
        wrong = [f"{name} has to be above 0" for name, value in positive.items() if value <= 0]
        if schedule.staleness < 0 or schedule.staleness > schedule.drop_after:
            wrong.append("loop.schedule.staleness has to be from 0 to drop_after")
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
    """Read a file; ``overrides`` are ``table.key=value`` with TOML values, ``direct`` are values of the top level
    (``None`` is ignored). Paths in the file are relative to its folder, others to the working directory.

    Raises :class:`ConfigError` that names the key and what was expected.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}).") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    _make_absolute(values, path.resolve().parent)
    for item in overrides:
        more = _override(item)
        _make_absolute(more, Path.cwd())
        _merge(values, more)
    values |= {key: value for key, value in direct.items() if value is not None}
    try:
        return TrainSettings.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(_explained(path, error))) from error


def _explained(path: Path, error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        unknown = problem["type"] in ("extra_forbidden", "unexpected_keyword_argument")
        said = "there is no such setting" if unknown else problem["msg"].removeprefix("Value error, ")
        lines.append(f"{path}: {key}: {said}" if key else f"{path}: {said}")
    return lines


def _override(item: str) -> dict[str, Any]:
    key, separator, text = item.partition("=")
    if not separator or not all(part.strip() for part in key.split(".")):
        raise ConfigError(f"--set {item}: write it as table.key=value, for example --set loop.steps=50")
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        value = text
    for part in reversed(key.split(".")):
        value = {part.strip(): value}
    found: dict[str, Any] = value
    return found


def _merge(into: dict[str, Any], new: dict[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _make_absolute(values: dict[str, Any], folder: Path) -> None:
    for dotted in _PATHS:
        *tables, last = dotted.split(".")
        table: Any = values
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if isinstance(table, dict) and isinstance(table.get(last), str):
            table[last] = str(folder / Path(table[last]).expanduser())
