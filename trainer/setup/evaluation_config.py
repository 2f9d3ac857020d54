"""The configuration file of ``excise eval``, whose tables training also uses: how attempts are made."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from excise.config import Settings
from excise.datasets.difficulty.rungs import Level
from excise.toml_settings import PHRASES, merge, parse_override, read_toml, validated, with_absolute_paths
from excise.trainer.engines.engine_kinds import EngineSettings
from excise.trainer.rollouts.agent import Agent
from excise.trainer.rollouts.rollout_maker import AttemptMode
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.trainer.rollouts.single_turn import AnswerKind, SingleTurn, tasks_for
from excise.trainer.setup.model_folder import load_tokenizer
from excise.types import Task, path_of

M = TypeVar("M", bound=BaseModel)
PATH_KEYS = (
    "folder",
    "policy.model",
    "sdft.demonstrations",
    "excise.out",
    "excise.cache",
    "engine.python",
    "engine.weights",
)
"""Settings that are paths."""
LIMIT_PHRASES = {
    **PHRASES,
    "greater_than": "{key} has to be above {gt:g}",
    "greater_than_equal": "{key} has to be {ge:g} or more",
    "not_a_share": "{key} has to be from 0 to 1: it is a share of a batch",
}
"""Messages for numbers outside their limits."""


class HeldOut(BaseModel):
    """``[eval.held_out]``: tasks that are evaluated and never trained on, including tasks that are made later.

    The split is by source file: all tasks of a file are on the same side. A task of several files that are on different
    sides is on neither.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    projects: tuple[str, ...] = ()
    """Projects whose tasks are all held out."""
    share: float = Field(default=0.0, ge=0, lt=1)
    """Share of the source files of other projects that is held out, chosen by the hash of project and path."""

    def includes(self, task: Task) -> bool:
        """Whether a task is held out: all of its files are."""
        return all(self._held_out_files(task))

    def overlaps(self, task: Task) -> bool:
        """Whether any of its files is held out, so that it must not be trained on."""
        return any(self._held_out_files(task))

    def _held_out_files(self, task: Task) -> list[bool]:
        """For each file from which the task removes something, whether it is held out."""
        paths = sorted({path_of(symbol) for symbol in task.removed or ("",)})
        digests = [hashlib.sha256(f"{task.repo}:{path}".encode()).digest() for path in paths]
        is_whole_project = task.repo in self.projects
        return [is_whole_project or int.from_bytes(digest[:8]) < self.share * 2**64 for digest in digests]


class EvalSettings(BaseModel):
    """``[eval]``: how a policy is evaluated. ``mode`` and ``graders`` apply to training, too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    samples: int = Field(default=16, ge=1)
    """Number of attempts at each task."""
    mode: Literal["agent", "function", "line"] = "agent"
    """``agent``: with tools. ``function``, ``line``: one answer with the whole function or the one missing line."""
    lines: int = Field(default=80, ge=1)
    """Lines of the file in the prompt of ``function`` and ``line``."""
    held_out: HeldOut = HeldOut()
    """Tasks that training leaves out and ``excise eval --held-out`` evaluates."""
    graders: int = Field(default_factory=lambda: max(2, (os.cpu_count() or 2) // 2), ge=1)
    """Number of diffs that are graded at the same time; by default half the number of cores, at least 2."""


class EvaluationConfig(BaseModel):
    """The tables that ``excise eval`` reads. Other tables of the file, those of training, are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    engine: EngineSettings = EngineSettings()
    rollouts: RolloutSettings = RolloutSettings()
    eval: EvalSettings = EvalSettings()
    excise: dict[str, Any] = Field(default_factory=dict)
    """Settings of ``excise generate``: ``out``, ``cache``, ``sandbox``, …"""


def read_run_file(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The values of a configuration file, changed by ``overrides`` (``table.key=value`` with TOML values).

    Paths in the file are relative to its folder, others to the working directory. Raises :class:`ConfigError`.
    """
    values = with_absolute_paths(read_toml(path), path.resolve().parent, PATH_KEYS)
    for item in overrides:
        override = parse_override(item, "loop.steps=50", PATH_KEYS)
        merge(values, with_absolute_paths(override, Path.cwd(), PATH_KEYS))
    return values


def validated_run(values: dict[str, Any], kind: type[M], path: Path) -> M:
    """Validate a file's values as settings. The table ``[excise]`` must contain settings of ``excise generate``.

    Raises :class:`ConfigError` that names the key and what was expected.
    """
    settings = validated(kind, values, str(path), phrases=LIMIT_PHRASES)
    validated(Settings, values.get("excise", {}), str(path), phrases=LIMIT_PHRASES, prefix="excise.")
    return settings


def load_evaluation(path: Path, overrides: Sequence[str] = ()) -> EvaluationConfig:
    """Read a configuration file; see :func:`read_run_file`. Raises :class:`ConfigError` that names the key."""
    return validated_run(read_run_file(path, overrides), EvaluationConfig, path)


def attempt_mode(settings: EvalSettings, model: Path) -> AttemptMode:
    """The configured mode of attempts, with the tokenizer of a model's folder. Raises :class:`ConfigError`."""
    tokenizer = load_tokenizer(model)
    if settings.mode == "agent":
        return Agent(tokenizer)
    return SingleTurn(tokenizer, AnswerKind(settings.mode), lines=settings.lines)


def eligible_tasks(
    settings: EvalSettings, tasks: Mapping[str, Task], *, held_out: bool | None = None
) -> tuple[str, ...]:
    """Ids of the tasks that the configured mode can attempt.

    ``held_out``: true for held-out tasks only, false for tasks that may be trained on only, ``None`` for all.
    """
    ids = tuple(tasks) if settings.mode == "agent" else tasks_for(tasks, AnswerKind(settings.mode))
    split = settings.held_out
    if held_out is None:
        return ids
    if held_out:
        return tuple(name for name in ids if split.includes(tasks[name]))
    return tuple(name for name in ids if not split.overlaps(tasks[name]))


def highest_level(settings: EvalSettings, highest: Level) -> Level:
    """The highest level of tasks that the configured mode can attempt, or ``highest`` if that is lower."""
    attemptable = {"line": Level.EXPRESSION, "function": Level.STUB}.get(settings.mode, Level.CROSS_FILE)
    return min(attemptable, highest, key=lambda level: level.order)
