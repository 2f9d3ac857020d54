"""Tasks that hide single rows of a parametrised test, or single statements of a test."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from excise.deleters.all_deleters import get
from excise.types import Feature, FeatureKind, Symbol
from excise.verifiers.grading.grader import GradeRequest, find_conditions, grade
from excise.verifiers.plan_deletion import plan_deletion
from excise.verifiers.prove import prove

pytestmark = pytest.mark.slow  # the leak scan reads all that a sandbox shows of this machine, once

SHAPES = Path(__file__).resolve().parents[1] / "repos" / "shapes"
LABEL = '''

def label(sides, style=""):
    """The word for a number of sides; in capitals, with a full stop at its end, if `style` is `dotted`."""
    words = {3: "triangle", 4: "square"}
    word = words.get(sides, "polygon")
    if style == "dotted":
        first = word.upper()
        word = first + "."
        word = word.replace(" ", "_")
    elif style == "lower":
        word = word.lower()
    elif style == "title":
        word = word.title()
    return word
'''
CHECK = "    assert label(outer, 'dotted' if inner == 2 else '').endswith('.') is (inner == 2)\n"
TEST = "tests/test_round.py::test_ring"


def feature_of(symbol: Symbol, *tests: str) -> Feature:
    return Feature(
        feature_id="feature",
        kind=FeatureKind.FUNCTION,
        tier=1,
        entry=(symbol.symbol_id,),
        symbols=(symbol.symbol_id,),
        tests=tests,
        loc=symbol.loc,
    )


def test_only_rows_in_need_of_the_code_are_hidden(vary) -> None:
    walk = (SHAPES / "src" / "shapes" / "walk.py").read_text()
    table = re.sub(
        r"    assert ring_area\(outer, inner\) .*\n", CHECK, (SHAPES / "tests" / "test_round.py").read_text()
    )
    table = table.replace("import pytest\n", "import pytest\nfrom shapes.walk import label\n", 1)
    bench = vary({"src/shapes/walk.py": walk + LABEL, "tests/test_round.py": table}, baseline=True)
    symbol = bench.codebase.symbols()["src/shapes/walk.py::label"]
    path = bench.editor.path(bench.codebase, symbol)
    assert path is not None
    needing, *others = (f"{TEST}[{row}]" for row in ("1-2-3", "2-1-3", "1-1-0"))
    changed = ((symbol.symbol_id, path.text),)
    feature = replace(feature_of(symbol, needing, *others), name=f"label: {path.name}", changed=changed)
    proof = prove(bench, feature, "path")
    assert proof.rejection is None, proof.rejection
    task = proof.task
    assert task is not None
    assert task.hidden == task.fail_to_pass == (needing,)
    assert set(others) <= set(task.pass_to_pass)
    assert '-@pytest.mark.parametrize("outer,inner,factor", [(2, 1, 3), (1, 1, 0)])' in task.test_patch
    assert '+@pytest.mark.parametrize("outer,inner,factor", [(2, 1, 3), (1, 2, 3), (1, 1, 0)])' in task.test_patch
    conditions = find_conditions(bench, [*task.fail_to_pass, *task.pass_to_pass])
    assert proof.kit is not None
    for diff, reward in ((task.patch, 1.0), ("", 0.0)):
        request = GradeRequest(task=task, kit=proof.kit, diff=diff, conditions=conditions)
        assert grade(bench, request).reward == reward


MARKS = '''

MARKS = []


def mark(shape):
    """Remember a shape, and give it back."""
    remember(shape)
    return MARKS[-1]


def remember(shape):
    MARKS.append(shape)


def marked():
    return len(MARKS)
'''
MARK_TESTS = """

from shapes.walk import mark, marked, remember


def test_area():
    assert Circle(2).area() > 12
    assert mark(7) == 7
    assert Circle(3).area() > 28


def test_circumference():
    remember(1)
    before = marked()
    assert mark(3) == 3
    assert marked() == before + 1
    assert marked() > before
"""


def test_a_test_keeps_what_it_checks_of_other_code_if_that_passes(vary) -> None:
    """What is left of the second test needs what a lost statement does, so that it goes whole."""
    walk = (SHAPES / "src" / "shapes" / "walk.py").read_text()
    tests = (SHAPES / "tests" / "test_round.py").read_text()
    kept = tests.replace("def test_area(", "def area(").replace("def test_circumference(", "def circumference(")
    bench = vary({"src/shapes/walk.py": walk + MARKS, "tests/test_round.py": kept + MARK_TESTS}, baseline=True)
    symbol = bench.codebase.symbols()["src/shapes/walk.py::mark"]
    ids = tuple(f"tests/test_round.py::{name}" for name in ("test_area", "test_circumference"))
    feature = feature_of(symbol, *ids)
    first = get("remove").delete(bench.codebase, feature)
    assert first.shortened == ids
    proof = prove(bench, feature, "remove")
    assert proof.rejection is None, proof.rejection
    assert proof.task is not None
    assert proof.task.deleter == "remove"
    assert proof.task.fail_to_pass == ids
    assert "+    assert mark(7) == 7" in proof.task.test_patch
    assert "+def test_area" not in proof.task.test_patch
    assert "+def test_circumference" in proof.task.test_patch


STEPS = """

def steps(n):
    return n + 1


def stride(n):
    return 2 * steps(n)
"""
STEP_TESTS = """from shapes.walk import steps, stride


def near(value):
    return [stride(value), value]


def test_strides():
    assert near(1)[1] == 1
    for value in (2, 3):
        assert near(value)[0] == 2 * value + 2
        assert steps(value) == value + 1
    assert steps(4) == 5
    assert steps(5) == 6
"""


def test_statements_that_fail_without_the_code_go_alone(vary) -> None:
    """No name says that the first ones need it: a helper calls it."""
    walk = (SHAPES / "src" / "shapes" / "walk.py").read_text()
    bench = vary({"src/shapes/walk.py": walk + STEPS, "tests/test_round.py": STEP_TESTS}, baseline=True)
    symbol, test = bench.codebase.symbols()["src/shapes/walk.py::stride"], "tests/test_round.py::test_strides"
    durations = {**bench.baseline.durations, test: 0.0}
    bench.prepared = replace(bench.prepared, baseline=replace(bench.baseline, durations=durations))
    bench.trusted = frozenset([*bench.trusted, test])
    plan = plan_deletion(bench, feature_of(symbol, test), "stub")
    assert plan.deletion.shortened == (test,)
    left = (plan.edits("shipped")["tests/test_round.py"] or b"").decode()
    assert left.partition("def test_strides")[2] == (
        "():\n    for value in (2, 3):\n        assert steps(value) == value + 1\n"
        "    assert steps(4) == 5\n    assert steps(5) == 6\n"
    )


def test_a_class_whose_tests_are_not_all_hidden_stays_a_part_of_the_feature(vary) -> None:
    walk = (SHAPES / "src" / "shapes" / "walk.py").read_text()
    pen = "\n\nclass Pen:\n    def read(self):\n        return 4\n\n\ndef pen(x):\n    return x + 1\n"
    tests = (
        "import pytest\n\nfrom shapes.walk import Pen, pen\n\n\n"
        "def test_pen():\n    assert Pen().read() == pen(3)\n\n\n"
        "def test_no_pen():\n    with pytest.raises(Exception):\n        pen('a')\n"
    )
    bench = vary({"src/shapes/walk.py": walk + pen, "tests/test_pen.py": tests}, baseline=True)
    symbols = ("src/shapes/walk.py::Pen", "src/shapes/walk.py::pen")
    names = ("tests/test_pen.py::test_pen", "tests/test_pen.py::test_no_pen")
    durations = {**bench.baseline.durations, **dict.fromkeys(names, 0.0)}
    bench.prepared = replace(bench.prepared, baseline=replace(bench.baseline, durations=durations))
    bench.trusted = frozenset([*bench.trusted, *names])
    feature = replace(feature_of(bench.codebase.symbols()[symbols[1]], *names), symbols=symbols, entry=symbols)
    plan = plan_deletion(bench, feature, "stub")
    assert plan.hidden == {names[0]}
    assert plan.deletion.removed == (f"{symbols[0]}.read", symbols[1])
