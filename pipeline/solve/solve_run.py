"""A run of ``excise solve``: attempts at tasks, side by side, each stored when it is graded; a stopped run goes on."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import excise
from excise.agents.budget import budget_of
from excise.config import Settings
from excise.datasets.queries.attempts import (
    AttemptRow,
    finished_attempts,
    merge_rows,
    run_folder,
    score_run,
    trajectory_path,
    write_attempt,
)
from excise.datasets.queries.scores import Evaluation
from excise.errors import ConfigError, ExciseError
from excise.pipeline.services.arena import TaskArena
from excise.pipeline.services.statements import StatementChoice, Statements
from excise.pipeline.solve.attempt import Agent, AttemptJob, AttemptOutcome
from excise.system.files import replace_file, store_errors
from excise.system.locks import exclusive
from excise.trainer.concurrency import DaemonThreadPool
from excise.trainer.rollouts.rollout_maker import stored_diff
from excise.types import Grade, Task
from excise.verifiers.grading.intake import storable
from excise.verifiers.monitor.trajectory import Step, Trajectory, clipped, write_events

MAX_LOST_IN_A_ROW = 5
"""Number of infrastructure failures without an attempt between them after which a run begins no more attempts."""
STOP_S = 10.0
"""Seconds to wait for agents to end when a run is stopped."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvePlan:
    """What a run does."""

    run: str
    """Name of the run; a run of the same name goes on."""
    ids: Sequence[str]
    """Tasks."""
    attempts: int
    """Number of attempts at each task."""
    statements: Statements
    """Statements of the tasks, in one style."""
    at_once: int
    """Number of attempts at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAttempt:
    """An attempt that the infrastructure ended; it has no row and is made again by the next run."""

    attempt_id: str
    """Id of the attempt."""
    instance_id: str
    """Id of the task."""
    reason: str
    """Machine-readable code."""
    detail: str
    """Explanation for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveResult:
    """The result of a run."""

    run: str
    """Name of the run."""
    scores: Evaluation
    """Scores of the chosen tasks, with attempts of earlier runs of the same name."""
    num_new: int
    """Number of attempts made now."""
    num_kept: int
    """Number of attempts that an earlier run had made."""
    lost: tuple[LostAttempt, ...] = ()
    """Attempts that the infrastructure ended."""
    num_left_out: int = 0
    """Number of attempts that were not begun, because too many were lost in a row."""


Listener = Callable[[AttemptRow | LostAttempt], None]


@contextmanager
def open_run(settings: Settings, plan: SolvePlan, agent: Agent) -> Iterator[None]:
    """Hold the folder of a run for the block. Raises :class:`ConfigError` if an earlier run of this name differs, and
    :class:`StoreError` (``locked``) if another process writes it."""
    folder = run_folder(settings.out, plan.run)
    with store_errors("store attempts"):
        folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder / ".lock"):
        wanted = _identity(settings, plan, agent)
        known = folder / "run"
        if known.exists():
            before = json.loads(known.read_bytes())
            if changed := sorted(name for name in wanted if wanted[name] != before.get(name)):
                was = ", ".join(f"{name} = {json.dumps(before.get(name))}" for name in changed)
                raise ConfigError(f"The run {plan.run!r} was made with {was}. Name this one otherwise: --name.")
        else:
            with store_errors("store attempts"):
                replace_file(known, json.dumps(wanted, indent=1).encode())
        merge_rows(settings.out, plan.run)
        yield
        merge_rows(settings.out, plan.run)


def _identity(settings: Settings, plan: SolvePlan, agent: Agent) -> dict[str, Any]:
    """What makes attempts comparable. The endpoint's address does not: it may move."""
    model = settings.model
    style = plan.statements.choice.label
    found: dict[str, Any] = {"agent": agent.name, "detail": agent.detail, "model": agent.model, "style": style}
    if agent.model or agent.name == "command":
        names = ["solve_steps", "max_tokens", "max_cost", "max_wall_s", "prompt_price", "completion_price"]
        if agent.model:
            names += ["temperature", "max_reply_tokens", "context_chars", "tool_calls"]
        found |= {name: getattr(model, name) for name in names}
    return found


@dataclass(slots=True)
class SolveRun:
    """A run in progress."""

    settings: Settings
    arena: TaskArena
    agent: Agent
    plan: SolvePlan
    listener: Listener = lambda _: None
    lost: list[LostAttempt] = field(default_factory=list)
    num_new: int = 0
    num_left_out: int = 0
    _lost_in_a_row: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    async def run(self) -> SolveResult:
        """Make all attempts that are missing: the first ones at all tasks, then the second ones."""
        plan, store, began = self.plan, self.settings.out, time.monotonic()
        wanted = [(name, number) for number in range(1, plan.attempts + 1) for name in plan.ids]
        done = finished_attempts(store, plan.run)
        missing = [(name, number) for name, number in wanted if attempt_id(name, number) not in done]
        slots = asyncio.Semaphore(plan.at_once)
        threads = DaemonThreadPool(plan.at_once, "excise-solve")
        try:
            async with asyncio.TaskGroup() as group:
                for name, number in missing:
                    group.create_task(self._attempt(slots, threads, name, number))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            self._stop.set()
            threads.shutdown(cancel_futures=True, within_s=STOP_S)
        scores = score_run(
            store,
            plan.run,
            plan.ids,
            lost=Counter(lost.instance_id for lost in self.lost),
            wall_s=round(time.monotonic() - began, 1),
        )
        return SolveResult(
            run=plan.run,
            scores=scores,
            num_new=self.num_new,
            num_kept=len(wanted) - len(missing),
            lost=tuple(self.lost),
            num_left_out=self.num_left_out,
        )

    async def _attempt(self, slots: asyncio.Semaphore, threads: DaemonThreadPool, name: str, number: int) -> None:
        async with slots:
            if self._lost_in_a_row >= MAX_LOST_IN_A_ROW:
                self.num_left_out += 1
                return
            try:
                row = await self._graded(threads, name, number)
            except (ExciseError, OSError, MemoryError) as error:
                reason = getattr(error, "reason", "infra_error")
                if reason == "store_error" or isinstance(error, ConfigError):
                    raise
                if not isinstance(error, ExciseError):
                    _LOG.exception("attempt lost", extra={"attempt": attempt_id(name, number)})
                lost = LostAttempt(
                    attempt_id=attempt_id(name, number), instance_id=name, reason=reason, detail=str(error)
                )
                self.lost.append(lost)
                self._lost_in_a_row += 1
                self.listener(lost)
                return
        self._lost_in_a_row = 0
        self.num_new += 1
        self.listener(row)

    async def _graded(self, threads: DaemonThreadPool, name: str, number: int) -> AttemptRow:
        """Make one attempt, grade it and store it. Raises :class:`ExciseError` if the infrastructure failed."""
        loop = asyncio.get_running_loop()
        task = self.arena.tasks()[name]
        statement = self.plan.statements.of(task)
        started = datetime.now(UTC).isoformat("T", "seconds")
        async with self.arena.open(name) as sandbox:
            job = AttemptJob(
                attempt_id=attempt_id(name, number),
                run=self.plan.run,
                statement=statement.text,
                sandbox=sandbox,
                is_stopped=self._stop.is_set,
            )
            began = time.monotonic()
            outcome = await loop.run_in_executor(threads, self.agent.attempt, job)
            wall_s = time.monotonic() - began
            diff, flags = await loop.run_in_executor(threads, self._keep_trajectory, job, outcome)
        began = time.monotonic()
        grade = await self.arena.grade(name, diff) if diff.strip() and not outcome.refused else None
        if grade is not None and not grade.decided:
            why = grade.evidence.get("error", ", ".join(grade.reasons))
            raise ExciseError(f"The attempt could not be graded: {why}", reason=str(grade.worker_outcome))
        row = self._row(
            job, outcome, grade, flags=flags, diff=stored_diff(diff), started_at=started,
            wall_s=round(wall_s, 3), grade_s=round(time.monotonic() - began, 3), number=number,
            statement_author=statement.author,
        )  # fmt: skip
        await loop.run_in_executor(threads, write_attempt, self.settings.out, row)
        return row

    def _keep_trajectory(self, job: AttemptJob, outcome: AttemptOutcome) -> tuple[str, tuple[str, ...]]:
        """Store the trajectory of an attempt; return its diff and the monitor's labels."""
        sandbox = job.sandbox
        diff = sandbox.diff() if outcome.diff is None else outcome.diff
        trajectory = sandbox.trajectory() if outcome.diff is None else _of_folder(sandbox.task, self.agent, outcome)
        path = trajectory_path(self.settings.out, job.run, job.attempt_id)
        temporary = path.with_suffix(".part")
        with store_errors("store an attempt"):
            write_events(temporary, [trajectory])
            temporary.replace(path)
        return diff, sandbox.labels(trajectory)

    def _row(
        self, job: AttemptJob, outcome: AttemptOutcome, grade: Grade | None, *, flags: tuple[str, ...], **more: Any
    ) -> AttemptRow:
        reward = grade.reward if grade is not None else 0.0
        reasons = grade.reasons if grade is not None else (outcome.refused or "empty_diff",)
        usage = outcome.usage
        budget = budget_of(self.settings.model)
        priced = usage is not None and (budget.prompt_price or budget.completion_price)
        return AttemptRow(
            run=job.run,
            attempt_id=job.attempt_id,
            instance_id=job.sandbox.task.instance_id,
            agent=self.agent.name,
            agent_detail=self.agent.detail,
            model=self.agent.model,
            style=str(self.plan.statements.choice.style),
            solved=reward == 1.0 and not flags,
            reward=reward,
            partial=grade.partial if grade is not None else 0.0,
            reasons=reasons,
            flags=flags,
            ending=str(outcome.ending),
            detail=storable(outcome.detail[:2000]),
            steps=outcome.steps,
            prompt_tokens=usage.prompt_tokens if usage is not None else None,
            completion_tokens=usage.completion_tokens if usage is not None else None,
            cost=round(budget.cost(usage), 9) if usage is not None and priced else None,
            statement=job.statement,
            transcript=storable(outcome.transcript),
            excise_version=excise.__version__,
            **more,
        )


def attempt_id(instance_id: str, number: int) -> str:
    """Id of an attempt."""
    return f"{instance_id}-{number}"


def _of_folder(task: Task, agent: Agent, outcome: AttemptOutcome) -> Trajectory:
    """The trajectory of an agent that worked outside the sandbox: its command, its output, and what it changed."""
    step = Step(number=1, tool=agent.name, arguments={"command": agent.detail}, output=clipped(outcome.output or ""))
    diff = (outcome.diff or "").encode("utf-8", "replace").decode()
    return Trajectory(instance_id=task.instance_id, source="excise", steps=(step,), diff=diff, cwd="")


def default_run_name(agent: Agent, choice: StatementChoice) -> str:
    """The name of a run that was given none: agent, model and style."""
    words = [agent.name, *filter(None, [agent.model.replace("/", "-")]), choice.label]
    return "-".join("".join(c if c.isalnum() or c in "._-" else "-" for c in word) for word in words)
