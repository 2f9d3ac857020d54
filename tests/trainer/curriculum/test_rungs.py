"""The order and names of rungs."""

from __future__ import annotations

from excise.datasets.difficulty.rungs import all_rungs, rung_from, rung_of

from . import simulated_learner


def test_rungs_are_in_order_and_have_names() -> None:
    rungs = all_rungs()
    assert list(rungs) == sorted(rungs, key=lambda rung: rung.order)
    assert rungs[0].key == "line/tests"
    assert [rung_from(rung.key) for rung in rungs] == list(rungs)
    assert [rung_of(simulated_learner.task(0, rung)) for rung in rungs] == list(rungs)
