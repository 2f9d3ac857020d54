"""Tasks of one expression or one line, proven on a real project, with visible and with hidden tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from excise.deleters.patches.git_patches import unified
from excise.types import Feature, FeatureKind, GateOutcome, GradingKit, Task, Visibility
from excise.verifiers.gates.all_gates import CLAIMS, GATES
from excise.verifiers.grading.grader import GradeRequest, find_conditions, grade
from excise.verifiers.prove import Proof, prove
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

pytestmark = pytest.mark.slow  # the leak scan reads all that a sandbox shows of this machine, once

Vary = Callable[..., Workbench]

DISTANCE = "src/shapes/squares.py::Rectangle.corner_distance"
FITS = "src/shapes/squares.py::Rectangle.fits_into"


def feature(bench: Workbench, symbol: str) -> Feature:
    coverage = bench.prepared.coverage
    assert coverage is not None
    return Feature(
        feature_id="f" * 16,
        kind=FeatureKind.METHOD,
        tier=1,
        entry=(symbol,),
        symbols=(symbol,),
        tests=tuple(coverage.tests[number] for number in coverage.by_symbol[symbol]),
        loc=bench.codebase.symbols()[symbol].loc,
    )


def accepted(proof: Proof) -> tuple[Task, GradingKit | None]:
    assert proof.task is not None, proof.rejection
    assert proof.certificate is not None
    verdicts = proof.certificate.verdicts
    assert list(dict.fromkeys(v.gate for v in verdicts)) == list(CLAIMS)
    assert {v.outcome for v in verdicts} == {GateOutcome.PASSED}
    return proof.task, proof.kit


def assert_verified(bench: Workbench, task: Task) -> None:
    candidate = candidate_of(bench, task)
    for report in (gate.check(candidate) for gate in GATES):
        assert report.passed, "`excise verify` finds what generating found"
        assert report.verdicts


def removed_lines(patch: str) -> list[str]:
    return [line[1:].strip() for line in patch.splitlines() if line.startswith("-") and not line.startswith("---")]


def without_tests(bench: Workbench) -> str:
    """A solution that makes the failing tests pass by emptying their file."""
    (path,) = files = ("tests/test_squares.py",)
    before = bench.read(files)[path]
    emptied = re.sub(rb"(?m)^    .*$", b"    pass", before)
    return unified({path: before}, {path: emptied})


@pytest.mark.parametrize(
    ("deleter", "symbol", "gone"),
    [
        ("expression", FITS, ["return mine[0] <= theirs[0] and mine[1] <= theirs[1]"]),
        ("line", DISTANCE, ["return diagonal(self.width, self.height)"]),
        ("stub", DISTANCE, ["return diagonal(self.width, self.height)"]),
    ],
)
def test_line_and_expression_tasks_with_visible_tests(vary: Vary, deleter: str, symbol: str, gone: list[str]) -> None:
    bench = vary({}, baseline=True, visibility=Visibility.TESTS)
    task, kit = accepted(prove(bench, feature(bench, symbol), deleter))
    assert removed_lines(task.deletion_patch) == gone
    assert (task.deleter, task.difficulty.tier, task.visibility) == (deleter, 0, Visibility.TESTS)
    assert task.hidden == ()
    assert task.test_patch == ""
    kept = {test for test in bench.trusted if test.startswith("tests/")}
    assert set(task.fail_to_pass) | set(task.pass_to_pass) == kept
    assert task.fail_to_pass
    assert "in this checkout (in `tests/test_squares.py`), failing now, must pass" in task.problem_statement
    assert ("`raise NotImplementedError` stands in its place" in task.problem_statement) is (deleter == "expression")
    conditions = find_conditions(bench, [*task.fail_to_pass, *task.pass_to_pass])
    gold = grade(bench, GradeRequest(task=task, kit=kit, diff=task.patch, conditions=conditions))
    assert (gold.reward, gold.partial, gold.decided) == (1, 1, True), gold
    assert (grade(bench, GradeRequest(task=task, kit=kit, diff="", conditions=conditions)).reward) == 0
    edited = grade(bench, GradeRequest(task=task, kit=kit, diff=without_tests(bench), conditions=conditions))
    assert edited.reward == 0, "tests in sight are restored before they are run"
    assert "tests/test_squares.py" in edited.ignored
    assert_verified(bench, task)


def test_line_and_expression_tasks_with_hidden_tests(bench: Workbench) -> None:
    task, _ = accepted(prove(bench, feature(bench, FITS), "expression"))
    assert task.hidden == task.fail_to_pass
    assert "not in this checkout" in task.problem_statement
    assert_verified(bench, task)


def test_half_of_the_tests_in_sight(vary: Vary) -> None:
    bench = vary({}, baseline=True, visibility=Visibility.SAMPLE_TESTS)
    task, kit = accepted(prove(bench, feature(bench, "src/shapes/squares.py::diagonal"), "stub"))
    shown = set(task.fail_to_pass) - set(task.hidden)
    assert shown, "the solver sees some fail"
    assert set(task.hidden) & set(task.fail_to_pass), "others are hidden"
    assert f"+def {min(shown).rpartition('::')[2]}(" not in task.test_patch
    assert "not in this checkout" in task.problem_statement
    assert "failing now, must pass" in task.problem_statement
    conditions = find_conditions(bench, [*task.fail_to_pass, *task.pass_to_pass])
    rewards = [
        grade(bench, GradeRequest(task=task, kit=kit, diff=diff, conditions=conditions)).reward
        for diff in (task.patch, "")
    ]
    assert rewards == [1, 0]
    assert_verified(bench, task)


def test_one_test_cannot_be_hidden_and_in_sight(vary: Vary) -> None:
    bench = vary({}, baseline=True, visibility=Visibility.SAMPLE_TESTS)
    rejection = prove(bench, feature(bench, "src/shapes/tables.py::Ruler.marks"), "stub").rejection
    assert rejection is not None
    assert rejection.reason == "too_few_tests"


def test_a_removal_with_visible_tests_becomes_a_stub(vary: Vary) -> None:
    """A test file that imports a removed name fails as a whole, so the name stays where tests are visible."""
    bench = vary({}, baseline=True, visibility=Visibility.TESTS)
    function = replace(feature(bench, "src/shapes/squares.py::diagonal"), kind=FeatureKind.FUNCTION)
    task, _ = accepted(prove(bench, function, "remove"))
    assert task.deleter == "stub"
    assert task.hidden == ()


def test_a_copy_of_the_expression_in_the_tree_is_a_leak(vary: Vary) -> None:
    long = "sorted((self.width * 2, self.height * 3, other.width * 5, other.height * 7, sum(mine), sum(theirs)))"
    source = vary({}).read(["src/shapes/squares.py"])["src/shapes/squares.py"].decode()
    changed = source.replace("return mine[0] <=", f"return mine[0] + 0 * len({long}) <=")
    files = {"src/shapes/squares.py": changed}
    alone = vary(files, baseline=True, visibility=Visibility.TESTS)
    accepted(prove(alone, feature(alone, FITS), "expression"))
    same = f"mine[0] + 0 * len({long}) <= theirs[0] and mine[1] <= theirs[1]"
    copy = f"def answer(self, other, mine, theirs):\n    return {same}\n"
    twice = vary({**files, "src/shapes/copy.py": copy}, baseline=True, visibility=Visibility.TESTS)
    rejection = prove(twice, feature(twice, FITS), "expression").rejection
    assert rejection is not None
    assert rejection.reason == "twin_in_repository"
