"""Tasks that hide single rows of a parametrised test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from excise.types import Feature, FeatureKind
from excise.verifiers.grading.grader import GradeRequest, find_conditions, grade
from excise.verifiers.prove import prove

pytestmark = pytest.mark.slow  # the leak scan reads all that a sandbox shows of this machine, once

SHAPES = Path(__file__).resolve().parents[1] / "repos" / "shapes"
LABEL = '''

def label(sides, dotted=False):
    """The word for a number of sides; in capitals, with a full stop at its end, if `dotted`."""
    words = {3: "triangle", 4: "square"}
    word = words.get(sides, "polygon")
    if dotted:
        first = word.upper()
        word = first + "."
        word = word.replace(" ", "_")
    return word
'''
CHECK = "    assert label(outer, dotted=inner == 2).endswith('.') is (inner == 2)\n"
TEST = "tests/test_round.py::test_ring"


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
    feature = Feature(
        feature_id="feature",
        kind=FeatureKind.FUNCTION,
        tier=1,
        entry=(symbol.symbol_id,),
        symbols=(symbol.symbol_id,),
        tests=(needing, *others),
        loc=symbol.loc,
        name=f"label: {path.name}",
        changed=((symbol.symbol_id, path.text),),
    )
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
