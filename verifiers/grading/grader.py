"""The grader: runs a solution's diff in fresh sandboxes and computes its reward.

There are up to four runs, in separate sandboxes, so that a solution cannot recognise them or compare their results:
the tests, with hidden ones restored, canaries (tests that must fail) among them, and copies of hidden tests that must
fail after what they do; the lifted tests, which report
values and contain nothing of what is expected; those hidden tests that cannot be lifted, with wrong expectations
(mirrored), which pass only if a solution makes every test pass; and the recorded calls, of which only the inputs are in
the sandbox.
"""

from __future__ import annotations

import itertools
import random
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from excise.deleters.patches.git_patches import touched
from excise.errors import PatchError, SandboxError
from excise.protocols import GradedRun, GradingMode
from excise.types import Grade, GradingKit, Status, Task, WorkerOutcome, joined, path_of
from excise.verifiers.grading.failing_copies import FailingCopies, drawn_copies, path_beside
from excise.verifiers.grading.graded_runs import graded_run, mode_of
from excise.verifiers.grading.intake import Intake, accepted_changes, storable
from excise.verifiers.grading.kit import call_recording, mirrored_files, replay
from excise.verifiers.grading.lifting import judge_solution
from excise.verifiers.workbench import Edits, Workbench

CANARY_PLACES = (0.0, 1.0, 0.5, 0.25, 0.75, 0.9)
"""Positions of the canaries among the tests, as fractions: 0 is before all tests, 1 after them."""
MAX_RERUN = 3
"""Maximum number of failing PASS_TO_PASS tests that are run once more; if more fail, none is."""
TAMPERED = frozenset({"canary_passed", "mirror_passed", "runner_changed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingConditions:
    """How an environment's tests are run for grading, determined by running the untouched tests."""

    mode: GradingMode
    """The strictest mode in which the untouched tests pass."""
    unfit: tuple[str, ...] = ()
    """Tests that pass untouched but not in this mode; they are not graded."""
    changed: tuple[str, ...] = ()
    """Parts of the test runner that the untouched project itself changes, so that a change is no forgery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeRequest:
    """A solution to grade."""

    task: Task
    """The task."""
    kit: GradingKit | None
    """The task's grading kit; without one, recorded calls and mirrored tests are left out."""
    diff: str
    """The solution: a diff against the shipped tree."""
    conditions: GradingConditions
    """How the environment's tests are run."""
    seed: str = ""
    """Seed of the names and positions of canaries; by default they are random and unpredictable."""
    fail_fast: bool = False
    """Whether to run the FAIL_TO_PASS tests alone first. If one fails, grading stops there: other tests and the calls
    are not run. A solution that passes them is graded as usual."""
    untouched: Callable[[Sequence[str]], Collection[str]] | None = None
    """Tells which of a task's tests do not pass untouched when they are run, and no others
    (:func:`failing_untouched`). Only asked if some of them fail; these are not graded then."""


def find_conditions(bench: Workbench, ids: Sequence[str]) -> GradingConditions:
    """Find the strictest mode in which the untouched tests pass, by running them.

    Raises :class:`SandboxError` if they cannot be run, or none of them passes.
    """
    strict = mode_of(bench)
    best: GradingConditions | None = None
    detail = ""
    choices = itertools.product(
        (True, False) if strict.sealed else (False,), (True, False) if strict.strict else (False,)
    )
    for sealed_files, is_strict in choices:
        mode = replace(strict, strict=is_strict, sealed=sealed_files)
        done = _untouched_run(bench, ids, mode)
        failing = _not_passed(done, ids)
        detail = done.run.detail or detail
        if best is None or len(failing) < len(best.unfit):
            best = GradingConditions(mode=mode, unfit=tuple(failing), changed=done.changed)
        if not failing:
            break
    assert best is not None
    if ids and len(best.unfit) == len(set(ids)):
        raise SandboxError(f"The untouched tests cannot be graded: none of {len(best.unfit)} passes. {detail}".strip())
    return best


def failing_untouched(bench: Workbench, ids: Sequence[str], mode: GradingMode) -> tuple[str, ...]:
    """Those of the tests that do not pass untouched when they are run in a mode, and no others: in two runs.

    Some need tests that are not among them, such as a block of a document that ends the skipping of others. Raises
    :class:`SandboxError` if the tests do not come to their end, or most of them fail.
    """
    failing = set(ids)
    for _ in range(2):
        done = _untouched_run(bench, ids, mode)
        failing &= set(_not_passed(done, ids))
        if done.run.worker is not WorkerOutcome.OK or not done.run.finished or 2 * len(failing) > len(set(ids)):
            raise SandboxError(f"The untouched tests cannot be graded: {done.run.worker} {done.run.detail}".strip())
        if not failing:
            break
    return tuple(test for test in ids if test in failing)


def _untouched_run(bench: Workbench, ids: Sequence[str], mode: GradingMode) -> GradedRun:
    sealed = _sealed(bench, ids, mode)
    done = graded_run(bench, dict.fromkeys(sealed, b""), ids, mode, sealed=sealed)
    if done.run.worker not in {WorkerOutcome.OK, WorkerOutcome.TIMEOUT, WorkerOutcome.OOM}:
        raise SandboxError(f"The untouched tests cannot be graded: {done.run.worker} {done.run.detail}")
    return done


def grade(bench: Workbench, request: GradeRequest) -> Grade:
    """Grade a solution. No solution can cause an exception."""
    began = time.monotonic()
    task = request.task
    try:
        shipped = bench.edits_of(task.deletion_patch)
        intake = accepted_changes(bench, task, request.diff, shipped)
    except PatchError as error:
        return ungraded(task, error.reason, str(error), decided=True, wall_s=time.monotonic() - began)
    try:
        graded = _GradingRun(bench, request, {**shipped, **intake.edits}).grade()
    except (SandboxError, OSError, MemoryError) as error:
        return ungraded(task, "infra_error", str(error), wall_s=time.monotonic() - began)
    return replace(graded, ignored=_storable_paths(intake), wall_s=round(time.monotonic() - began, 3))


def supports_fail_fast(bench: Workbench, task: Task, conditions: GradingConditions) -> bool:
    """Whether the FAIL_TO_PASS tests pass with the gold patch when no other tests run before them."""
    shipped = bench.edits_of(task.deletion_patch)
    solution = {**shipped, **accepted_changes(bench, task, task.patch, shipped).edits}
    request = GradeRequest(task=task, kit=None, diff=task.patch, conditions=conditions)
    return not _GradingRun(bench, request, solution).failing_alone()


def ungraded(task: Task, reason: str, detail: str, *, decided: bool = False, wall_s: float = 0.0) -> Grade:
    """The grade of a diff that could not be run; ``decided`` if the diff is the cause, not the infrastructure."""
    return Grade(
        instance_id=task.instance_id,
        worker_outcome=WorkerOutcome.OK if decided else WorkerOutcome.INFRA_ERROR,
        decided=decided,
        reward=0.0,
        reward_tests=0.0,
        reward_calls=None,
        partial=0.0,
        reasons=(reason,),
        evidence={"error": detail[:500]},
        wall_s=round(wall_s, 3),
    )


def _storable_paths(intake: Intake) -> dict[str, str]:
    """Path to reason of the ignored changes: the first 200, as valid UTF-8."""
    return {storable(path): reason for path, reason in sorted(intake.ignored.items())[:200]}


def _not_passed(done: GradedRun, ids: Sequence[str]) -> list[str]:
    statuses = done.run.statuses()
    return [test for test in ids if statuses.get(test) is not Status.PASSED]


def _canary_passed(done: GradedRun, canaries: Collection[str]) -> bool:
    """Whether a canary, which must fail, did not."""
    statuses = done.run.statuses()
    return any(statuses.get(test) in {Status.PASSED, Status.XFAIL, Status.SKIPPED} for test in canaries)


def _is_intact(done: GradedRun, canaries: Collection[str]) -> bool:
    """Whether a run finished and all of its canaries failed."""
    return done.run.worker is WorkerOutcome.OK and done.run.finished and not _canary_passed(done, canaries)


def _sealed(bench: Workbench, ids: Sequence[str], mode: GradingMode) -> dict[str, str]:
    """Path to text of the test files that the mode loads from memory instead of from the tree."""
    if not mode.sealed:
        return {}
    paths = sorted({path_of(test) for test in ids})
    found = {}
    for path, data in bench.read(paths).items():
        if bench.codebase.is_test(path) and path.endswith(bench.language.suffixes):
            try:
                found[path] = data.decode()
            except UnicodeDecodeError:
                continue
    return found


class _GradingRun:
    """Makes the runs of one solution and computes its grade."""

    def __init__(self, bench: Workbench, request: GradeRequest, solution: Edits) -> None:
        self.bench = bench
        self.task = request.task
        self.kit = request.kit or GradingKit(instance_id=request.task.instance_id)
        self.conditions = request.conditions
        self.fail_fast = request.fail_fast
        self.untouched = request.untouched
        self.solution = solution
        self.rng = random.Random(request.seed or secrets.token_hex(16))
        self.cpu_s = 0.0
        self.reasons: list[str] = []
        self.evidence: dict[str, str] = {}

    def failing_alone(self) -> list[str]:
        """FAIL_TO_PASS tests that do not pass when they are run without others."""
        ids = [test for test in self.task.fail_to_pass if test not in self.conditions.unfit]
        return _not_passed(self._tests(ids)[0], ids)

    def grade(self) -> Grade:
        """Make all runs and compute the grade from their results."""
        fail_fast = self.fail_fast
        unfit = set(self.conditions.unfit)
        fail_to_pass = [test for test in self.task.fail_to_pass if test not in {*unfit, *self.kit.uncounted}]
        pass_to_pass = [test for test in self.task.pass_to_pass if test not in unfit]
        uncounted = [test for test in self.kit.uncounted if test not in unfit]
        every = [*fail_to_pass, *uncounted, *pass_to_pass]
        tests, canaries = self._tests(fail_to_pass if fail_fast and fail_to_pass else every)
        if fail_fast and not _not_passed(tests, fail_to_pass):
            fail_fast = False
            tests, canaries = self._tests(every)
        ids = fail_to_pass if fail_fast else every
        others_failed = [] if fail_fast else _not_passed(tests, uncounted)
        worker = tests.run.worker
        statuses = tests.run.statuses()
        failed = _not_passed(tests, fail_to_pass)
        broken = [] if fail_fast else self._broken(tests, canaries, pass_to_pass)
        if broken:
            unfit_alone = self._unfit_alone(every).intersection(pass_to_pass)
            broken = [test for test in broken if test not in unfit_alone]
            unfit |= unfit_alone
            ids = [test for test in ids if test not in unfit_alone]
        earned = len(failed) < len(fail_to_pass) and not (
            fail_fast or broken
        )  # others may fail: `partial` counts these
        mirror, lifted = _Mirror(), _Lifted()
        if earned:  # a reward of 0 needs no further check
            mirror, lifted = self._mirror(failed), self._lifted(failed)
        failed += lifted.failed
        outcomes = {worker, mirror.worker, *lifted.workers}
        decided = bool(fail_to_pass) and not outcomes & {WorkerOutcome.INFRA_ERROR, WorkerOutcome.KILLED}
        self._add_reasons(tests, [*failed, *others_failed], broken, canaries, mirror)
        tampered = bool(TAMPERED & set(self.reasons))
        good = decided and not (failed or others_failed or broken or tampered) and tests.run.finished
        calls = _Calls(None, 0, 0) if fail_fast else self._calls()
        if not fail_to_pass:
            self.reasons.append("nothing_to_grade")
        if unfit:
            self.evidence["left_out"] = f"{len(unfit)} tests do not pass untouched under the grader's conditions"
        ok = good and (calls.reward is None or calls.reward == 1.0)
        share = (len(fail_to_pass) - len(failed)) / len(fail_to_pass) if fail_to_pass else 0.0
        return Grade(
            instance_id=self.task.instance_id,
            worker_outcome=worker,
            decided=decided,
            reward=float(ok),
            reward_tests=float(good),
            reward_calls=calls.reward,
            partial=0.0 if broken or tampered or not decided else round(share, 6),
            reasons=tuple(self.reasons),
            statuses={test: statuses.get(test, Status.MISSING) for test in [*fail_to_pass, *uncounted, *broken]},
            num_passed=len(ids) - len(failed) - len(others_failed) - len(broken),
            num_tests=len(ids),
            canaries={test: statuses.get(test, Status.MISSING) for test in canaries},
            num_mirrored=mirror.count,
            mirror_passed=mirror.passed,
            num_lifted=lifted.count,
            lifted_failed=lifted.failed,
            num_calls=calls.count,
            num_calls_equal=calls.equal,
            reward_held_out=float(all(calls.held_out)) if calls.held_out else None,
            reward_uncounted=float(not others_failed) if uncounted and not fail_fast else None,
            num_held_out=len(calls.held_out),
            num_held_out_equal=sum(calls.held_out),
            evidence=self.evidence,
            cpu_s=round(self.cpu_s, 3),
        )

    # -------------------------------------------------------------------------------------- runs
    def _tests(self, ids: Sequence[str]) -> tuple[GradedRun, dict[str, float]]:
        """Run the task's tests ``ids`` with canaries among them and failing copies of some of the FAIL_TO_PASS tests
        after them; see :meth:`_with_canaries`."""
        hidden = set(self.task.fail_to_pass)
        copies = drawn_copies(self.bench, [test for test in ids if test in hidden], self.kit.copied, self.rng)
        return self._with_canaries(ids, {}, _sealed(self.bench, ids, self.conditions.mode), copies)

    def _with_canaries(
        self,
        ids: Sequence[str],
        files: Edits,
        sealed: dict[str, str],
        copies: FailingCopies | None = None,
    ) -> tuple[GradedRun, dict[str, float]]:
        """Run ``ids`` with canaries among them. Returns the run, and the canaries' ids with their positions.

        ``files`` replace test files in the tree; ``sealed`` are test files that are loaded from memory. ``copies`` run
        after all other tests, where they disturb none, and must fail, too.
        """
        first = path_of(self.task.fail_to_pass[0])
        beside = self.bench.read([first]).get(first, b"")
        name, canaries = self.bench.language.grading.canaries(self.rng.randbytes(8).hex(), beside)
        path = path_beside(first, name)
        order = list(canaries.tests)
        self.rng.shuffle(order)
        places = {joined(path, test): place for test, place in zip(order, CANARY_PLACES, strict=False)}
        copied = copies.ids if copies is not None else []
        edits: dict[str, bytes | None] = {**self._restored(), **files, **dict.fromkeys(sealed, b"")}
        for where, made in ((path, canaries), *((copies,) if copies is not None else ())):
            edits[where] = b"" if self.conditions.mode.sealed else made.text.encode()
            if self.conditions.mode.sealed:
                sealed[where] = made.text
        mode, every = self.conditions.mode, [*ids, *copied]
        done = graded_run(self.bench, edits, every, mode, canaries=places, sealed=sealed, timed=ids)
        self.cpu_s += done.run.cpu_s
        return done, places | dict.fromkeys(copied, 1.0)

    def _unfit_alone(self, ids: Sequence[str]) -> set[str]:
        """Those of the tests that do not pass untouched beside the others; none if that cannot be told."""
        try:
            return set(self.untouched(ids)) if self.untouched is not None else set()
        except SandboxError:
            return set()

    def _broken(self, tests: GradedRun, canaries: Collection[str], pass_to_pass: Sequence[str]) -> list[str]:
        """PASS_TO_PASS tests that fail. Up to :data:`MAX_RERUN` are run once more, alone, because tests with time
        limits occasionally fail on a busy machine."""
        broken = _not_passed(tests, pass_to_pass)
        if not 0 < len(broken) <= MAX_RERUN or not _is_intact(tests, canaries):
            return broken
        again, others = self._tests(broken)
        still = _not_passed(again, broken) if _is_intact(again, others) else broken
        if len(still) < len(broken):
            self.evidence["passed_when_run_again"] = ", ".join(test for test in broken if test not in still)
        return still

    def _mirror(self, failed: Sequence[str]) -> _Mirror:
        """Run those hidden tests that passed again, with wrong expectations and with canaries among them."""
        ids = [test for test in self.kit.mirrored if test not in {*self.conditions.unfit, *failed}]
        if not ids:
            return _Mirror()
        seed = self.rng.choice(list(self.bench.language.grading.mirror_seeds))
        files = mirrored_files(self.bench, ids, seed)
        sealed = {}
        if self.conditions.mode.sealed:
            sealed = {path: data.decode() for path, data in files.items()}
        done, _ = self._with_canaries(ids, dict(files), sealed)
        statuses = done.run.statuses()
        passed = tuple(test for test in ids if statuses.get(test) is Status.PASSED)
        return _Mirror(done.run.worker, len(ids), passed)

    def _lifted(self, failed: Sequence[str]) -> _Lifted:
        """Run those lifted tests that passed again, without their expectations, and compare what they report."""
        tests = [each for each in self.kit.lifted if each.test not in {*self.conditions.unfit, *failed}]
        if not tests:
            return _Lifted()
        judged = judge_solution(self.bench, self.task, self.solution, tests, self.conditions.mode, self.kit.depending)
        self.cpu_s += sum(done.run.cpu_s for done in judged.runs)
        if judged.failed:
            self.reasons.append("lifted_differ")
            self.evidence["lifted_differ"] = ", ".join(judged.failed[:5])
        return _Lifted(tuple(done.run.worker for done in judged.runs), len(tests), judged.failed)

    def _restored(self) -> dict[str, bytes | None]:
        """The solution's edits without those to files of the test patch, which stay as in the base tree."""
        restored: dict[str, bytes | None] = dict(self.solution)
        for path in touched(self.task.test_patch):
            restored.pop(path, None)
        return restored

    def _calls(self) -> _Calls:
        """Replay the recorded calls on the solution and compare their outcomes."""
        kit = self.kit
        if not kit.calls:
            return _Calls(None, 0, 0)
        every = replay(self.bench, call_recording(kit), self.solution)
        answers, others = every[: len(kit.calls)], every[len(kit.calls) :]
        same, statement = self.bench.language.grading.same_outcome, self.task.problem_statement
        differing = [
            call.call
            for call, answer in zip(kit.calls, answers, strict=True)
            if not same(call.outcome, answer, statement)
        ]
        if differing:
            self.reasons.append("calls_differ")
            self.evidence["first_differing_call"] = differing[0][:300]
        reward = 0.0 if differing else 1.0 if kit.telling else None
        equal = [same(call.outcome, one, statement) for call, one in zip(kit.held_out, others, strict=True)]
        return _Calls(reward, len(kit.calls), len(kit.calls) - len(differing), tuple(equal))

    # ----------------------------------------------------------------------------------- verdicts
    def _add_reasons(
        self, tests: GradedRun, failed: list[str], broken: list[str], canaries: Mapping[str, float], mirror: _Mirror
    ) -> None:
        changed = sorted(set(tests.changed) - set(self.conditions.changed))
        found = {
            "fail_to_pass": bool(failed),
            "pass_to_pass": bool(broken),
            "not_finished": not tests.run.finished,
            "canary_passed": _canary_passed(tests, canaries),
            "mirror_passed": bool(mirror.passed),
            "runner_changed": bool(changed),
        }
        self.reasons += [reason for reason, holds in found.items() if holds]
        if changed:
            self.evidence["runner_changed"] = ", ".join(changed[:5])
        if tests.run.detail:
            self.evidence["runner"] = tests.run.detail[:300]


@dataclass(frozen=True, slots=True)
class _Mirror:
    """Result of the run with mirrored tests."""

    worker: WorkerOutcome = WorkerOutcome.OK
    """Whether the run happened."""
    count: int = 0
    """Number of mirrored tests that were run."""
    passed: tuple[str, ...] = ()
    """Ids of the mirrored tests that passed, which shows a forged report."""


@dataclass(frozen=True, slots=True)
class _Lifted:
    """Result of the lifted tests."""

    workers: tuple[WorkerOutcome, ...] = ()
    """Whether the runs happened."""
    count: int = 0
    """Number of lifted tests that were run."""
    failed: tuple[str, ...] = ()
    """Ids of those whose reported values are wrong."""


@dataclass(frozen=True, slots=True)
class _Calls:
    """Result of replaying the recorded calls."""

    reward: float | None
    """1 if all outcomes are equal, else 0; ``None`` if the calls cannot tell a solution from a stub."""
    count: int
    """Number of calls."""
    equal: int
    """Number of calls with equal outcomes."""
    held_out: tuple[bool, ...] = ()
    """Whether each held-out call had the original's result."""
