"""Tests in sight that fail in the shipped tree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from excise.errors import DeletionRefused
from excise.types import Status, WorkerOutcome
from excise.verifiers.candidate import PlannedDeletion
from excise.verifiers.shipped_runs import needing_it, require_no_test_lost


def test_a_test_that_passes_where_only_code_is_gone_is_not_hidden() -> None:
    asked: list[tuple[str, Any]] = []

    def run(tree: str, *, ids: list[str]) -> object:
        asked.append((tree, ids))
        return SimpleNamespace(statuses=lambda: {"t.py::test_a": Status.FAILED, "t.py::test_b": Status.PASSED})

    plan = cast("PlannedDeletion", SimpleNamespace(run=run))
    require_no_test_lost(plan, ["t.py::test_a"])
    with pytest.raises(DeletionRefused, match="test_b fails without the hidden tests") as refused:
        require_no_test_lost(plan, ["t.py::test_a", "t.py::test_b"])
    assert refused.value.reason == "breaks_other_tests"
    assert asked[-1] == ("deleted", ["t.py::test_a", "t.py::test_b"])


@pytest.mark.parametrize(
    ("status", "again", "hidden"),
    [
        (Status.FAILED, Status.PASSED, ["t.py::test_a", "t.py::test_c"]),
        (Status.FAILED, Status.FAILED, ["t.py::test_a", "t.py::test_b", "t.py::test_c"]),
        (Status.MISSING, None, ["t.py::test_a", "t.py::test_b", "t.py::test_c"]),  # its file does not import
    ],
)
def test_a_test_that_never_runs_the_code_and_fails_once_is_not_hidden(
    status: Status, again: Status | None, hidden: list[str]
) -> None:
    tests = ["t.py::test_a", "t.py::test_b", "t.py::test_c"]
    distrusted: set[str] = set()

    def run(tree: str, *, ids: list[str], number: int = 0) -> object:
        assert tree == "deleted"
        assert ids == (["t.py::test_b"] if number else ["t.py::test_a", "t.py::test_b"])
        assert not number or again is not None
        statuses = {"t.py::test_a": Status.FAILED, "t.py::test_b": again if number else status}
        return SimpleNamespace(worker=WorkerOutcome.OK, statuses=lambda: statuses)

    coverage = SimpleNamespace(executing=lambda removed: {"t.py::test_a"} if removed == ("m.py::f",) else set())
    bench = SimpleNamespace(
        prepared=SimpleNamespace(coverage=coverage), expected_s=lambda _: 1.0, distrust=distrusted.update
    )
    deletion = SimpleNamespace(removed=("m.py::f",))
    plan = SimpleNamespace(run=run, bench=bench, deletion=deletion, shortened=frozenset({"t.py::test_c"}))
    assert needing_it(cast("PlannedDeletion", plan), tests) == hidden
    assert distrusted == set(tests).difference(hidden)
