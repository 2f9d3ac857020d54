"""``excise audit``: the monitor reviews trajectories, and tasks that share a confirmed leak are quarantined."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from excise.agents.budget import Meter, budget_of
from excise.agents.transcript import Transcript
from excise.config import Settings
from excise.datasets.storage.manifest import SnapshotReport
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.errors import AgentError, ExciseError
from excise.extractors.fetch.trees import list_files, unpack
from excise.pipeline.services.map_tasks import TaskOperation, map_tasks
from excise.pipeline.stages.error_boundary import rejection_of
from excise.types import Quarantine, Task
from excise.verifiers.monitor.findings import Finding, Review
from excise.verifiers.monitor.model_judge import judge_trajectory
from excise.verifiers.monitor.monitored_task import MonitoredTask, monitored_task_of
from excise.verifiers.monitor.rescan import Leak, RescanResult, leak_of, quarantine, rescan
from excise.verifiers.monitor.review import confirmed, review
from excise.verifiers.monitor.trajectory import Trajectory
from excise.verifiers.recovery.scoring import distinctive_lines
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

Judge = Callable[[Trajectory, MonitoredTask], Sequence[Finding]]
"""Returns further findings about a trajectory; they do not confirm a leak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of an audit."""

    reviews: tuple[Review, ...]
    """One for each trajectory of a task of the set."""
    unknown: tuple[str, ...] = ()
    """Trajectories of tasks that the set does not have, by instance id."""
    leaks: tuple[Leak, ...] = ()
    """Confirmed leaks."""
    rescanned: tuple[RescanResult, ...] = ()
    """Tasks of the same repository or environment, searched for the leaks."""
    quarantined: tuple[Quarantine, ...] = ()
    """New quarantines; with ``dry_run``, those that would be made."""
    report: SnapshotReport = field(default_factory=SnapshotReport)
    """Changes of tasks in the new snapshot: none."""


def audit(
    settings: Settings,
    taskset: TaskSet,
    trajectories: Sequence[Trajectory],
    *,
    judge: Judge | None = None,
    dry_run: bool = False,
    listener: Callable[[Review | RescanResult], None] = lambda _: None,
) -> Audit:
    """Review trajectories, search related tasks for each confirmed leak, and publish all quarantines in one snapshot.

    Raises :class:`excise.errors.ConfigError` and :class:`excise.errors.StoreError`.
    """
    ids = frozenset(taskset.ids())
    reviews: list[Review] = []
    leaks: dict[str, Leak] = {}
    with _ShippedLines(taskset) as shipped:
        for trajectory in trajectories:
            if trajectory.instance_id not in ids:
                continue
            task = taskset.task(trajectory.instance_id)
            known = monitored_task_of(task, shipped.of(task))
            seen = review(trajectory, known, judge(trajectory, known) if judge else ())
            reviews.append(seen)
            listener(seen)
            for finding in confirmed(seen.findings):
                leak = leak_of(trajectory, task.instance_id, finding)
                leaks.setdefault(leak.leak_id, leak)
    rescanned = _rescan(settings, taskset, tuple(leaks.values()), listener)
    rows = _rows(tuple(leaks.values()), rescanned)
    if rows and not dry_run:
        with Store(settings.out).writer() as writer:
            writer.quarantine(rows)
            report = writer.publish()
    return Audit(
        reviews=tuple(reviews),
        unknown=tuple(sorted({t.instance_id for t in trajectories} - ids)),
        leaks=tuple(leaks.values()),
        rescanned=tuple(rescanned),
        quarantined=tuple(rows),
        report=report if rows and not dry_run else SnapshotReport(),
    )


def siblings(taskset: TaskSet, instance_id: str) -> list[str]:
    """Return the ids of the tasks of the same repository or environment, this one included."""
    task = taskset.task(instance_id)
    every = taskset.tasks(quarantined=True)
    return [other.instance_id for other in every if task.repo == other.repo or task.env_id == other.env_id]


def rescan_task(_settings: Settings, bench: Workbench, task: Task, leaks: tuple[Leak, ...]) -> RescanResult:
    """Search one task for leaks, on a worker."""
    try:
        return rescan(candidate_of(bench, task), leaks)
    except (ExciseError, OSError, RecursionError, MemoryError) as error:
        row = rejection_of("rescan", task.repo, error)
        return _not_rescanned(task, "worker", row.reason, row.detail)


def _rescan(
    settings: Settings, taskset: TaskSet, leaks: tuple[Leak, ...], listener: Callable[[RescanResult], None]
) -> list[RescanResult]:
    found: list[RescanResult] = []
    by_tasks: dict[tuple[str, ...], list[Leak]] = {}
    for leak in leaks:
        by_tasks.setdefault(tuple(siblings(taskset, leak.instance_id)), []).append(leak)
    for ids, ours in by_tasks.items():
        work = partial(rescan_task, leaks=tuple(ours))
        operation = TaskOperation(work=work, failed=_not_rescanned, measure_baseline=False)
        found += map_tasks(settings, taskset, ids, operation, listener)
    return found


def _not_rescanned(task: Task, where: str, reason: str, detail: str) -> RescanResult:
    return RescanResult(instance_id=task.instance_id, problem=f"{where}: {reason}: {detail}")


def _rows(leaks: Sequence[Leak], rescanned: Sequence[RescanResult]) -> list[Quarantine]:
    """Return the quarantines of the trajectories' tasks and of tasks with the same leak.

    Hits of the recovery agent that match no leak are assigned to the first leak.
    """
    now = datetime.now(UTC).isoformat("T", "seconds")
    by_id = {leak.leak_id: leak for leak in leaks}
    rows = {
        (leak.leak_id, leak.instance_id): quarantine(leak, leak.instance_id, leak.level, leak.places, now)
        for leak in leaks
    }
    for answer in rescanned:
        for leak_id, level, places in answer.hits:
            leak = by_id[leak_id] if leak_id else leaks[0]
            rows.setdefault(
                (leak.leak_id, answer.instance_id), quarantine(leak, answer.instance_id, level, places, now)
            )
    return list(rows.values())


class _ShippedLines:
    """Reads lines of shipped trees from the set's archives; each tree is unpacked once."""

    def __init__(self, taskset: TaskSet) -> None:
        self.taskset = taskset
        self.folder = Path(tempfile.mkdtemp(prefix="excise-audit-"))

    def __enter__(self) -> _ShippedLines:
        return self

    def __exit__(self, *exc: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def of(self, task: Task) -> set[str]:
        """Lines of every text file of the tree that the task ships. Raises :class:`StoreError`."""
        root = self.folder / task.tree
        if not root.exists():
            repo = next(repo for repo in self.taskset.repos() if repo.tree == task.tree)
            unpack(self.taskset.blob(repo.blob), root)
        paths = touched(task.deletion_patch)
        known = {path: (root / path).read_bytes() for path in paths if (root / path).is_file()}
        edits = apply_patch(known, task.deletion_patch)
        found: set[str] = set()
        for path in {*list_files(root), *edits}:
            file = root / path
            data = edits[path] if path in edits else file.read_bytes() if file.is_file() else None
            if data and b"\0" not in data[:4096]:
                found |= distinctive_lines(data.decode(errors="replace"))
        return found


def model_judge(settings: Settings) -> Judge:
    """Return a judge that asks the settings' model; all trajectories share one budget. Raises :class:`AgentError`."""
    try:
        from excise.agents.client import OpenAIClient
    except ImportError as error:
        raise AgentError("The openai package is missing. Install excise with its extra: excise[agents].") from error
    client = OpenAIClient(settings.model, Meter(budget_of(settings.model)))

    def ask(trajectory: Trajectory, known: MonitoredTask) -> Sequence[Finding]:
        path = settings.cache / "transcripts" / f"judge-{trajectory.trajectory_id}.jsonl"
        with Transcript(path) as transcript:
            return judge_trajectory(trajectory, known, client, settings.model.model, transcript)

    return ask
