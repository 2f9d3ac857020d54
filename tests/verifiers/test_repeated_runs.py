"""A share of the candidates has its forked runs repeated; where results differ, the run in its own process counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from excise.types import Status, TestRun
from excise.verifiers.prove import is_repeated
from excise.verifiers.workbench import RepeatedRuns, Workbench

WALK = ("tests/test_walk.py::test_first_turn", "tests/test_walk.py::test_start")


@pytest.fixture
def repeats(bench: Workbench) -> Iterator[RepeatedRuns]:
    bench.repeats = RepeatedRuns()
    yield bench.repeats
    bench.repeats = None


def test_a_forked_run_is_repeated_and_agrees(bench: Workbench, repeats: RepeatedRuns) -> None:
    run = bench.run({}, ids=WALK, forked=True)
    assert run.statuses() == dict.fromkeys(WALK, Status.PASSED)
    assert repeats == RepeatedRuns(repeated=1, disagreeing=0)
    bench.run({}, ids=WALK)
    assert repeats.repeated == 1, "runs that confirm are not forked in the first place"


@pytest.mark.parametrize(("test", "disagreeing"), [(WALK[0], 1), ("tests/test_order.py::test_c_third", 0)])
def test_what_differs_for_a_trusted_test_is_counted_and_overruled(
    bench: Workbench, repeats: RepeatedRuns, monkeypatch: pytest.MonkeyPatch, test: str, disagreeing: int
) -> None:
    once = bench._run_once

    def other_if_forked(*arguments: object, forked: bool = False, **options: object) -> TestRun:
        run: TestRun = once(*arguments, **options)  # type: ignore[arg-type]
        changed = (replace(r, status=Status.FAILED) if r.test_id == test else r for r in run.results)
        return replace(run, results=tuple(changed)) if forked else run

    monkeypatch.setattr(bench, "_run_once", other_if_forked)
    run = bench.run({}, forked=True)
    assert run.statuses()[test] is not Status.FAILED
    assert repeats == RepeatedRuns(repeated=1, disagreeing=disagreeing)


def test_the_share_is_kept_and_depends_on_the_candidate_alone() -> None:
    chosen = [number for number in range(5000) if is_repeated(f"feature-{number}", "remove", 0.02)]
    assert 60 < len(chosen) < 140
    assert chosen == [number for number in range(5000) if is_repeated(f"feature-{number}", "remove", 0.02)]
    assert not is_repeated("feature-1", "remove", 0.0)
    assert is_repeated("feature-1", "remove", 1.0)
