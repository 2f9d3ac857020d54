"""From a proposed feature to a certified task, or to a rejection that says why.

Coverage predicted which tests need the feature. Running the shipped tree shows what it missed: tests that fail
join the hidden ones (they need the feature in a way no line shows), and if they become too many the deletion is
shrunk by delta-debugging to its largest part that leaves everything else green.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from excise.deleters.all_deleters import get as get_deleter
from excise.deleters.delta_debugging import largest_clean
from excise.deleters.patches.git_patches import unified
from excise.deleters.statement.problem_statement import write_statement
from excise.errors import DeletionRefused, ExciseError
from excise.protocols import Deleter
from excise.system.deadline import check_deadline
from excise.types import (
    Certificate,
    Deletion,
    Difficulty,
    Feature,
    GradingKit,
    Outcome,
    Rejection,
    Status,
    Task,
    TestRun,
    Verdict,
    Visibility,
    Worker,
    content_id,
)
from excise.verifiers.candidate import Candidate, exceptions
from excise.verifiers.certificate import certify
from excise.verifiers.gates.all_gates import GATES
from excise.verifiers.gates.no_leaks import problem_of, reason_of, twins_of
from excise.verifiers.workbench import QUICK_S, Cost, Workbench

WIDEN_ROUNDS = 3
SHRINK_RUNS = 8
NAMED_ELSEWHERE = frozenset({"breaks_other_tests", "import_time_reference"})
"""Reasons to refuse a removal that go away where the names stay: something else needs these, not what they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What became of one candidate."""

    task: Task | None = None
    """The task, if all gates passed."""
    certificate: Certificate | None = None
    """Its evidence."""
    kit: GradingKit | None = None
    """What graders need beside it."""
    rejection: Rejection | None = None
    """Why not, otherwise."""
    verdicts: tuple[Verdict, ...] = ()
    """Verdict rows of a refused candidate; their id is the rejection's subject."""
    cpu_s: float = 0.0
    """CPU seconds spent."""
    wall_s: float = 0.0
    """Wall seconds spent."""


class Rejected(ExciseError):
    """A candidate is refused; carries the run that decided it."""

    def __init__(self, message: str, *, reason: str | None = None, run: TestRun | None = None) -> None:
        super().__init__(message, reason=reason)
        self.run = run


def prove(bench: Workbench, feature: Feature, deleter_name: str) -> Proof:
    """Try one feature with one deleter; what cannot be removed is tried as a stub, a lower rung of the ladder.

    Raises only for failures of the infrastructure.
    """
    proof = _prove(bench, feature, deleter_name)
    if deleter_name != "remove" or proof.rejection is None or proof.rejection.reason not in NAMED_ELSEWHERE:
        return proof
    lower = _prove(bench, feature, "stub")
    answer = proof if lower.task is None else lower
    return replace(answer, cpu_s=proof.cpu_s + lower.cpu_s, wall_s=proof.wall_s + lower.wall_s)


def _prove(bench: Workbench, feature: Feature, deleter_name: str) -> Proof:
    before = bench.spent
    verdicts: list[Verdict] = []
    try:
        candidate = _settle(bench, feature, deleter_name)
        _split(candidate)
        candidate.statement, candidate.interface = write_statement(
            bench.codebase,
            candidate.deletion,
            bench.repo,
            candidate.fail_to_pass,
            bench.settings.visibility,
            documents=bench.documents,
        )
        candidate.task = build_task(candidate)
        candidate.instance_id = candidate.task.instance_id
        for report in run_gates(candidate):
            verdicts += report
            failed = [v for v in report if v.outcome is not Outcome.PASSED]
            if failed:
                worst = failed[0]
                raise Rejected(f"{worst.gate}: {worst.detail}", reason=worst.reason)
    except (Rejected, DeletionRefused) as refusal:
        rejection = _refused(bench, feature, deleter_name, refusal, verdicts)
        rows = tuple(replace(verdict, instance_id=rejection.subject) for verdict in verdicts)
        return Proof(rejection=rejection, verdicts=rows, **bench.spent.since(before)._asdict())
    cost = bench.spent.since(before)
    certificate = certify(candidate, verdicts, cost)
    return Proof(task=candidate.task, certificate=certificate, kit=candidate.kit, **cost._asdict())


def run_gates(candidate: Candidate) -> Iterator[list[Verdict]]:
    """The gates in order of cost, each one's verdict rows."""
    for gate in GATES:
        check_deadline()
        began, cpu = time.monotonic(), time.thread_time()
        rows = list(gate.check(candidate).verdicts)
        if rows and not any(row.wall_s for row in rows):  # it made no run of its own: what it cost here
            cost = Cost(round(time.thread_time() - cpu, 3), round(time.monotonic() - began, 3))
            rows[0] = replace(rows[0], cpu_s=cost.cpu_s, wall_s=cost.wall_s)
            candidate.bench.spent = candidate.bench.spent.plus(*cost)
        yield rows


def candidate_id(feature_id: str, deleter: str, visibility: Visibility) -> str:
    """Id of a candidate that is refused: in its rejection and in its verdicts, which are then of no task."""
    return content_id("candidate", feature_id, deleter, visibility)


def _refused(
    bench: Workbench,
    feature: Feature,
    deleter_name: str,
    refusal: ExciseError,
    verdicts: list[Verdict],
) -> Rejection:
    run = getattr(refusal, "run", None)
    undecided = any(v.outcome is Outcome.UNDECIDED for v in verdicts)
    worker = run.worker if run is not None else (Worker.INFRA_ERROR if undecided else Worker.OK)
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


# ------------------------------------------------------------------------------------ the deletion
def _settle(bench: Workbench, feature: Feature, deleter_name: str) -> Candidate:
    """A deletion after which every visible trusted test passes that does not need the feature."""
    deleter = get_deleter(deleter_name)
    candidate = _take_out(bench, deleter, feature, _whole_functions(bench, feature.tests))
    if twins := twins_of(candidate):
        raise Rejected(problem_of(twins), reason=reason_of(twins))
    limit = int(len(bench.trusted) * bench.settings.max_f2p_share)
    for _ in range(WIDEN_ROUNDS):
        run, failing = _failing(candidate)
        if not failing:
            return candidate
        wider = _whole_functions(bench, [*candidate.hidden, *candidate.exposed, *failing])
        if len(wider) > limit or len(failing) > 2 * len(feature.tests) + 10:
            return _shrink(candidate, feature, failing, run)
        only = frozenset(candidate.deletion.removed) & set(feature.symbols)
        candidate = _take_out(bench, deleter, feature, wider, only=only)
    run, failing = _failing(candidate)
    return _shrink(candidate, feature, failing, run) if failing else candidate


def _take_out(
    bench: Workbench,
    deleter: Deleter,
    feature: Feature,
    hide: frozenset[str],
    *,
    only: frozenset[str] | None = None,
) -> Candidate:
    """A candidate, with its hidden tests as the runner names them."""
    deletion = deleter.delete(bench.codebase, feature, only=only, hide=hide)
    if bench.settings.visibility is Visibility.TESTS:
        deletion = with_tests(deletion)
    hidden = _whole_functions(bench, deletion.hidden)
    deletion = replace(deletion, hidden=tuple(sorted(hidden)))
    return Candidate(
        bench=bench,
        deletion=deletion,
        instance_id=deletion.deletion_id,
        trusted=bench.trusted,
        exposed=(hide & bench.trusted) - hidden,
    )


def with_tests(deletion: Deletion) -> Deletion:
    """The same deletion with all tests left in sight: those that were to be hidden fail there."""
    parts = deletion.deleter, deletion.deleter_version, deletion.source_patch
    return replace(deletion, deletion_id=content_id("deletion", *parts, ""), hide_patch="", hidden=())


def _whole_functions(bench: Workbench, tests: Iterable[str]) -> frozenset[str]:
    """All parameters of the test functions among ``tests``: a function is hidden whole or not at all.

    The id of a class stands for all of its tests.
    """
    stems = {test.partition("[")[0] for test in tests}

    def is_meant(test: str) -> bool:
        parts = test.partition("[")[0].split("::")
        return any("::".join(parts[:end]) in stems for end in range(2, len(parts) + 1))

    return frozenset(test for test in bench.baseline.durations if is_meant(test) or test.partition("[")[0] in stems)


def _failing(candidate: Candidate) -> tuple[TestRun, list[str]]:
    """Trusted visible tests that do not pass on the shipped tree: near ones first, where the suite is long."""
    bench = candidate.bench
    if bench.baseline.suite_s() > QUICK_S:
        near = bench.near(candidate.hidden, list(candidate.edits("shipped")))
        if near:
            run = candidate.run("shipped", ids=near)
            failing = [t for t in exceptions(run, near) if t not in candidate.hidden | candidate.exposed]
            if failing or run.worker is not Worker.OK:
                return _sound(run), failing
        _need_something(candidate)
    run = _sound(candidate.run("shipped"))
    return run, [t for t in exceptions(run, sorted(bench.trusted)) if t not in candidate.hidden | candidate.exposed]


def _need_something(candidate: Candidate) -> None:
    """Before a long run: do the hidden tests fail without the code at all?"""
    graded = _graded(candidate)
    if not exceptions(candidate.run("deleted", ids=graded), graded):
        raise Rejected("No trusted test needs this code.", reason="no_fail_to_pass")


def _graded(candidate: Candidate) -> list[str]:
    """What may depend on the feature. Raises :class:`Rejected` unless a grade may ask for some of it."""
    graded = candidate.graded
    if not graded:
        raise Rejected("No trusted test needs this code.", reason="no_fail_to_pass")
    if not any(candidate.counts(test) for test in graded):
        raise Rejected(
            f"Only tests in files that a solution may change need this code, first {graded[0]}.",
            reason="only_uncounted_tests",
        )
    return graded


def _sound(run: TestRun) -> TestRun:
    if run.worker is not Worker.OK:
        raise Rejected(
            f"The tests of the shipped tree did not end: {run.worker}.", reason=f"shipped_{run.worker}", run=run
        )
    return run


def _shrink(candidate: Candidate, feature: Feature, failing: list[str], run: TestRun) -> Candidate:
    """The largest part of the feature that leaves everything else green."""
    broken = f"{len(failing)} other tests fail without it, first {failing[0]}"
    if run.collect_errors:
        broken += f"; {run.collect_errors[0][0]} cannot be collected: {run.collect_errors[0][1]}"
    elif not run.finished:
        broken += f"; the runner gave up: {run.detail.strip()[-300:]}"
    if len(feature.symbols) < 2:
        raise Rejected(f"{broken}.", reason="breaks_other_tests", run=None)
    bench, deleter = candidate.bench, get_deleter(candidate.deletion.deleter)
    tried: dict[frozenset[str], Candidate] = {}

    def is_clean(symbols: frozenset[str]) -> bool:
        part = _part(bench, feature, symbols)
        if not symbols or not part.tests:
            return False
        try:
            hide = _whole_functions(bench, part.tests)
            tried[symbols] = _take_out(bench, deleter, part, hide, only=symbols)
            return not _failing(tried[symbols])[1]
        except (DeletionRefused, Rejected):
            return False

    best = largest_clean(feature.symbols, is_clean, SHRINK_RUNS)
    if not best or best not in tried:
        raise Rejected(f"{broken}; no part of it can go alone.", reason="breaks_other_tests", run=None)
    return tried[best]


def _part(bench: Workbench, feature: Feature, symbols: frozenset[str]) -> Feature:
    coverage = bench.prepared.coverage
    assert coverage is not None
    numbers = {n for s in symbols for n in coverage.by_symbol.get(s, ())}
    tests = tuple(sorted(t for n in numbers if (t := coverage.tests[n]) in bench.trusted))
    records = [bench.codebase.symbols()[s] for s in symbols]
    return replace(
        feature,
        symbols=tuple(sorted(symbols)),
        entry=tuple(s for s in feature.entry if s in symbols) or tuple(sorted(symbols)),
        tests=tests,
        loc=sum(s.loc for s in records),
        complexity=sum(s.complexity for s in records),
    )


# --------------------------------------------------------------------------------------- the tests
def _split(candidate: Candidate) -> None:
    """FAIL_TO_PASS: trusted tests, hidden or exposed, that fail without the code and with a stand-in that raises.

    The second condition drops tests that fail only because their file no longer imports. PASS_TO_PASS: the
    trusted tests that pass on the shipped tree, and hidden ones that pass even without the code. Both hold only
    tests in files that graders keep: in others a solution may leave a test out, or write another in its place.
    """
    bench = candidate.bench
    graded = _graded(candidate)
    if any(not patch for _, patch in candidate.deletion.stub_patches):
        raise Rejected("The code is no more than an empty stand-in for itself.", reason="empty_solution_passes")
    deleted = candidate.run("deleted", ids=graded)
    without = exceptions(deleted, graded)
    raising = candidate.run("raise", ids=graded) if candidate.deletion.stub_patches else deleted
    needing = exceptions(raising, graded)
    failing = [t for t in graded if t in without and t in needing]
    if not failing:
        raise Rejected("Every hidden test passes without the code.", reason="no_fail_to_pass", run=deleted)
    candidate.fail_to_pass = tuple(t for t in failing if candidate.counts(t))
    candidate.uncounted = tuple(t for t in failing if not candidate.counts(t))
    if not candidate.fail_to_pass:
        raise Rejected(
            f"Only tests in files that a solution may change fail without this code, first {failing[0]}.",
            reason="only_uncounted_tests",
            run=deleted,
        )
    shipped = candidate.run("shipped").statuses()
    visible = {t for t in bench.trusted if shipped.get(t) is Status.PASSED}
    indifferent = {t for t in candidate.hidden & bench.trusted if t not in without}
    candidate.pass_to_pass = tuple(sorted(t for t in (visible | indifferent) - set(failing) if candidate.counts(t)))


def build_task(candidate: Candidate) -> Task:
    """The task's record; all of it follows from the sources, the deletion and the verdicts."""
    bench, deletion = candidate.bench, candidate.deletion
    shipped = candidate.edits("shipped")
    gold, tests = reversed_patches(candidate)
    repo = bench.repo
    shipped_tree = bench.tree_hash(shipped)
    removed = [bench.codebase.symbols()[s] for s in deletion.removed if s in bench.codebase.symbols()]
    short = repo.repo.rpartition("/")[2].lower()
    return Task(
        instance_id=f"{short}__{content_id('task', repo.tree, shipped_tree, bench.settings.visibility)[:12]}",
        repo=repo.repo,
        base_commit=repo.base_commit,
        tree=repo.tree,
        shipped_tree=shipped_tree,
        language=repo.language,
        version=repo.version,
        patch=gold,
        test_patch=tests,
        deletion_patch=deletion.source_patch + deletion.hide_patch,
        problem_statement=candidate.statement,
        interface=candidate.interface,
        fail_to_pass=candidate.fail_to_pass,
        pass_to_pass=candidate.pass_to_pass,
        hidden=tuple(sorted(candidate.hidden & bench.trusted)),
        env_id=bench.prepared.environment.env_id,
        visibility=bench.settings.visibility,
        difficulty=Difficulty(
            kind=deletion.feature.kind,
            tier=deletion.feature.tier if deletion.deleter == "remove" else 0,
            loc=sum(s.loc for s in removed),
            num_files=len(candidate.edits("deleted")),
            num_symbols=len(deletion.removed),
            fan_in=deletion.feature.fan_in,
            complexity=sum(s.complexity for s in removed),
            num_f2p=len(candidate.fail_to_pass),
            num_p2p=len(candidate.pass_to_pass),
        ),
        deleter=deletion.deleter,
        feature_id=deletion.feature.feature_id,
        removed=deletion.removed,
        created_at=repo.created_at,
    )


def reversed_patches(candidate: Candidate) -> tuple[str, str]:
    """The gold patch and the test patch: from the shipped tree back to the base tree."""
    bench = candidate.bench
    result: list[str] = []
    for patch in (candidate.deletion.source_patch, candidate.deletion.hide_patch):
        edits = bench.edits_of(patch)
        base: dict[str, bytes | None] = {**dict.fromkeys(edits), **bench.read(list(edits))}
        executable = {p for p in edits if (bench.root / p).stat().st_mode & 0o100}
        result.append(unified(edits, base, dict.fromkeys(executable, 0o100755)))
    return result[0], result[1]
