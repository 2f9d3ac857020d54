"""Runs of ``excise solve`` in this process: real sandboxes and grades of the stored set, rows in the test's folder."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from excise.config import ModelSettings, Settings
from excise.datasets.queries.attempts import attempts_views
from excise.datasets.taskset import TaskSet
from excise.pipeline.cli.solve_command import agent_of
from excise.pipeline.services.arena import TaskArena
from excise.pipeline.services.statements import StatementChoice, Statements
from excise.pipeline.solve.attempt import Agent
from excise.pipeline.solve.solve_run import SolvePlan, SolveResult, SolveRun, default_run_name, open_run
from excise.types import StatementStyle, Task

from ...agents.scripted_server import Answer, calls


@dataclass
class Bench:
    """An arena, and the folder that attempts are written to."""

    arena: TaskArena
    settings: Settings
    out: Path
    heard: list[Any] = field(default_factory=list)

    @property
    def task(self) -> Task:
        """A task whose feature is one function."""
        return next(t for t in self.arena.tasks().values() if t.removed == ("src/shapes/text.py::parse",))

    def with_model(self, url: str, **options: Any) -> Settings:
        """Settings with a scripted model."""
        model = ModelSettings(base_url=url, model="scripted", **options)
        return self.settings.model_copy(update={"model": model, "out": self.out, "cache": self.out / "cache"})

    def solve(
        self,
        agent: str | Agent,
        *,
        settings: Settings | None = None,
        ids: Sequence[str] | None = None,
        attempts: int = 1,
        style: StatementStyle = StatementStyle.SPECIFICATION,
        at_once: int = 2,
    ) -> SolveResult:
        """Make attempts, at one task by default."""
        settings = settings or self.settings.model_copy(update={"out": self.out})
        solver = agent_of(settings, agent) if isinstance(agent, str) else agent
        plan = self.plan(solver, style=style, ids=ids or [self.task.instance_id], attempts=attempts, at_once=at_once)
        with open_run(settings, plan, solver):
            return asyncio.run(SolveRun(settings, self.arena, solver, plan, self.heard.append).run())

    def plan(
        self,
        solver: Agent,
        *,
        style: StatementStyle = StatementStyle.SPECIFICATION,
        ids: Sequence[str] = (),
        attempts: int = 1,
        at_once: int = 1,
    ) -> SolvePlan:
        """A plan under the default name."""
        statements = Statements(TaskSet.open(self.settings.out), StatementChoice(style=style))
        return SolvePlan(
            run=default_run_name(solver, statements.choice), ids=ids, attempts=attempts, statements=statements,
            at_once=at_once,
        )  # fmt: skip

    def rows(self) -> list[dict[str, Any]]:
        """All rows, in order."""
        with duckdb.connect() as connection:
            connection.execute(attempts_views(self.out))
            result = connection.execute("FROM attempts ORDER BY run, instance_id, number")
            names = [column[0] for column in result.description or []]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def row(self) -> dict[str, Any]:
        """The only row."""
        (row,) = self.rows()
        return row


def applying(patch: str, **more: Any) -> Answer:
    """An answer of the model that applies a patch with the tool ``run``."""
    return calls(("run", {"command": git_apply(patch)}), **more)


def git_apply(patch: str) -> str:
    """A shell command that applies a patch."""
    return f"printf %s {shlex.quote(patch)} | git apply --whitespace=nowarn -"
