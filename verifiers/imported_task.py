"""Proving a task of another tool's set: what it claims about its tests, then the gates that apply.

The workbench holds the **solved** sources, with the hidden tests: these are the untouched sources of an imported task.
Its deletion patch leads from them to the sources that the set gives agents. So everything that works on excise's own
tasks works on imported ones. The steps: match the listed tests with those that were collected, run them without the
gold patch, make the task, check every gate (a failed one does not end the check: the report is about all of them), and
record what graders need.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from excise.deleters.edits.removed_parts import lines_of_parts
from excise.deleters.patches.git_patches import unified
from excise.errors import SandboxError
from excise.extractors.features.tiers import tier_of
from excise.system.deadline import check_deadline
from excise.system.job_costs import step
from excise.types import (
    IMPORTED,
    Certificate,
    Difficulty,
    FeatureKind,
    GateOutcome,
    GradingKit,
    Symbol,
    SymbolKind,
    Task,
    Verdict,
    Visibility,
    WorkerOutcome,
    content_id,
    dotted_name,
    path_of,
)
from excise.verifiers.candidate import Candidate, Rejected, not_passing
from excise.verifiers.certificate import certify
from excise.verifiers.gates.all_gates import CALLS_RECORDED, gates_of
from excise.verifiers.gates.patches_apply import PatchesApply
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Edits, Workbench

SHOWN = 5
"""Number of tests that a message names."""
TIER_WITHOUT_DEFINITIONS = 0
"""Tier of a task that only changes lines of definitions that stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedClaims:
    """What another tool's set says about one task, with its patches as files."""

    instance_id: str
    """Id of the task."""
    problem_statement: str
    """The task description that the agent gets."""
    hints_text: str = ""
    """Hints of the set."""
    interface: str = ""
    """Names and signatures that the set gives."""
    version: str = ""
    """Version of the project; empty for the one that the sources name."""
    shipped: Mapping[str, bytes | None]
    """Path to content in the agent's tree (``None``: no such file) of every file that differs from the solved one."""
    test_paths: frozenset[str] = frozenset()
    """Those of these files that are hidden tests."""
    fail_to_pass: tuple[str, ...] | None
    """Listed tests; ``None``: the set lists none, and they are found by running the tests of ``test_paths``."""
    pass_to_pass: tuple[str, ...] | None
    """Listed tests; ``None``: the set lists none."""


@dataclass(slots=True, kw_only=True)
class ImportedProof:
    """What came of checking one imported task."""

    task: Task | None = None
    """The task, if its claims about tests hold."""
    certificate: Certificate | None = None
    """Its certificate, if every gate passed."""
    kit: GradingKit | None = None
    """Its grading kit, if every gate passed."""
    verdicts: list[Verdict] = field(default_factory=list)
    """Verdict rows of all gates."""
    reason: str = ""
    """Machine-readable reason of the first gate that did not pass; empty if all did."""
    detail: str = ""
    """A sentence about it."""
    decided: bool = True
    """Whether the infrastructure let every gate decide."""
    num_f2p: int = 0
    """Number of FAIL_TO_PASS tests that fail without the gold patch and pass with it."""
    num_p2p: int = 0
    """Number of PASS_TO_PASS tests that pass with and without it."""
    unconfirmed: dict[str, int] = field(default_factory=dict)
    """Why listed tests are not among these, to their number."""
    examples: tuple[str, ...] = ()
    """Some of the listed tests that are not among them."""


def prove_imported(bench: Workbench, claims: ImportedClaims) -> ImportedProof:
    """Check one task on a workbench of its solved sources, which has a baseline. Raises :class:`ExciseError`."""
    before, proof = bench.spent, ImportedProof()
    try:
        with step("claims"):
            candidate = _candidate(bench, claims, proof)
    except Rejected as refusal:
        proof.reason, proof.detail = refusal.reason, str(refusal)
        return proof
    with candidate.trees.one_workspace():
        _check_gates(candidate, proof)
    proof.task = candidate.task
    if proof.reason:
        return proof
    with step(CALLS_RECORDED.name):
        proof.kit, row = CALLS_RECORDED.make(candidate)
    proof.verdicts.append(row)
    proof.certificate = certify(candidate, proof.verdicts, bench.spent.since(before))
    return proof


def _check_gates(candidate: Candidate, proof: ImportedProof) -> None:
    """Append the rows of all gates; only patches that do not apply end the check."""
    for gate in gates_of(candidate.task):
        check_deadline()
        with step(gate.name):
            try:
                rows = gate.check(candidate).verdicts
            except SandboxError as error:
                result = CheckResult(passed=None, reason=error.reason, problem=str(error))
                rows = [replace(verdict_row(gate, candidate, result), worker_outcome=WorkerOutcome.INFRA_ERROR)]
        proof.verdicts += rows
        failed = next((row for row in rows if row.outcome is not GateOutcome.PASSED), None)
        if failed is not None:
            proof.decided &= failed.outcome is not GateOutcome.UNDECIDED
            if not proof.reason:
                proof.reason, proof.detail = failed.reason, f"{failed.gate}: {failed.detail}"
            if gate.name == PatchesApply.name:
                break


# --------------------------------------------------------------------------------------- claims
Tests = tuple[str, ...]
"""Ids of tests."""


def _drop(proof: ImportedProof, reason: str, tests: Sequence[str]) -> None:
    """Count listed tests that are not used."""
    if tests:
        proof.unconfirmed[reason] = proof.unconfirmed.get(reason, 0) + len(tests)
        proof.examples = (*proof.examples, *tests[:SHOWN])


def _candidate(bench: Workbench, claims: ImportedClaims, proof: ImportedProof) -> Candidate:
    """The candidate with those tests whose claims hold.

    Every FAIL_TO_PASS test must fail without the gold patch and pass with it, or :class:`Rejected` is raised.
    PASS_TO_PASS tests that fail or are unknown here are left out and counted, since another environment can have
    others.
    """
    if claims.fail_to_pass is None:
        wanted: Tests = tuple(test for test in _tests_of_files(bench, claims) if test in bench.trusted)
        others: Tests = ()
    else:
        wanted, others = _collected(bench, claims.fail_to_pass, claims.pass_to_pass or (), proof)
    draft = candidate_of(bench, _task(bench, claims, wanted, others))
    ids = sorted({*wanted, *others})
    without = not_passing(draft.run("deleted", ids=ids), ids)
    passing: Tests = tuple(test for test in wanted if test not in without)
    if claims.fail_to_pass is None:
        wanted, others = tuple(test for test in wanted if test in without), passing
    if passing and (claims.fail_to_pass is not None or not wanted):
        _drop(proof, "passes_without_gold", passing)
        raise _refusal("passes_without_feature", "pass without the gold patch", passing)
    changeable = {test for test in others if not draft.is_gradable(test)}
    _drop(proof, "fails_without_gold", [test for test in others if test in without])
    _drop(proof, "in_solution_files", sorted(changeable))
    others = tuple(test for test in others if test not in without and test not in changeable)
    proof.num_f2p, proof.num_p2p = len(wanted), len(others)
    candidate = candidate_of(bench, _task(bench, claims, wanted, others))
    candidate.trees.runs.update(draft.trees.runs)
    return candidate


def _collected(
    bench: Workbench, fail_to_pass: Sequence[str], pass_to_pass: Sequence[str], proof: ImportedProof
) -> tuple[Tests, Tests]:
    """The listed tests that pass in every baseline run. Raises :class:`Rejected` if a FAIL_TO_PASS test does not."""
    wanted, unknown = match_tests(fail_to_pass, _known(bench))
    if unknown:
        _drop(proof, "not_collected", unknown)
        raise _refusal("tests_not_found", "were not collected here", unknown)
    if failing := [test for test in wanted if test not in bench.trusted]:
        _drop(proof, "fails_with_gold", failing)
        raise _refusal("gold_fails", "do not pass in every run with the gold patch", failing)
    others, unknown = match_tests(pass_to_pass, _known(bench))
    _drop(proof, "not_collected", unknown)
    _drop(proof, "fails_with_gold", [test for test in others if test not in bench.trusted])
    return wanted, tuple(test for test in others if test in bench.trusted and test not in set(wanted))


def _refusal(reason: str, what: str, tests: Sequence[str]) -> Rejected:
    named = ", ".join(tests[:SHOWN]) + (", …" if len(tests) > SHOWN else "")
    count = f"{len(tests)} FAIL_TO_PASS test{'' if len(tests) == 1 else 's'}"
    return Rejected(f"{count} {what}: {named}", reason=reason)


def _known(bench: Workbench) -> list[str]:
    """All tests that a baseline run reported."""
    return sorted({*bench.baseline.statuses, *bench.baseline.flaky})


def _tests_of_files(bench: Workbench, claims: ImportedClaims) -> tuple[str, ...]:
    return tuple(test for test in _known(bench) if path_of(test) in claims.test_paths)


def match_tests(listed: Sequence[str], known: Collection[str]) -> tuple[tuple[str, ...], list[str]]:
    """The collected tests that the ``listed`` ids name, and the listed ids that name none.

    Sets that read their ids from logs cut them at white space, write it as ``%20``, or have the form
    ``name (module.Class)`` of unittest.
    """
    exact = set(known)
    by_first_word: dict[str, list[str]] = {}
    by_unittest: dict[str, list[str]] = {}
    for test in known:
        if (first := test.split()[0]) != test:
            by_first_word.setdefault(first, []).append(test)
        by_unittest.setdefault(_dotted(test), []).append(test)
    found: dict[str, None] = {}
    unknown: list[str] = []
    for test in listed:
        plain = ""
        if unittest := re.fullmatch(r"(\w+) \(([\w.]+)\)", test):
            name, owner = unittest.groups()
            plain = owner if owner.endswith(f".{name}") else f"{owner}.{name}"
        if test in exact:
            found[test] = None
        elif (spaced := test.replace("%20", " ")) in exact:
            found[spaced] = None
        elif names := by_first_word.get(test) or by_unittest.get(plain):
            found.update(dict.fromkeys(names))
        else:
            unknown.append(test)
    return tuple(found), unknown


def _dotted(test: str) -> str:
    """A test's id as a dotted name: ``tests/test_a.py::A::test_b`` is ``tests.test_a.A.test_b``."""
    return f"{path_of(test).removesuffix('.py').replace('/', '.')}.{dotted_name(test)}"


# ----------------------------------------------------------------------------------------- task
def _task(bench: Workbench, claims: ImportedClaims, wanted: Sequence[str], others: Sequence[str]) -> Task:
    """The task's record. Raises :class:`PatchError` for files that a text patch cannot hold."""
    if not wanted:
        raise Rejected("No test was found that the gold patch makes pass.", reason="no_fail_to_pass")
    repo = bench.repo
    tests = {path: data for path, data in claims.shipped.items() if path in claims.test_paths}
    sources = {path: data for path, data in claims.shipped.items() if path not in claims.test_paths}
    if not sources:
        raise Rejected("The gold patch changes nothing but hidden tests.", reason="no_source_change")
    code = bench.editor.changed_code(bench.codebase, bench.read(list(sources)), sources)
    hidden = tuple(sorted(test for test in bench.trusted if path_of(test) in tests))
    shipped_tree = bench.tree_hash(claims.shipped)
    return Task(
        instance_id=claims.instance_id,
        repo=repo.repo,
        base_commit=repo.base_commit,
        tree=repo.tree,
        shipped_tree=shipped_tree,
        language=repo.language,
        version=claims.version or repo.version,
        patch=_patch(bench, sources, to_solved=True),
        test_patch=_patch(bench, tests, to_solved=True),
        deletion_patch=_patch(bench, sources, to_solved=False) + _patch(bench, tests, to_solved=False),
        problem_statement=claims.problem_statement,
        hints_text=claims.hints_text,
        interface=claims.interface,
        fail_to_pass=tuple(sorted(wanted)),
        pass_to_pass=tuple(sorted(others)),
        hidden=hidden,
        env_id=bench.prepared.environment.env_id,
        visibility=Visibility.DOCSTRING if tests else Visibility.TESTS,
        difficulty=_difficulty(bench, list(code.removed), code.texts, sources, (len(wanted), len(others))),
        deleter=IMPORTED,
        feature_id=content_id("imported", repo.tree, shipped_tree),
        removed=tuple(code.removed),
        created_at=repo.created_at,
    )


def _patch(bench: Workbench, edits: Edits, *, to_solved: bool) -> str:
    """The patch from the agent's files to the solved ones, or back."""
    solved: dict[str, bytes | None] = {**dict.fromkeys(edits), **bench.read(list(edits))}
    present = [path for path, data in solved.items() if data is not None]
    modes = {path: 0o100755 for path in present if (bench.root / path).stat().st_mode & 0o100}
    return unified(edits, solved, modes) if to_solved else unified(solved, edits, modes)


def _difficulty(
    bench: Workbench,
    removed: Sequence[str],
    texts: Sequence[tuple[str, str]],
    sources: Edits,
    num_tests: tuple[int, int],
) -> Difficulty:
    symbols = bench.codebase.symbols()
    whole = [symbols[symbol_id] for symbol_id, _ in texts if symbol_id in symbols]
    changed = [symbols[symbol_id] for symbol_id in removed if symbol_id in symbols]
    return Difficulty(
        kind=_kind(changed),
        tier=tier_of(whole) if whole else TIER_WITHOUT_DEFINITIONS,
        loc=sum(symbol.loc for symbol in whole) + sum(lines_of_parts(texts).values()),
        num_files=len(sources),
        num_symbols=len(removed),
        fan_in=0,
        complexity=sum(symbol.complexity for symbol in changed),
        num_f2p=num_tests[0],
        num_p2p=num_tests[1],
    )


def _kind(changed: Sequence[Symbol]) -> FeatureKind:
    if len({symbol.path for symbol in changed}) > 1:
        return FeatureKind.CROSS_FILE
    if len(changed) > 1:
        return FeatureKind.MULTI
    kinds = {SymbolKind.METHOD: FeatureKind.METHOD, SymbolKind.CLASS: FeatureKind.CLASS}
    kinds |= {SymbolKind.FUNCTION: FeatureKind.FUNCTION}
    return kinds.get(changed[0].kind, FeatureKind.MODULE) if changed else FeatureKind.MODULE
