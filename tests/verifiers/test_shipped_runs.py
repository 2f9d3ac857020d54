"""Visible tests that fail in the shipped tree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from excise.errors import DeletionRefused
from excise.types import Status
from excise.verifiers.candidate import PlannedDeletion
from excise.verifiers.shipped_runs import require_no_test_lost


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
