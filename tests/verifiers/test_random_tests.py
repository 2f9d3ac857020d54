"""Tests that draw at random, and pass without the code now and then, are no FAIL_TO_PASS tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.types import Feature, FeatureKind
from excise.verifiers.gates.fail_to_pass_fails import FailToPassFails
from excise.verifiers.prove import prove

pytestmark = pytest.mark.slow  # the leak scan reads all that a sandbox shows of this machine, once

SHAPES = Path(__file__).resolve().parents[1] / "repos" / "shapes"
WALK = "src/shapes/walk.py::spiral"
DRAWING = """

def test_any():
    import random
    if random.random() < 0.5:
        assert len(spiral(3)) == 3
"""


@pytest.mark.parametrize("deleter", ["remove", "stub"])
def test_a_test_that_draws_at_random_does_not_count(vary, deleter: str) -> None:
    path = "tests/test_walk.py"
    bench = vary({path: (SHAPES / path).read_text() + DRAWING}, baseline=True)
    symbol = bench.codebase.symbols()[WALK]
    names = ("test_first_turn", "test_no_field_twice", "test_start", "test_any")
    feature = Feature(
        feature_id="feature",
        kind=FeatureKind.FUNCTION,
        tier=1,
        entry=(WALK,),
        symbols=(WALK,),
        tests=tuple(f"{path}::{name}" for name in names),
        loc=symbol.loc,
    )
    proof = prove(bench, feature, deleter)
    assert proof.task is not None, proof.rejection
    assert set(proof.task.fail_to_pass) == {f"{path}::{name}" for name in names[:3]}
    row = next(v for v in proof.certificate.verdicts if v.gate == FailToPassFails.name) if proof.certificate else None
    assert row is not None
    assert set(row.statuses) == set(proof.task.fail_to_pass)
