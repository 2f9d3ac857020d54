"""Which tests stay in sight where a task shows a sample of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from excise.types import Deletion, Feature, FeatureKind, Rejection, Visibility
from excise.verifiers.candidate import Rejected
from excise.verifiers.prove import Proof, prove
from excise.verifiers.tests_in_sight import kept_hidden
from excise.verifiers.workbench import Workbench

WALK = "src/shapes/walk.py::spiral"
SOURCE = """def spiral(n, back=False):
    if back:
        return -n
    return n
"""


def deletion(bench: Workbench) -> Deletion:
    """A deletion of :data:`WALK` that hides all tests that execute it."""
    coverage = bench.prepared.coverage
    assert coverage is not None
    tests = tuple(sorted(coverage.executing([WALK])))
    feature = Feature(
        feature_id="f" * 16, kind=FeatureKind.FUNCTION, tier=1, entry=(WALK,), symbols=(WALK,), tests=tests, loc=4
    )
    return Deletion(
        deletion_id="",
        feature=feature,
        deleter="stub",
        deleter_version=1,
        source_patch="",
        hide_patch="",
        removed=(WALK,),
        hidden=tests,
        text=(),
    )


@pytest.mark.parametrize("most", range(3))
def test_the_test_that_executes_most_lines_is_in_sight(vary: Callable[..., Workbench], most: int) -> None:
    plan = deletion(vary({}, baseline=True))
    assert len(plan.hidden) == 3
    bodies = ["assert spiral(1) == 1" + (" == -spiral(1, back=True)" if number == most else "") for number in range(3)]
    functions = [
        f"def {test.rpartition('::')[2]}():\n    {body}\n" for test, body in zip(plan.hidden, bodies, strict=True)
    ]
    tests = "from shapes.walk import spiral\n\n\n" + "\n\n".join(functions)
    bench = vary({"src/shapes/walk.py": SOURCE, "tests/test_walk.py": tests}, baseline=True)
    kept = kept_hidden(bench, plan)
    assert set(plan.hidden) - kept == {plan.hidden[most]}
    removed, lines = bench.lines_of_tests
    assert removed == (WALK,)
    assert {line for _, line in lines[plan.hidden[most]]} == {2, 3, 4}


def test_one_test_cannot_be_divided(vary: Callable[..., Workbench]) -> None:
    bench = vary({}, baseline=True)
    plan = deletion(bench)
    with pytest.raises(Rejected, match="One test alone"):
        kept_hidden(bench, replace(plan, hidden=plan.hidden[:1]))


@pytest.mark.parametrize(
    ("reason", "stub", "shown"),
    [
        ("undescribed", "", Visibility.SAMPLE_TESTS),
        ("used_elsewhere", "undescribed: 0% of the code", Visibility.SAMPLE_TESTS),
        ("hides_other_tests", "", Visibility.TESTS),
        ("used_elsewhere", "hides_other_tests: 20 tests", Visibility.TESTS),
        ("used_elsewhere", "too_central: 9 tests", None),
    ],
)
def test_tests_are_shown_where_words_fail_or_their_cases_cannot_be_hidden_alone(
    vary: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch, reason: str, stub: str, shown: Visibility | None
) -> None:
    tried: list[tuple[Visibility, str]] = []

    def refuse(bench: Workbench, feature: Feature, deleter: str, _: object) -> Proof:
        tried.append((bench.settings.visibility, deleter))
        subject, evidence = feature.feature_id, {"stub": stub} if stub else {}
        refusal = Rejection(repo="", stage="gate", subject=subject, reason=reason, detail="", evidence=evidence)
        return Proof(rejection=refusal)

    monkeypatch.setattr("excise.verifiers.prove._prove_or_stub", refuse)
    for bench in (vary({}, baseline=True), vary({}, baseline=True, sample_undescribed=False)):
        prove(bench, deletion(bench).feature, "remove")
        assert bench.settings.visibility is Visibility.DOCSTRING
    hidden = (Visibility.DOCSTRING, "remove")
    assert tried == ([hidden, hidden] if shown is None else [hidden, (shown, "stub"), hidden])
