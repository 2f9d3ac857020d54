"""What a run knows so far about each source: the funnel, and the rows to publish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path

from excise.datasets.rows import RepoRows
from excise.pipeline.stages import Proposed, Sourced
from excise.types import Certificate, Feature, Rejection, Repo, RepoReport, SourceSpec, Status, Task, Verdict
from excise.verifiers.prove import Proof
from excise.verifiers.workbench import Prepared

STUB_EVERY = 4
"""One in so many functions is tried as a stub as well: the bottom rung of the ladder."""
SHARD = 2
SLOW_SUITE_S = 20.0


@dataclass(slots=True)
class SourceState:
    """One source on its way through the stages."""

    spec: SourceSpec
    limit: int | None
    stage: str = "waiting"
    sourced: Sourced | None = None
    prepared: Prepared | None = None
    proposed: Proposed | None = None
    saved: Path | None = None
    pending: list[tuple[Feature, str]] = field(default_factory=list)
    in_flight: int = 0
    tried: int = 0
    tasks: dict[str, Task] = field(default_factory=dict)
    certificates: dict[str, Certificate] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    failure: Rejection | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0

    @property
    def name(self) -> str:
        """The source as the user wrote it: what identifies it between runs."""
        return self.spec.spec

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

    def propose(self, proposed: Proposed) -> None:
        """Line up the candidates: every feature removed, and some of the functions as stubs too."""
        self.proposed = proposed
        for number, feature in enumerate(proposed.features):
            self.pending.append((feature, "remove"))
            if number % STUB_EVERY == 1 and feature.kind in {"function", "method"}:
                self.pending.append((feature, "stub"))

    def shards(self, workers: int) -> Iterator[list[tuple[Feature, str]]]:
        """The next shards to try: as many as may be needed, no more than the workers can take."""
        baseline = self.prepared.baseline if self.prepared else None
        size = 1 if baseline is not None and baseline.wall_s > SLOW_SUITE_S else SHARD
        while self.pending and self.in_flight < min(workers + 1, ceil(self.wanted / size)):
            shard, self.pending = self.pending[:size], self.pending[size:]
            self.in_flight += 1
            yield shard
        if not self.in_flight and (not self.pending or not self.wanted):
            self.stage = "done"

    def take(self, proofs: list[Proof]) -> None:
        """Count what a shard brought."""
        for proof in proofs:
            self.tried += 1
            self.cpu_s += proof.cpu_s
            self.wall_s += proof.wall_s
            if proof.task is not None and proof.certificate is not None:
                self._accept(proof.task, proof.certificate)
            elif proof.rejection is not None:
                self.rejections.append(proof.rejection)
                self.verdicts.extend(proof.verdicts)

    def _accept(self, task: Task, certificate: Certificate) -> None:
        if task.patch in self.seen or task.instance_id in self.tasks:
            self.rejections.append(
                Rejection(
                    repo=task.repo,
                    stage="gate",
                    subject=task.instance_id,
                    reason="duplicate",
                    detail="Another task of this repository has the same gold patch.",
                    kind=task.difficulty.kind,
                    symbols=task.removed,
                )
            )
            return
        if self.limit is None or len(self.tasks) < self.limit:
            self.seen.add(task.patch)
            self.tasks[task.instance_id] = task
            self.certificates[task.instance_id] = certificate

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
            cpu_s=round(self.cpu_s, 3),
            wall_s=round(self.wall_s, 3),
        )
