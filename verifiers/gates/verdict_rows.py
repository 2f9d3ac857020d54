"""From what a gate's check found to the verdict row that is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from excise.protocols import NamedClaim
from excise.types import GateOutcome, Status, TestRun, Verdict, WorkerOutcome
from excise.verifiers.candidate import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check of a gate found."""

    passed: bool | None
    """Whether the gate's claim holds; ``None`` where the check could not decide."""
    reason: str = ""
    """Machine-readable code for the case that it did not pass."""
    problem: str = ""
    """A sentence for people for the same case."""
    run: TestRun | None = None
    """The test run that decided it; ``None`` for checks without one."""
    number: int = 0
    """Number of the run, for gates that repeat."""
    num_tests: int = 0
    """Tests that the check is about."""
    statuses: Mapping[str, Status] = field(default_factory=dict)
    """Per-test statuses to store: those asked for; for whole-suite gates only the exceptions."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Further facts to store, as text."""


def verdict_row(gate: NamedClaim, candidate: Candidate, result: CheckResult) -> Verdict:
    """The row of one check. Where the run itself failed (``infra_error``, ``killed``) nothing is decided."""
    run = result.run
    worker = run.worker if run is not None else WorkerOutcome.OK
    evidence = dict(result.evidence)
    if run is not None and run.results:
        evidence["statuses_sha256"] = _statuses_sha256(run, candidate.trusted)
    outcome = GateOutcome.PASSED if result.passed else GateOutcome.FAILED
    if not result.passed and (result.passed is None or worker in {WorkerOutcome.INFRA_ERROR, WorkerOutcome.KILLED}):
        outcome = GateOutcome.UNDECIDED
    return Verdict(
        instance_id=candidate.task.instance_id,
        gate=gate.name,
        run=result.number,
        worker_outcome=worker,
        outcome=outcome,
        reason="" if outcome is GateOutcome.PASSED else result.reason or str(worker),
        detail=gate.claim if result.passed else result.problem,
        num_tests=result.num_tests,
        statuses=dict(result.statuses),
        evidence=evidence,
        cpu_s=round(run.cpu_s, 3) if run else 0.0,
        wall_s=round(run.wall_s, 3) if run else 0.0,
    )


def _statuses_sha256(run: TestRun, trusted: frozenset[str]) -> str:
    """Hash of every trusted test's status: the row itself lists only some of them."""
    statuses = sorted((test, str(status)) for test, status in run.statuses().items() if test in trusted)
    return hashlib.sha256(json.dumps(statuses).encode()).hexdigest()
