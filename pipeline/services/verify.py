"""``excise verify``: prove tasks again, from the files of the set alone, in a new work directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError
from excise.pipeline.services.stored_tasks import over_tasks
from excise.pipeline.stages.error_boundary import decided, rejection_of
from excise.types import Outcome, Task, Verdict
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.all_gates import CALLS_RECORDED, GATES
from excise.verifiers.gates.gold_passes import GoldPasses
from excise.verifiers.gates.pass_to_pass_passes import PassToPassPasses
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

_SHOULD_PASS = (PassToPassPasses.name, GoldPasses.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What verifying one task said."""

    instance_id: str
    """Task."""
    ok: bool
    """Every gate passed again."""
    gate: str = ""
    """The first gate that did not, or ``files``, ``sources``, ``environment``, ``baseline``, ``patch``."""
    reason: str = ""
    """Machine-readable code."""
    detail: str = ""
    """A sentence for people; of a task that passed, what failed at the first try."""
    verdicts: tuple[Verdict, ...] = ()
    """All verdict rows."""


def verify_tasks(
    settings: Settings, taskset: TaskSet, ids: Sequence[str], listener: Callable[[Verified], None]
) -> list[Verified]:
    """Prove the tasks again; ``settings.cache`` is the work directory, empty for a proof from nothing.

    Settings that can change a verdict are those of the certificate, unless ``settings`` give them expressly.
    ``listener`` hears of each task as it ends; the answer is in the order of ``ids``.
    Raises :class:`excise.errors.ConfigError`.
    """
    sparing = settings.verdict.model_copy(update={"starved_runs": 0})  # they choose tests, and a task has its tests
    settings = settings.model_copy(update={"verdict": sparing})
    return over_tasks(settings, taskset, ids, verify_task, not_proven, listener)


def not_proven(task: Task, gate: str, reason: str, detail: str) -> Verified:
    """A task that could not even be tried, or whose ``gate`` did not pass."""
    return Verified(instance_id=task.instance_id, ok=False, gate=gate, reason=reason, detail=detail)


def verify_task(_settings: Settings, bench: Workbench, task: Task) -> Verified:
    """All gates for one task.

    Where tests fail that should pass, all of it is tried once more: some wait for a clock, and a busy machine is late.
    """
    first = _verify(bench, task)
    if first.gate not in _SHOULD_PASS:
        return first
    second = _verify(bench, task)
    return replace(second, detail=f"{first.gate} failed once: {first.detail}") if second.ok else second


def _verify(bench: Workbench, task: Task) -> Verified:
    verdicts: list[Verdict] = []
    try:
        candidate = candidate_of(bench, task)
        for report in _checked(candidate):
            verdicts += report
            failed = next((v for v in report if v.outcome is not Outcome.PASSED), None)
            if failed is not None:
                return Verified(
                    instance_id=task.instance_id,
                    ok=False,
                    gate=failed.gate,
                    reason=failed.reason,
                    detail=failed.detail,
                    verdicts=tuple(verdicts),
                )
    except (ExciseError, OSError, RecursionError, MemoryError) as error:
        row = rejection_of("verify", task.repo, error)
        gate = "patch" if decided(row) else "worker"
        return replace(not_proven(task, gate, row.reason, row.detail), verdicts=tuple(verdicts))
    return Verified(instance_id=task.instance_id, ok=True, verdicts=tuple(verdicts))


def _checked(candidate: Candidate) -> Iterator[list[Verdict]]:
    for gate in GATES:
        yield gate.check(candidate).verdicts
    _, row = CALLS_RECORDED.make(candidate)
    yield [row]
