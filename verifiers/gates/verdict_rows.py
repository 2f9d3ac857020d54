"""The result of a gate's check, and the verdict row that is stored for it."""

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
    """The result of one check of a gate."""

    passed: bool | None
    """Whether the gate's claim holds; ``None`` if the check could not decide."""
    reason: str = ""
    """Machine-readable reason code, used if the check did not pass."""
    problem: str = ""
    """A sentence that describes the problem, used if the check did not pass."""
    run: TestRun | None = None
    """The test run that decided the check; ``None`` for checks without one."""
    number: int = 0
    """Number of the run, for gates that repeat."""
    num_tests: int = 0
    """Number of tests that the check is about."""
    statuses: Mapping[str, Status] = field(default_factory=dict)
    """Statuses of single tests to store: of all tests checked, or of gates on the whole suite only the exceptions."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Further facts to store: name to text."""


def verdict_row(gate: NamedClaim, candidate: Candidate, result: CheckResult) -> Verdict:
    """The row of one check: undecided if its test run failed itself (``infra_error``, ``killed``)."""
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
    """A hash of the statuses of all trusted tests, of which the row lists only some."""
    statuses = sorted((test, str(status)) for test, status in run.statuses().items() if test in trusted)
    return hashlib.sha256(json.dumps(statuses).encode()).hexdigest()
