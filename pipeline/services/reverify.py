"""Proves a part of the published tasks again; a task whose certificate no longer holds goes into quarantine.

A failure counts only if it happens again with everything built anew from the set's files, so that a damaged cache or a
busy machine condemns no task. What the infrastructure left undecided changes nothing.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from excise.config import Settings, VerdictSettings
from excise.datasets.queries.refreshes import ReverifiedTask
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.pipeline.services.verify import VerifyResult, verify_tasks
from excise.types import Quarantine, content_id

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverification:
    """The result of :func:`reverify`."""

    tasks: tuple[ReverifiedTask, ...] = ()
    """The tasks that were tried."""
    num_left: int = 0
    """Number of tasks for which no time was left."""
    interrupted: bool = False
    """Whether Ctrl-C ended it; the failures that were not confirmed then count for nothing."""


def choose(ids: Sequence[str], number: int, last_proved: Mapping[str, str], seed: object) -> list[str]:
    """Choose ``number`` of the tasks: those that were proved again longest ago, or never; of equal ones, a sample.

    ``last_proved``: id to time. ``seed``: equal seeds give equal samples.
    """
    order = sorted(ids, key=lambda name: (last_proved.get(name, ""), content_id("reverify", str(seed), name)))
    return sorted(order[:number])


def reverify(
    settings: Settings, ids: Sequence[str], listener: Callable[[VerifyResult], None] = lambda _: None
) -> Reverification:
    """Prove the tasks again, and publish the quarantine of those that fail twice for a reason of their own.

    Settings that can change a verdict are those of the certificates. The first time, environments and baselines of the
    cache are used; ``settings.refresh.reverify_wall_s`` ends it. The second time, nothing is. Raises
    :class:`excise.errors.ConfigError` and :class:`excise.errors.StoreError`.
    """
    settings = settings.model_copy(update={"verdict": VerdictSettings()})
    taskset = TaskSet.open(settings.out)
    first: dict[str, VerifyResult] = {}
    again: dict[str, VerifyResult] = {}

    def note(result: VerifyResult) -> None:
        first[result.instance_id] = result
        listener(result)

    interrupted = False
    try:
        until = time.monotonic() + settings.refresh.reverify_wall_s
        verify_tasks(settings, taskset, ids, note, begin_until=until)
        failed = [name for name in ids if name in first and not first[name].ok and first[name].is_decided]
        if failed:
            settings.cache.mkdir(parents=True, exist_ok=True)  # where workers on other machines find it, too
            with tempfile.TemporaryDirectory(prefix="reverify-", dir=settings.cache) as work:
                anew = settings.model_copy(update={"cache": Path(work)})
                verify_tasks(anew, taskset, failed, lambda result: again.update({result.instance_id: result}))
    except KeyboardInterrupt:
        interrupted = True
    tasks = tuple(_outcome(first[name], again.get(name)) for name in ids if name in first)
    _quarantine(settings, tasks)
    return Reverification(tasks=tasks, num_left=len(ids) - len(tasks), interrupted=interrupted)


def _outcome(first: VerifyResult, again: VerifyResult | None) -> ReverifiedTask:
    """Judge a task from both results; ``again`` is ``None`` if it was not tried a second time."""
    outcome, shown = "holds", first
    if not first.is_decided:
        outcome = "undecided"
    elif not first.ok:
        outcome = "unconfirmed"
        if again is not None and again.is_decided and not again.ok:
            outcome, shown = "quarantined", again
    return ReverifiedTask(
        instance_id=first.instance_id, outcome=outcome, gate=shown.gate, reason=shown.reason, detail=shown.detail
    )


def _quarantine(settings: Settings, tasks: Sequence[ReverifiedTask]) -> None:
    now = datetime.now(UTC).isoformat("T", "seconds")
    rows = [
        Quarantine(
            instance_id=task.instance_id,
            leak_id=content_id("certificate", task.gate, task.reason),
            label="certificate",
            level="",
            detail=task.detail,
            gate=task.gate,
            reason=task.reason,
            found_in=task.instance_id,
            trajectory="",
            created_at=now,
        )
        for task in tasks
        if task.outcome == "quarantined"
    ]
    if rows:
        with Store(settings.out).writer() as writer:
            writer.quarantine(rows)
            writer.publish()
        for row in rows:
            facts = {"task": row.instance_id, "gate": row.gate, "reason": row.reason, "detail": row.detail}
            logger.warning("task quarantined", extra=facts)
