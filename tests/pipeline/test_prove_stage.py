"""The prove stage: the repositories that a worker keeps open between its jobs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from excise.config import Settings
from excise.pipeline.stages import prove_stage as module


def test_a_worker_keeps_the_repositories_that_it_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_workbench(_: Settings, prepared: str) -> SimpleNamespace:
        opened.append(prepared)
        return SimpleNamespace(prepared=prepared)

    monkeypatch.setattr(module, "open_workbench", open_workbench)
    monkeypatch.setattr(module, "_workbenches", {})

    def use(name: str) -> object:
        return module.workbench_of(Settings(), name)  # type: ignore[arg-type]

    first = use("a")
    for name in ("b", "a", "b", "c", "a"):
        use(name)
    assert opened == ["a", "b", "c"]
    assert use("a") is first
    use("d")
    assert use("a") is first, "used more recently than b"
    use("b")
    assert opened == ["a", "b", "c", "d", "b"]
