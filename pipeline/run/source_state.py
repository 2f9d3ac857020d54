"""The state of one source in a run: its stage, its candidates and their proofs, its counts, the rows to publish."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from math import ceil, inf
from pathlib import Path

from excise.datasets.rows import RepoRows
from excise.deleters.statement.styles import deterministic
from excise.extractors.features.find_features import FoundFeatures
from excise.pipeline.run.repeated_tasks import RepeatedTasks
from excise.pipeline.run.selection import CandidateSelection, CandidateSpec
from excise.pipeline.stages.fetch_stage import FetchedSources
from excise.pipeline.stages.propose_stage import ProposedFeatures
from excise.system.files import is_disk_full
from excise.types import (
    Certificate,
    Rejection,
    Repo,
    RepoReport,
    SourceSpec,
    StatementStyle,
    Status,
    Task,
    TaskStatement,
    Verdict,
    Visibility,
    WorkerOutcome,
)
from excise.verifiers.prove import Proof
from excise.verifiers.workbench import Prepared

SHARD_SIZE = 1
"""Number of candidates in one job."""
MAX_CONSECUTIVE_FAILURES = 3
"""Number of consecutive candidates that failed for reasons of the infrastructure after which their source ends."""


@dataclass(slots=True)
class SourceState:
    """One source on its way through the stages."""

    spec: SourceSpec
    """The source as the user specified it."""
    limit: int | None
    """Maximum number of tasks; ``None`` for no limit."""
    selection: CandidateSelection = field(default_factory=CandidateSelection)
    """Chooses the candidates."""
    stage: str = "waiting"
    """The latest stage that was put into the queue; ``waiting`` before the first, ``done`` at the end."""
    running_stage: str = ""
    """The latest stage that a worker started."""
    running_since: float = 0.0
    """Time of :func:`time.monotonic` at which that stage was started."""
    num_running: int = 0
    """Number of its jobs that workers are running now."""
    sources: FetchedSources | None = None
    """Result of the fetch stage."""
    prepared: Prepared | None = None
    """Result of the latest stage from environment to coverage."""
    prepared_path: Path | None = None
    """Path of the file with ``prepared`` for the workers of the prove stage."""
    proposed: FoundFeatures | None = None
    """Result of the find stage, and what a model proposed."""
    refused_proposals: tuple[Rejection, ...] = ()
    """Proposals of a model that came to nothing."""
    pending: list[CandidateSpec] = field(default_factory=list)
    """Candidates that are not in a shard yet."""
    num_submitted: int = 0
    """Number of candidates in all shards so far, which is the number of the next candidate."""
    num_shards_running: int = 0
    """Number of submitted shards without a result."""
    proof_s: float = 0.0
    """Wall seconds of the proofs that have ended. One that an earlier run made counts as if it were made anew: what is
    still to be proven costs as much."""
    proofs: dict[int, Proof] = field(default_factory=dict)
    """Number of a candidate to its proof."""
    removals: dict[int, str] = field(default_factory=dict)
    """Number of a candidate that is to be removed to the id of its feature."""
    stubs: dict[int, str] = field(default_factory=dict)
    """Number of a candidate that is to be a stub to the id of its feature."""
    stubs_tried: set[str] = field(default_factory=set)
    """Ids of features that were to be removed and were tried as stubs in that proof: other code needs them."""
    consecutive_failures: int = 0
    """Number of latest consecutive proofs that failed for reasons of the infrastructure."""
    tried: int = 0
    """Number of candidates that were counted, in order, until the limit of tasks was reached."""
    tasks: dict[str, Task] = field(default_factory=dict)
    """Instance id to task."""
    certificates: dict[str, Certificate] = field(default_factory=dict)
    """Instance id to certificate."""
    model_statements: list[TaskStatement] = field(default_factory=list)
    """Statements of these tasks that a model wrote."""
    verdicts: list[Verdict] = field(default_factory=list)
    """Verdicts on refused candidates."""
    rejections: list[Rejection] = field(default_factory=list)
    """Refused candidates, and the failure of the source itself."""
    failure: Rejection | None = None
    """Why the source ended early."""
    final_report: RepoReport | None = None
    """The counts of a source whose rows are written and whose records are released (:meth:`release`)."""

    @property
    def name(self) -> str:
        """Name of the source, the same in all runs."""
        return self.spec.name

    @property
    def entry(self) -> str:
        """Name under which its rows are published."""
        return self.selection.entry_name(self.spec)

    @property
    def repo(self) -> Repo | None:
        """The snapshot, once fetched."""
        return self.sources.repo if self.sources else None

    @property
    def done(self) -> bool:
        """Whether the source has ended, with or without a failure."""
        return self.failure is not None or self.stage == "done"

    @property
    def num_tasks(self) -> int:
        """Number of tasks so far."""
        return self.final_report.num_valid if self.final_report else len(self.tasks)

    @property
    def num_wanted(self) -> int:
        """Number of tasks up to the limit; without a limit, the number of pending candidates."""
        return len(self.pending) if self.limit is None else max(0, self.limit - len(self.tasks))

    def job_started(self, stage: str) -> None:
        """Record that a worker started a job of this source."""
        self.num_running += 1
        if self.running_stage != stage:
            self.running_stage, self.running_since = stage, time.monotonic()

    def add_features(self, proposed: FoundFeatures) -> None:
        """Store the result of the find stage, and add the selected candidates to the pending ones."""
        self.proposed = proposed
        language = self.prepared.repo.language if isinstance(self.prepared, Prepared) else "python"
        self.pending += self.selection.candidates(proposed.features, language)

    def add_proposals(self, proposals: ProposedFeatures) -> None:
        """Add what a model proposed to the features; it is tried first."""
        assert self.proposed is not None
        self.proposed = self.proposed.with_proposals(proposals.features)
        candidates = [(feature, "proposed" if feature.changed else "remove") for feature in proposals.features]
        self.pending = [*candidates, *self.pending]
        self.refused_proposals = proposals.rejections
        self.rejections += proposals.rejections

    def next_shards(self, workers: int) -> Iterator[tuple[int, list[CandidateSpec]]]:
        """Yield the next shards to try, each with the number of its first candidate.

        Their number is limited by the missing tasks and by the number of workers. If no shard is left or needed, the
        source ends.
        """
        needed = inf if self.limit is None else ceil(self.num_wanted / SHARD_SIZE)
        while self.num_shards_running < min(workers + 1, needed):
            self.pending = list(dropwhile(self._is_answered, self.pending))
            if not self.pending:
                break
            shard, self.pending = self.pending[:SHARD_SIZE], self.pending[SHARD_SIZE:]
            self.num_shards_running += 1
            first, self.num_submitted = self.num_submitted, self.num_submitted + len(shard)
            for number, (feature, deleter) in enumerate(shard, first):
                if (kind := {"remove": self.removals, "stub": self.stubs}.get(deleter)) is not None:
                    kind[number] = feature.feature_id
            yield first, shard
        if not self.num_shards_running and (not self.pending or not self.num_wanted):
            self.stage = "done"

    def record_proofs(self, first: int, proofs: Sequence[Proof], seconds: float = 0.0) -> None:
        """Store the proofs of the shard that begins with candidate number ``first``, and update the counts.

        ``seconds`` are those that the job took.
        """
        self.num_shards_running -= 1
        self.proof_s += max(seconds, sum(proof.wall_s for proof in proofs))
        if self.failure is None:
            self.proofs.update(enumerate(proofs, first))
            self.stubs_tried.update(self._tried_as_stubs(enumerate(proofs, first)))
            self._recount()
            self._end_if_infrastructure_fails(proofs)

    def _tried_as_stubs(self, proofs: Iterable[tuple[int, Proof]]) -> Iterator[str]:
        for number, proof in proofs:
            task = proof.task
            is_stub = task is not None and task.deleter == "stub" and task.visibility is not Visibility.SAMPLE_TESTS
            is_refused = proof.rejection is not None and "stub" in proof.rejection.evidence
            if number in self.removals and (is_stub or is_refused):
                yield self.removals[number]

    def _is_answered(self, candidate: CandidateSpec) -> bool:
        """Whether the proof of another candidate says what this one's would."""
        feature, deleter = candidate
        return deleter == "stub" and feature.feature_id in self.stubs_tried

    def _end_if_infrastructure_fails(self, proofs: Sequence[Proof]) -> None:
        """End the source after :data:`MAX_CONSECUTIVE_FAILURES` consecutive failures of the infrastructure, or at once
        if a disk is full: candidates that write less would still be tried, and others left out."""
        for proof in proofs:
            row = proof.rejection
            infra = row is not None and row.worker_outcome is WorkerOutcome.INFRA_ERROR
            self.consecutive_failures = self.consecutive_failures + 1 if infra else 0
            is_full = row is not None and infra and is_disk_full(row.reason, row.detail)
            if row is not None and (is_full or self.consecutive_failures >= MAX_CONSECUTIVE_FAILURES):
                number = self.consecutive_failures
                many = (
                    "The disk is full"
                    if is_full
                    else f"{number} candidates in a row could not be tried on this machine"
                )
                again = "What was done is kept; mend it and run the same command again."
                detail = f"{many}: {row.detail} {again}"
                self.fail(replace(row, stage="prove", subject=self.name, kind="", symbols=(), detail=detail))
                return

    def _recount(self) -> None:
        """Count tasks and rejections again, in the order of the candidates, up to the limit.

        Proofs arrive in any order, and workers may have tried more candidates than the limit needs; the published rows
        must not depend on either. Nor may they depend on whether a candidate was tried that another one answers.
        """
        self.tasks, self.certificates, self.verdicts, self.tried = {}, {}, [], 0
        self.model_statements = []
        self.rejections = list(self.refused_proposals)
        known = RepeatedTasks()
        for number in sorted(self.proofs):
            if self.limit is not None and len(self.tasks) >= self.limit:
                return
            if self.stubs.get(number) not in self.stubs_tried:
                self._count(self.proofs[number], known)

    def _count(self, proof: Proof, known: RepeatedTasks) -> None:
        """Count a proof; ``known`` are the tasks that were counted."""
        self.tried += 1
        task, certificate = proof.task, proof.certificate
        if task is None or certificate is None:
            self.verdicts += proof.verdicts
            self.rejections += [proof.rejection] if proof.rejection else []
        elif (refusal := known.refusal(task, is_published=self._is_known(task.instance_id))) is not None:
            self.rejections.append(refusal)
        else:
            self.tasks[task.instance_id] = task
            self.certificates[task.instance_id] = certificate
            self.model_statements += proof.statements
            self.rejections += proof.refused_statements

    def _is_known(self, instance_id: str) -> bool:
        return instance_id in self.tasks or self.selection.is_published_elsewhere(instance_id)

    def fail(self, rejection: Rejection) -> None:
        """End the source with a rejection."""
        self.failure = rejection
        self.rejections.append(rejection)
        self.stage = "done"

    def release(self) -> None:
        """Release the records of a source that has ended and whose rows are written; the counts stay."""
        self.final_report = self.report()
        self.sources = self.prepared = self.proposed = None
        self.tasks, self.certificates, self.proofs, self.model_statements = {}, {}, {}, []
        self.pending, self.verdicts, self.rejections, self.removals, self.stubs = [], [], [], {}, {}
        self.refused_proposals = ()

    def rows(self) -> RepoRows:
        """Return the source's data as rows of the task set."""
        name = self.repo.repo if self.repo else self.name
        found = self.proposed if self.selection.publishes_features else None
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
            features=found.features if found else (),
            symbols=found.symbols if found else (),
            statements=tuple(self.statements()),
        )

    def statements(self) -> Iterator[TaskStatement]:
        """Statements of all tasks: the deterministic ones of every style, and those of the model."""
        for task in self.tasks.values():
            yield from (deterministic(task, style) for style in StatementStyle)
        yield from (written for written in self.model_statements if written.instance_id in self.tasks)

    def report(self) -> RepoReport:
        """Return the counts of this source for each stage."""
        if self.final_report is not None:
            return self.final_report
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
            num_repeated=sum(proof.repeats.repeated > 0 for proof in self._counted()),
            num_disagreeing=sum(proof.repeats.disagreeing > 0 for proof in self._counted()),
            not_proposed=proposed.not_proposed if proposed else {},
            rejected=dict(sorted(rejected.items())),
            cpu_s=round(self._cost()[0], 3),
            wall_s=round(self._cost()[1], 3),
        )

    def _counted(self) -> list[Proof]:
        """The proofs up to the limit of tasks."""
        return [self.proofs[number] for number in sorted(self.proofs)[: self.tried]]

    def _cost(self) -> tuple[float, float]:
        """Return CPU and wall seconds of all work on the source; cached results count as if they were made anew.

        The wall time of the coverage run is not recorded; its CPU time counts for both.
        """
        cpu_s = wall_s = 0.0
        if self.prepared is not None:
            baseline, coverage = self.prepared.baseline, self.prepared.coverage
            wall_s += self.prepared.environment.install_s
            cpu_s += baseline.cpu_s * baseline.num_runs if baseline else 0.0
            wall_s += baseline.wall_s * baseline.num_runs if baseline else 0.0
            cpu_s += coverage.cpu_s if coverage else 0.0
            wall_s += coverage.cpu_s if coverage else 0.0
        counted = self._counted()
        return cpu_s + sum(p.cpu_s for p in counted), wall_s + sum(p.wall_s for p in counted)
