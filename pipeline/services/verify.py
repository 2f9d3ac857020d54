"""``excise verify``: checks all gates of tasks again, from the files of their set alone, in a new work directory."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError
from excise.pipeline.services.map_tasks import TaskOperation, map_tasks
from excise.pipeline.stages.error_boundary import is_conclusive, rejection_of
from excise.types import GateOutcome, Task, Verdict
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.all_gates import CALLS_RECORDED, gates_of
from excise.verifiers.gates.gold_passes import GoldPasses
from excise.verifiers.gates.pass_to_pass_passes import PassToPassPasses
from excise.verifiers.grading.kit import record_behaviour
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

logger = logging.getLogger(__name__)

_RETRIED_GATES = (PassToPassPasses.name, GoldPasses.name)
"""Gates that run tests which must pass; after a failure, a task is verified a second time."""
_DAMAGED_SOURCES = frozenset({"unknown_repository", "tree_differs"})
"""Reasons for which the set's own files no longer hold the sources of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """The result of verifying one task."""

    instance_id: str
    """Id of the task."""
    ok: bool
    """Whether every gate passed again."""
    gate: str = ""
    """The first gate that did not pass, or ``files``, ``sources``, ``environment``, ``baseline``, ``patch``,
    ``worker``."""
    reason: str = ""
    """Machine-readable code."""
    detail: str = ""
    """A sentence for users; for a task that passed at the second try, the failure of the first."""
    verdicts: tuple[Verdict, ...] = ()
    """All verdict rows."""
    is_decided: bool = True
    """Whether the task passed, or failed for a reason of its own; false if the infrastructure failed, an environment
    could not be built, or a run did not complete."""


def verify_tasks(
    settings: Settings,
    taskset: TaskSet,
    ids: Sequence[str],
    listener: Callable[[VerifyResult], None],
    *,
    begin_until: float = math.inf,
) -> list[VerifyResult]:
    """Prove the tasks again. ``settings.cache`` is the work directory; if it is empty, everything is built anew.

    After ``begin_until`` (of :func:`time.monotonic`) no task is begun; those that are left have no result.

    Settings that can change a verdict are those of the task's certificate, unless ``settings`` set them explicitly.
    Results are returned in the order of ``ids``; ``listener`` gets each result when it is known.
    Raises :class:`excise.errors.ConfigError`.
    """
    verdict = settings.verdict.model_copy(update={"starved_runs": 0})  # these runs choose tests; a task has its tests
    settings = settings.model_copy(update={"verdict": verdict})
    operation = TaskOperation(work=verify_task, failed=unverified, begin_until=begin_until)
    return map_tasks(settings, taskset, ids, operation, listener)


def unverified(task: Task, gate: str, reason: str, detail: str) -> VerifyResult:
    """Make the result of a task that could not be tried, or whose ``gate`` did not pass."""
    decided = gate in {"files", "baseline", "patch"} or reason in _DAMAGED_SOURCES
    return VerifyResult(
        instance_id=task.instance_id, ok=False, gate=gate, reason=reason, detail=detail, is_decided=decided
    )


def verify_task(_settings: Settings, bench: Workbench, task: Task) -> VerifyResult:
    """Run all gates on one task; called by :func:`verify_tasks` on a worker.

    If tests fail that must pass, all gates run once more, since tests with time limits may fail on a busy machine.
    """
    first = _verify(bench, task)
    if first.gate not in _RETRIED_GATES:
        return first
    logger.info("verification retried", extra={"task": task.instance_id, "gate": first.gate, "detail": first.detail})
    second = _verify(bench, task)
    return replace(second, detail=f"{first.gate} failed once: {first.detail}") if second.ok else second


def _verify(bench: Workbench, task: Task) -> VerifyResult:
    verdicts: list[Verdict] = []
    try:
        candidate = candidate_of(bench, task)
        if task.hidden:
            behaviour = record_behaviour(bench, task.removed, task.fail_to_pass)
            candidate = replace(candidate, behaviour=behaviour)
        for report in _checked(candidate):
            verdicts += report
            failed = next((v for v in report if v.outcome is not GateOutcome.PASSED), None)
            if failed is not None:
                return VerifyResult(
                    instance_id=task.instance_id,
                    ok=False,
                    gate=failed.gate,
                    reason=failed.reason,
                    detail=failed.detail,
                    verdicts=tuple(verdicts),
                    is_decided=failed.outcome is GateOutcome.FAILED,
                )
    except (ExciseError, OSError, RecursionError, MemoryError) as error:
        row = rejection_of("verify", task.repo, error)
        gate = "patch" if is_conclusive(row) else "worker"
        return replace(unverified(task, gate, row.reason, row.detail), verdicts=tuple(verdicts))
    return VerifyResult(instance_id=task.instance_id, ok=True, verdicts=tuple(verdicts))


def _checked(candidate: Candidate) -> Iterator[list[Verdict]]:
    with candidate.trees.one_workspace():
        for gate in gates_of(candidate.task):
            yield gate.check(candidate).verdicts
    _, row = CALLS_RECORDED.make(candidate)
    yield [row]
