"""What a run knows so far about each source: the funnel, and the rows to publish."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path

from excise.datasets.rows import RepoRows
from excise.pipeline.run.priorities import SLOW_SUITE_S
from excise.pipeline.run.selection import Plan
from excise.pipeline.stages.environment_stage import Proposed, Sourced
from excise.types import Certificate, Feature, Rejection, Repo, RepoReport, SourceSpec, Status, Task, Verdict, Worker
from excise.verifiers.prove import Proof
from excise.verifiers.workbench import Prepared

SHARD = 2
MAX_UNTRIED = 3
"""So many candidates in a row that this machine could not try: the next ones would fare no better."""


@dataclass(slots=True)
class SourceState:
    """One source on its way through the stages."""

    spec: SourceSpec
    limit: int | None
    plan: Plan = field(default_factory=Plan)
    stage: str = "waiting"
    active: str = ""
    since: float = 0.0
    running: int = 0
    sourced: Sourced | None = None
    prepared: Prepared | None = None
    proposed: Proposed | None = None
    saved: Path | None = None
    pending: list[tuple[Feature, str]] = field(default_factory=list)
    submitted: int = 0
    in_flight: int = 0
    proofs: dict[int, Proof] = field(default_factory=dict)
    untried: int = 0
    tried: int = 0
    tasks: dict[str, Task] = field(default_factory=dict)
    certificates: dict[str, Certificate] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    failure: Rejection | None = None

    @property
    def name(self) -> str:
        """What identifies the source between runs."""
        return self.spec.name

    @property
    def entry(self) -> str:
        """Name under which its rows are published."""
        return self.plan.entry(self.spec)

    @property
    def repo(self) -> Repo | None:
        """The snapshot, once fetched."""
        return self.sourced.repo if self.sourced else None

    @property
    def done(self) -> bool:
        """Nothing more will come."""
        return self.failure is not None or self.stage == "done"

    @property
    def wanted(self) -> int:
        """How many more tasks may come."""
        return len(self.pending) if self.limit is None else max(0, self.limit - len(self.tasks))

    def begin(self, stage: str) -> None:
        """A worker began a job of this source; until then the source stood in a queue."""
        self.running += 1
        if self.active != stage:
            self.active, self.since = stage, time.monotonic()

    def propose(self, proposed: Proposed) -> None:
        """Line up the candidates."""
        self.proposed = proposed
        self.pending += self.plan.attempts(proposed.features)

    def shards(self, workers: int) -> Iterator[tuple[int, list[tuple[Feature, str]]]]:
        """The next shards to try, each with the number of its first candidate.

        As many as may be needed, no more than the workers can take.
        """
        baseline = self.prepared.baseline if self.prepared else None
        size = 1 if baseline is not None and baseline.suite_s() > SLOW_SUITE_S else SHARD
        while self.pending and self.in_flight < min(workers + 1, ceil(self.wanted / size)):
            shard, self.pending = self.pending[:size], self.pending[size:]
            self.in_flight += 1
            first, self.submitted = self.submitted, self.submitted + len(shard)
            yield first, shard
        if not self.in_flight and (not self.pending or not self.wanted):
            self.stage = "done"

    def take(self, first: int, proofs: Sequence[Proof]) -> None:
        """Count what the shard brought that begins with candidate number ``first``."""
        self.in_flight -= 1
        if self.failure is None:
            self.proofs.update(enumerate(proofs, first))
            self._select()
            self._give_up(proofs)

    def _give_up(self, proofs: Sequence[Proof]) -> None:
        """End here if the machine, not the candidates, is what fails."""
        for proof in proofs:
            row = proof.rejection
            infra = row is not None and row.worker_outcome is Worker.INFRA_ERROR
            self.untried = self.untried + 1 if infra else 0
            if row is not None and self.untried >= MAX_UNTRIED:
                many = f"{self.untried} candidates in a row could not be tried on this machine"
                again = "What was done is kept; mend it and run the same command again."
                detail = f"{many}: {row.detail} {again}"
                self.fail(replace(row, stage="prove", subject=self.name, kind="", symbols=(), detail=detail))
                return

    def _select(self) -> None:
        """What counts, in the order of the candidates up to the limit.

        Answers come in any order, and more candidates may have been tried than were needed: equal input must
        give equal rows all the same.
        """
        self.tasks, self.certificates, self.verdicts, self.tried = {}, {}, [], 0
        self.rejections = []
        for number in sorted(self.proofs):
            if self.limit is not None and len(self.tasks) >= self.limit:
                return
            self._count(self.proofs[number])

    def _count(self, proof: Proof) -> None:
        self.tried += 1
        task, certificate = proof.task, proof.certificate
        if task is None or certificate is None:
            self.verdicts += proof.verdicts
            self.rejections += [proof.rejection] if proof.rejection else []
        elif self._is_known(task):
            self.rejections.append(_duplicate(task))
        else:
            self.tasks[task.instance_id] = task
            self.certificates[task.instance_id] = certificate

    def _is_known(self, task: Task) -> bool:
        same = (task.patch == other.patch for other in self.tasks.values())
        return task.instance_id in self.tasks or self.plan.is_taken(task.instance_id) or any(same)

    def fail(self, rejection: Rejection) -> None:
        """The source ends here."""
        self.failure = rejection
        self.rejections.append(rejection)
        self.stage = "done"

    def rows(self) -> RepoRows:
        """Everything known, as rows."""
        name = self.repo.repo if self.repo else self.name
        return RepoRows(
            repo=self.repo,
            spec=replace(self.spec, limit=None),
            report=self.report(),
            environment=self.prepared.environment if self.prepared else None,
            baseline=self.prepared.baseline if self.prepared else None,
            tasks=tuple(self.tasks.values()),
            certificates=tuple(self.certificates.values()),
            verdicts=tuple(self.verdicts),
            rejections=tuple(replace(r, repo=name) for r in self.rejections),
        )

    def report(self) -> RepoReport:
        """The funnel."""
        baseline = self.prepared.baseline if self.prepared else None
        statuses = Counter(baseline.statuses.values()) if baseline else Counter()
        rejected = Counter(r.reason for r in self.rejections if r.stage in {"delete", "gate"})
        proposed = self.proposed
        return RepoReport(
            repo=self.repo.repo if self.repo else self.name,
            source=self.repo.source if self.repo else self.name,
            status=self.failure.reason if self.failure else "ok",
            detail=self.failure.detail if self.failure else "",
            num_tests=len(baseline.durations) if baseline else 0,
            num_passing=statuses[Status.PASSED],
            num_flaky=len(baseline.flaky) if baseline else 0,
            num_symbols=proposed.num_symbols if proposed else 0,
            num_covered=proposed.num_covered if proposed else 0,
            num_features=len(proposed.features) if proposed else 0,
            num_candidates=self.tried,
            num_valid=len(self.tasks),
            not_proposed=proposed.not_proposed if proposed else {},
            rejected=dict(sorted(rejected.items())),
            cpu_s=round(self._cost()[0], 3),
            wall_s=round(self._cost()[1], 3),
        )

    def _cost(self) -> tuple[float, float]:
        """CPU and wall seconds, as they were when the work was done: taking it from the cache costs the same."""
        cpu_s = wall_s = 0.0
        if self.prepared is not None:
            baseline, coverage = self.prepared.baseline, self.prepared.coverage
            wall_s += self.prepared.environment.install_s
            cpu_s += baseline.cpu_s * baseline.num_runs if baseline else 0.0
            wall_s += baseline.wall_s * baseline.num_runs if baseline else 0.0
            cpu_s += coverage.cpu_s if coverage else 0.0
            wall_s += coverage.cpu_s if coverage else 0.0
        counted = [self.proofs[number] for number in sorted(self.proofs)[: self.tried]]
        return cpu_s + sum(p.cpu_s for p in counted), wall_s + sum(p.wall_s for p in counted)


def _duplicate(task: Task) -> Rejection:
    return Rejection(
        repo=task.repo,
        stage="gate",
        subject=task.instance_id,
        reason="duplicate",
        detail="Another task of this repository has the same gold patch.",
        kind=task.difficulty.kind,
        symbols=task.removed,
    )
