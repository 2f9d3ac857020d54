"""The order of the stages, and what a run says while it works."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from excise.config import Settings
from excise.pipeline import progress
from excise.pipeline.dag import Run
from excise.pipeline.order import SLOW_SUITE_S, priority, window
from excise.pipeline.state import SourceState
from excise.types import Rejection, SourceSpec

SLOW, QUICK = 5 * SLOW_SUITE_S, SLOW_SUITE_S / 5


def test_what_repositories_cost_is_found_out_first() -> None:
    unknown = [priority("fetch"), priority("environment", num_bytes=1), priority("baseline", num_bytes=10**12)]
    known = [priority(stage, wall_s=1e9) for stage in ("coverage", "find", "prove")]
    assert unknown == sorted(unknown, reverse=True)
    assert min(unknown) > max(known)
    assert priority("baseline", num_bytes=2 << 20) > priority("baseline", num_bytes=1 << 20)


def test_a_long_suites_chain_goes_before_everything_that_can_fill_gaps() -> None:
    assert priority("coverage", wall_s=SLOW) > priority("find", wall_s=QUICK) > priority("prove", wall_s=SLOW)
    assert priority("prove", wall_s=SLOW) > priority("prove", wall_s=QUICK)


def test_a_short_repository_comes_to_its_end_before_the_next_is_mapped() -> None:
    assert priority("prove", wall_s=0.1) > priority("coverage", wall_s=QUICK)


class Client:
    """Takes jobs and runs none."""

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": {str(number): {} for number in range(2)}}

    def submit(self, *args: Any, **options: Any) -> object:
        return object()


def test_sources_are_let_in_as_others_end() -> None:
    sources = tuple(SourceSpec(spec=f"pypi:p{number}") for number in range(40))
    writer = SimpleNamespace(names=tuple)
    run = Run(Settings(sources=sources), Client(), writer, lambda _: None)  # type: ignore[arg-type]
    room = window(2)
    run.admit()
    run.admit()
    assert [state.stage for state in run.states] == ["fetch"] * room + ["waiting"] * (40 - room)
    run.states[3].fail(Rejection(repo="p3", stage="fetch", subject="p3", reason="gone", detail="gone"))
    run.admit()
    assert [state.stage for state in run.states].count("waiting") == 40 - room - 1
    assert run.states[room].stage == "fetch"


def test_a_run_is_heard_of_also_while_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.05)
    out = io.StringIO()
    state = SourceState(SourceSpec(spec="pypi:slow"), limit=None, stage="baseline")
    with progress.Progress(Console(file=out, width=200)) as listener:
        listener([state])
        seen = out.getvalue().count("0/1 sources done")
        assert listener._over.wait(0.3) is False
    lines = out.getvalue().splitlines()
    assert sum("0/1 sources done" in line for line in lines) > seen
    assert "pypi:slow at baseline for 0 s" in lines[-1]


def test_a_quiet_run_says_nothing(tmp_path: Path) -> None:
    out = io.StringIO()
    with progress.Progress(Console(file=out), quiet=True) as listener:
        listener([SourceState(SourceSpec(spec="pypi:slow"), limit=None, stage="baseline")])
    assert not out.getvalue()
