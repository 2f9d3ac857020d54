"""What makes attempts, from a TOML file: the engine, rollouts, and how tasks are tried."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from excise.trainer.curriculum.rungs import Level
from excise.trainer.engines.engine_kinds import EngineSettings
from excise.trainer.rollouts.rollout_maker import Work
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.trainer.setup.model_folder import load_tokenizer
from excise.trainer.setup.tables import read_tables, settings_from
from excise.types import Task


class HeldOut(BaseModel):
    """Tasks that are evaluated and never trained on, those that are made later among them: ``[eval.held_out]``.

    All tasks of a source file are on one side, whatever of it they are about; tasks of files of both are on none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    projects: tuple[str, ...] = ()
    """All tasks of these."""
    share: float = Field(default=0.0, ge=0, lt=1)
    """And this share of the source files of the others, drawn by the hash of project and path."""

    def has(self, task: Task) -> bool:
        """Whether a task is held out: all its files are."""
        return all(self._drawn(task))

    def touches(self, task: Task) -> bool:
        """Whether it shows anything of what is held out."""
        return any(self._drawn(task))

    def _drawn(self, task: Task) -> list[bool]:
        """Of each file of which something is missing."""
        paths = sorted({symbol.partition("::")[0] for symbol in task.removed or ("",)})
        digests = [hashlib.sha256(f"{task.repo}:{path}".encode()).digest() for path in paths]
        whole = task.repo in self.projects
        return [whole or int.from_bytes(digest[:8]) < self.share * 2**64 for digest in digests]


class EvalSettings(BaseModel):
    """How a policy is evaluated: the table ``[eval]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    samples: int = Field(default=16, ge=1)
    """Attempts at each task."""
    mode: Literal["agent", "function", "line"] = "agent"
    """With tools; or in one answer, the whole function or the one line that is missing."""
    lines: int = Field(default=80, ge=1)
    """Lines of the file that are shown where there is one answer."""
    held_out: HeldOut = HeldOut()
    """What training leaves out, and ``excise eval --held-out`` is about."""
    graders: int = Field(default_factory=lambda: max(2, (os.cpu_count() or 2) // 2), ge=1)
    """Grades that are made at once; by default half as many as there are cores, and 2 at least."""


class Trial(BaseModel):
    """The tables that say how attempts are made; those of training are left to it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    engine: EngineSettings = EngineSettings()
    rollouts: RolloutSettings = RolloutSettings()
    eval: EvalSettings = EvalSettings()
    excise: dict[str, Any] = Field(default_factory=dict)
    """Settings of ``excise generate``: ``out``, ``cache``, ``sandbox``, …"""


def load_trial(path: Path, overrides: Sequence[str] = ()) -> Trial:
    """Read a file as :func:`read_tables` does. Raises :class:`ConfigError` that names the key."""
    return settings_from(read_tables(path, overrides), Trial, path)


def work_of(trial: Trial, model: Path) -> Work:
    """What is done at a task, with the tokenizer of a model's folder. Raises :class:`ConfigError`."""
    from excise.trainer.rollouts.agent import Agent
    from excise.trainer.rollouts.single_turn import Rung, SingleTurn

    tokenizer = load_tokenizer(model)
    return (
        Agent(tokenizer)
        if trial.eval.mode == "agent"
        else SingleTurn(tokenizer, Rung(trial.eval.mode), lines=trial.eval.lines)
    )


def tasks_of(trial: Trial, tasks: Mapping[str, Task], *, held_out: bool | None = None) -> tuple[str, ...]:
    """Ids of the tasks that can be tried so; of those that are held out, or not, or both."""
    from excise.trainer.rollouts.single_turn import Rung, fitting

    fits = tuple(tasks) if trial.eval.mode == "agent" else fitting(tasks, Rung(trial.eval.mode))
    held = trial.eval.held_out
    if held_out is None:
        return fits
    return tuple(task for task in fits if (held.has(tasks[task]) if held_out else not held.touches(tasks[task])))


def highest_of(trial: Trial, highest: Level) -> Level:
    """The highest level that tasks may have: what a mode can try, or less if ``highest`` is lower."""
    most = {"line": Level.EXPRESSION, "function": Level.STUB}.get(trial.eval.mode, Level.CROSS_FILE)
    return min(most, highest, key=lambda level: level.order)
