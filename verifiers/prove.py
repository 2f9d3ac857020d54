"""Proving one feature: from the proposed feature to a certified task or a rejection.

The steps, in order: plan the deletion (:mod:`verifiers.plan_deletion`), divide its tests and build the task
(:mod:`verifiers.build_candidate`), pass every gate (:mod:`verifiers.gates.all_gates`), make the grading kit, let a
model try the task (only where a solver is given), certify.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from excise.deleters.deletion_record import REMOVALS, USED_ELSEWHERE
from excise.deleters.statement.how_checked import without_calls
from excise.errors import DeletionRefused
from excise.system.deadline import check_deadline
from excise.system.job_costs import step
from excise.types import (
    Certificate,
    Feature,
    GateOutcome,
    GradingKit,
    Rejection,
    Status,
    Task,
    TaskStatement,
    Verdict,
    Visibility,
    WorkerOutcome,
    content_id,
)
from excise.verifiers.build_candidate import build_candidate, require_checked, require_statement, split_tests
from excise.verifiers.candidate import Candidate, PlannedDeletion, Rejected, Unchecked
from excise.verifiers.certificate import certify
from excise.verifiers.gates.all_gates import CALLS_RECORDED, GATES, SOLVED_BY_MODEL
from excise.verifiers.gates.fail_to_pass_fails import FailToPassFails
from excise.verifiers.gates.gold_passes import GoldPasses
from excise.verifiers.gates.solved_by_model import Solver
from excise.verifiers.plan_deletion import feature_of_checked, plan_deletion
from excise.verifiers.workbench import Cost, RepeatedRuns, Workbench

REASONS_FOR_STUB = frozenset({"breaks_other_tests", "import_time_reference", "unchecked", USED_ELSEWHERE})
"""Reasons of refused removals for which a stub is tried: other code needs the names, which a stub keeps, or not all of
the code is checked, which may keep its bodies then."""
IN_SIGHT = {"undescribed": Visibility.SAMPLE_TESTS, "hides_other_tests": Visibility.TESTS}
"""Reasons of refusals to what is shown of the tests then: a half of them where no words say what the code does, all
where they are cases of functions that also test other code, as those that read their cases from files are."""
NOTHING_IN_SIGHT = frozenset({Visibility.DOCSTRING, Visibility.BEHAVIOUR})
"""Visibilities at which words alone say what code does; where there are none, tests may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The outcome of one candidate: a certified task, or a rejection."""

    task: Task | None = None
    """The task, if all gates passed."""
    certificate: Certificate | None = None
    """The task's certificate."""
    kit: GradingKit | None = None
    """The task's grading kit."""
    rejection: Rejection | None = None
    """The rejection, if there is no task."""
    verdicts: tuple[Verdict, ...] = ()
    """Verdict rows of a refused candidate; their id is the rejection's subject."""
    cpu_s: float = 0.0
    """CPU seconds spent."""
    wall_s: float = 0.0
    """Wall seconds spent."""
    statements: tuple[TaskStatement, ...] = ()
    """Statements of the task that a model wrote; added after the proof."""
    refused_statements: tuple[Rejection, ...] = ()
    """Statements that a model was to write and that came to nothing."""
    repeats: RepeatedRuns = field(default_factory=RepeatedRuns)
    """Forked runs that were repeated in processes of their own, and how many of them differed."""


def prove(bench: Workbench, feature: Feature, deleter_name: str, solver: Solver | None = None) -> Proof:
    """Try one feature with one deleter; if a removal fails because other code needs its names, try a stub instead.

    With a ``solver``, tasks that it does not solve are refused. Raises only for infrastructure failures.
    """
    chosen_for_repeats = is_repeated(feature.feature_id, deleter_name, bench.settings.repeat_share)
    bench.repeats = RepeatedRuns() if chosen_for_repeats else None
    try:
        with bench.without(()):  # tests that planning finds unsteady are not trusted until here
            proof = _prove_in_sight(bench, feature, deleter_name, solver)
        return replace(proof, repeats=bench.repeats) if bench.repeats else proof
    finally:
        bench.repeats = None


def _prove_in_sight(bench: Workbench, feature: Feature, deleter_name: str, solver: Solver | None) -> Proof:
    """Try a feature, and again with tests in sight if nothing else says what it does, or its tests cannot be hidden
    alone."""
    proof = _prove_or_stub(bench, feature, deleter_name, solver)
    settings, reasons = bench.settings, _reasons(proof.rejection)
    shown = next((level for reason, level in IN_SIGHT.items() if reason in reasons), None)
    if shown is None or not settings.sample_undescribed or settings.visibility not in NOTHING_IN_SIGHT:
        return proof
    deleter = "stub" if deleter_name in REMOVALS else deleter_name  # tests in sight need the names
    with bench.showing(shown):
        other = _prove_or_stub(bench, feature, deleter, solver)
    return _with_costs(other if other.task is not None else proof, proof, other)


def _reasons(rejection: Rejection | None) -> frozenset[str]:
    """Why a candidate is refused, and the stub that was tried in its place."""
    if rejection is None:
        return frozenset()
    return frozenset({rejection.reason, rejection.evidence.get("stub", "").partition(":")[0]})


def is_repeated(feature_id: str, deleter_name: str, share: float) -> bool:
    """Whether a candidate is among the share whose forked runs are repeated; it depends on nothing else."""
    return int(content_id("repeated", feature_id, deleter_name)[:8], 16) < share * 16**8


def _prove_or_stub(bench: Workbench, feature: Feature, deleter_name: str, solver: Solver | None) -> Proof:
    proof = _prove_with(bench, feature, deleter_name, solver)
    for next_deleter in _instead(bench, feature, deleter_name):
        if proof.rejection is None or proof.rejection.reason not in REASONS_FOR_STUB:
            break
        if next_deleter == "remove_and_stub" and proof.rejection.reason != USED_ELSEWHERE:
            continue
        other = _prove_with(bench, feature, next_deleter, solver)
        is_refused = other.rejection is not None and next_deleter == "stub"
        proof = _with_costs(_refused_as_stub(proof, other) if is_refused else other, proof, other)
    return proof


def _refused_as_stub(proof: Proof, stub: Proof) -> Proof:
    """A refused removal, with the reason why a stub is refused as well."""
    assert proof.rejection is not None
    assert stub.rejection is not None
    if stub.rejection.worker_outcome is not WorkerOutcome.OK:
        return proof  # it may become a task another time
    reason = {"stub": f"{stub.rejection.reason}: {stub.rejection.detail}"}
    return replace(proof, rejection=replace(proof.rejection, evidence={**proof.rejection.evidence, **reason}))


def _with_costs(outcome: Proof, *tries: Proof) -> Proof:
    """An outcome that cost what all tries did."""
    return replace(outcome, cpu_s=sum(each.cpu_s for each in tries), wall_s=sum(each.wall_s for each in tries))


def _instead(bench: Workbench, feature: Feature, deleter_name: str) -> list[str]:
    """Deleters that leave more in place, to try where other code needs the names of a feature."""
    offered = bench.editor.deleters
    if deleter_name == "remove" and len(feature.symbols) > 1 and "remove_and_stub" in offered:
        return ["remove_and_stub", "stub"]
    return ["stub"] if deleter_name in REMOVALS else []


def _prove_with(bench: Workbench, feature: Feature, deleter_name: str, solver: Solver | None) -> Proof:
    """Try one feature with one deleter; and again without tests that fail with the gold patch, or pass without the
    feature, if it has others."""
    proof = _prove_once(bench, feature, deleter_name, solver)
    unfit = (_failing_with_gold(proof.verdicts) | _passing_without(proof.verdicts)) & bench.trusted
    if not unfit or unfit.issuperset(feature.tests):
        return proof
    with bench.without(unfit):
        again = _prove_once(bench, feature, deleter_name, solver)
    return _with_costs(again, proof, again)


def _failing_with_gold(verdicts: Sequence[Verdict]) -> frozenset[str]:
    """Tests that fail on the restored tree, where only the files of some tests are run."""
    rows = [v for v in verdicts if v.gate == GoldPasses.name and v.worker_outcome is WorkerOutcome.OK]
    return frozenset(test for row in rows for test in row.statuses)


def _passing_without(verdicts: Sequence[Verdict]) -> frozenset[str]:
    """FAIL_TO_PASS tests that passed in one of several runs without the feature."""
    rows = [v for v in verdicts if v.gate == FailToPassFails.name]
    return frozenset(test for row in rows for test, status in row.statuses.items() if status is Status.PASSED)


def _prove_once(bench: Workbench, feature: Feature, deleter_name: str, solver: Solver | None) -> Proof:
    before = bench.spent
    verdicts: list[Verdict] = []
    try:
        with step("plan"):
            plan = _plan(bench, feature, deleter_name)
        with step("split"):
            split = split_tests(plan)
        with step("build"):
            candidate = build_candidate(split)
        with candidate.trees.one_workspace():
            _pass_gates(candidate, verdicts)
        kit = _make_kit(candidate, verdicts)
        if not kit.calls:
            statement = without_calls(candidate.task.problem_statement)
            candidate = replace(candidate, task=replace(candidate.task, problem_statement=statement))
        if solver is not None:
            _require_solved(candidate, kit, solver, verdicts)
    except (Rejected, DeletionRefused) as refusal:
        rejection = _rejection(bench, feature, deleter_name, refusal, verdicts)
        rows = tuple(replace(verdict, instance_id=rejection.subject) for verdict in verdicts)
        return Proof(rejection=rejection, verdicts=rows, **bench.spent.since(before)._asdict())
    cost = bench.spent.since(before)
    certificate = certify(candidate, verdicts, cost)
    return Proof(task=candidate.task, certificate=certificate, kit=kit, **cost._asdict())


def _plan(bench: Workbench, feature: Feature, deleter_name: str) -> PlannedDeletion:
    """Plan a deletion; again without what its FAIL_TO_PASS tests would not check, if that is a part."""
    try:
        return plan_deletion(bench, feature, deleter_name, require_checked)
    except Unchecked as found:
        part = feature_of_checked(bench, feature, found.checked)
        if not part.tests:
            raise
        return plan_deletion(bench, part, deleter_name, require_statement)


def _pass_gates(candidate: Candidate, verdicts: list[Verdict]) -> None:
    """Check all gates and append their rows to ``verdicts``. Raises :class:`Rejected` at the first that does not
    pass."""
    for gate in GATES:
        check_deadline()
        timer = _Timer()
        with step(gate.name):
            rows = timer.charge(candidate.bench, gate.check(candidate).verdicts)
        verdicts += rows
        failed = next((row for row in rows if row.outcome is not GateOutcome.PASSED), None)
        if failed is not None:
            raise Rejected(f"{failed.gate}: {failed.detail}", reason=failed.reason)


def _make_kit(candidate: Candidate, verdicts: list[Verdict]) -> GradingKit:
    """Make the grading kit of a candidate that passed every gate, and append its verdict row to ``verdicts``."""
    check_deadline()
    timer = _Timer()
    with step(CALLS_RECORDED.name):
        kit, row = CALLS_RECORDED.make(candidate)
    verdicts += timer.charge(candidate.bench, [row])
    if row.outcome is not GateOutcome.PASSED:
        raise Rejected(f"{row.gate}: {row.detail}", reason=row.reason)
    return kit


def _require_solved(candidate: Candidate, kit: GradingKit, solver: Solver, verdicts: list[Verdict]) -> None:
    """Let a model try the task, and append the verdict row. Raises :class:`Rejected` if it does not solve it."""
    timer = _Timer()
    with step(SOLVED_BY_MODEL.name):
        row = solver(candidate, kit)
    verdicts += timer.charge(candidate.bench, [row])
    if row.outcome is not GateOutcome.PASSED:
        raise Rejected(f"{row.gate}: {row.detail}", reason=row.reason)


class _Timer:
    """Measures the cost of a check that makes no test run; other checks have the cost of their runs."""

    def __init__(self) -> None:
        self.began, self.cpu = time.monotonic(), time.thread_time()

    def charge(self, bench: Workbench, rows: Sequence[Verdict]) -> list[Verdict]:
        """The rows; if none has a cost yet, the first one gets the time since this timer was created."""
        if not rows or any(row.wall_s for row in rows):
            return list(rows)
        cost = Cost(round(time.thread_time() - self.cpu, 3), round(time.monotonic() - self.began, 3))
        bench.spent = bench.spent.plus(*cost)
        return [replace(rows[0], cpu_s=cost.cpu_s, wall_s=cost.wall_s), *rows[1:]]


def candidate_id(feature_id: str, deleter: str, visibility: Visibility) -> str:
    """The id of a refused candidate in its rejection and verdict rows, as it has no task id."""
    return content_id("candidate", feature_id, deleter, visibility)


def _rejection(
    bench: Workbench,
    feature: Feature,
    deleter_name: str,
    refusal: Rejected | DeletionRefused,
    verdicts: Sequence[Verdict],
) -> Rejection:
    run = refusal.run if isinstance(refusal, Rejected) else None
    undecided = any(v.outcome is GateOutcome.UNDECIDED for v in verdicts)
    worker = run.worker if run is not None else (WorkerOutcome.INFRA_ERROR if undecided else WorkerOutcome.OK)
    return Rejection(
        repo=bench.repo.repo,
        stage="delete" if isinstance(refusal, DeletionRefused) else "gate",
        subject=candidate_id(feature.feature_id, deleter_name, bench.settings.visibility),
        reason=refusal.reason,
        detail=str(refusal),
        kind=feature.kind,
        symbols=feature.symbols,
        worker_outcome=worker,
        evidence={"deleter": deleter_name, "feature_id": feature.feature_id},
    )
