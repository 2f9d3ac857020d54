"""``excise recover``: runs the recovery agent on tasks of a set; computes the success rate of each strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError
from excise.pipeline.services.map_tasks import TaskOperation, map_tasks
from excise.pipeline.stages.error_boundary import rejection_of
from excise.types import Task
from excise.verifiers.recovery.inside.all_strategies import STRATEGIES
from excise.verifiers.recovery.recover import Recovery, recover
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResult:
    """The result of the recovery agent on one task."""

    instance_id: str
    """Id of the task."""
    tried: bool
    """Whether all strategies ended; otherwise nothing is known."""
    recovered: bool = False
    """Whether it got source text, byte code, or a patch that makes a hidden test pass."""
    share: float = 0.0
    """Share of the distinctive deleted lines that all strategies together recovered."""
    rates: dict[str, float] = field(default_factory=dict)
    """Strategy to the share that it recovered, if above 0."""
    levels: dict[str, str] = field(default_factory=dict)
    """Strategy to the level of its result: ``L4`` (source text), ``L3`` (byte code) or ``L1``."""
    where: tuple[str, ...] = ()
    """Places where the code was found."""
    num_passing: int = 0
    """Hidden tests that pass with a patch made of the recovered code."""
    problem: str = ""
    """Why the task could not be tried, or which strategies failed."""
    cpu_s: float = 0.0
    """CPU seconds in the sandbox."""
    wall_s: float = 0.0
    """Wall seconds in the sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyRate:
    """One strategy's success over all tasks."""

    strategy: str
    """Name of the strategy."""
    looks_at: str
    """Places that the strategy searches."""
    num_tasks: int
    """Number of tasks that were tried."""
    num_recovered: int
    """Number of tasks of which it recovered code (L3 or L4)."""
    mean_share: float
    """Mean share of the distinctive lines that it recovered."""


def recover_from_tasks(
    settings: Settings,
    taskset: TaskSet,
    ids: Sequence[str],
    listener: Callable[[RecoveryResult], None] = lambda _: None,
    *,
    thorough: bool = False,
) -> list[RecoveryResult]:
    """Run the recovery agent on each task, in environments made from the set's files, with the set's baselines.

    ``thorough``: the system's files are read as well. Raises :class:`excise.errors.ConfigError`.
    """
    work = partial(recover_from_task, thorough=thorough)
    operation = TaskOperation(work=work, failed=_not_tried, measure_baseline=False)
    return map_tasks(settings, taskset, ids, operation, listener)


def recover_from_task(_settings: Settings, bench: Workbench, task: Task, *, thorough: bool) -> RecoveryResult:
    """Run the recovery agent on one task; the work of :func:`recover_from_tasks`."""
    try:
        return _result(task, recover(candidate_of(bench, task), thorough=thorough))
    except (ExciseError, OSError, RecursionError, MemoryError) as error:
        row = rejection_of("recover", task.repo, error)
        return _not_tried(task, "worker", row.reason, row.detail)


def _result(task: Task, recovery: Recovery) -> RecoveryResult:
    attempt = recovery.attempt
    return RecoveryResult(
        instance_id=task.instance_id,
        tried=attempt.finished,
        recovered=recovery.succeeded,
        share=recovery.total.share,
        rates={name: rate.share for name, rate in recovery.by_strategy.items()},
        levels={name: rate.level for name, rate in recovery.by_strategy.items()},
        where=recovery.total.where,
        num_passing=len(recovery.passing),
        problem="; ".join(f"{name}: {problem}" for name, problem in attempt.problems.items()),
        cpu_s=round(attempt.completed.cpu_s, 3),
        wall_s=round(attempt.completed.wall_s, 3),
    )


def _not_tried(task: Task, where: str, reason: str, detail: str) -> RecoveryResult:
    return RecoveryResult(instance_id=task.instance_id, tried=False, problem=f"{where}: {reason}: {detail}")


def rates_of(answers: Sequence[RecoveryResult]) -> list[StrategyRate]:
    """Return each strategy's success rate over all tasks that were tried."""
    tried = [answer for answer in answers if answer.tried]
    empty = StrategyRate(strategy="", looks_at="", num_tasks=len(tried), num_recovered=0, mean_share=0.0)
    return [
        replace(
            empty,
            strategy=strategy.name,
            looks_at=strategy.looks_at,
            num_recovered=sum(answer.levels.get(strategy.name, "") in {"L3", "L4"} for answer in tried),
            mean_share=round(sum(a.rates.get(strategy.name, 0.0) for a in tried) / len(tried), 4) if tried else 0.0,
        )
        for strategy in STRATEGIES
    ]
