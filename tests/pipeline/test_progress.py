"""The display of a run: names and reasons from projects are printed without interpretation."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from excise.config import load
from excise.extractors.features.find_features import FoundFeatures
from excise.pipeline.run.progress import Progress, funnel, limits_text, literal
from excise.pipeline.run.source_state import SourceState
from excise.types import Rejection, SourceSpec, SymbolKind, SymbolReport

NAMES = ["pypi:uvicorn[standard]", "[/testbed]", "/srv/[red]x[/red]", "pypi:x:smile:"]


def state_of(name: str, *, failure: str = "") -> SourceState:
    state = SourceState(SourceSpec(spec=name), None)
    if failure:
        state.fail(Rejection(repo=name, stage="fetch", subject=name, reason=f"[/{failure}]", detail=f"[/x] {failure}"))
    return state


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=200, force_terminal=terminal, color_system=None)


def text_of(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_lines_show_names_and_reasons_as_they_are(name: str) -> None:
    shown = console(terminal=False)
    with Progress(shown) as progress:
        state = state_of(name)
        state.job_started("fetch")
        progress([state])
        state.fail(Rejection(repo=name, stage="fetch", subject=name, reason="[/gone]", detail=""))
        progress([state])
    lines = text_of(shown).splitlines()
    assert any(line == f"[00:00] {name}: fetch" for line in lines)
    assert any(line == f"[00:00] {name}: refused at fetch: [/gone]" for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_the_live_table_shows_names_and_reasons_as_they_are(name: str) -> None:
    under_way = state_of(f"{name}2")
    under_way.job_started("fetch")
    states = [state_of(name, failure="gone"), under_way]
    with Progress(console(terminal=True)) as progress:
        progress(states)
    shown = console(terminal=False)
    shown.print(progress.table(states))
    assert f"{name}2 at fetch for 0 s" in text_of(shown)
    assert any(line.startswith(name) and "[/gone]" in line for line in text_of(shown).splitlines())


def test_a_queued_source_is_not_shown_at_its_stage() -> None:
    queued, begun = state_of("pypi:queued"), state_of("pypi:begun")
    queued.stage = begun.stage = "coverage"
    begun.job_started("coverage")
    shown = console(terminal=False)
    with Progress(shown) as progress:
        progress([queued, begun])
        shown.print(progress.table([queued, begun]))
    lines = text_of(shown).splitlines()
    assert lines[0] == "[00:00] pypi:begun: coverage"
    assert not any("queued: coverage" in line for line in lines)
    assert any(line.split() == ["pypi:queued", "coverage", "(queued)"] for line in lines)
    assert "pypi:begun at coverage for 0 s" in text_of(shown)


@pytest.mark.parametrize("name", NAMES)
def test_the_funnel_shows_names_and_details_as_they_are(name: str) -> None:
    shown = console(terminal=False)
    shown.print(funnel([state_of(name, failure="gone"), state_of(f"{name}2")]))
    assert any(line.startswith(name) and "[/gone]: [/x] gone" in line for line in text_of(shown).splitlines())


def test_a_failure_without_a_detail_has_a_row_too() -> None:
    state = state_of("pypi:x")
    state.fail(Rejection(repo="x", stage="fetch", subject="x", reason="gone", detail=""))
    shown = console(terminal=False)
    shown.print(funnel([state]))
    assert "gone: " in text_of(shown)


def test_control_characters_in_names_do_not_reach_the_terminal() -> None:
    assert literal("a\x1b[31mb\nc").plain == "a�[31mb�c"


def test_caps_name_sources_as_they_are() -> None:
    settings = load(environ={}, limit=8, sources=[SourceSpec(spec="pypi:uvicorn[standard]", limit=4)])
    assert limits_text(settings) == "At most 8 tasks per source, 4 of pypi:uvicorn[standard] (--limit)."
    assert limits_text(load(environ={})) == ""


def test_a_source_without_features_shows_the_reason() -> None:
    state = state_of("pypi:x")
    central = SymbolReport(symbol="m.py::f", kind=SymbolKind.FUNCTION, loc=9, num_tests=9, reason="too_central")
    state.add_features(FoundFeatures(features=(), symbols=(central,)))
    shown = console(terminal=False)
    shown.print(funnel([state]))
    assert "1 too_central" in text_of(shown)


def test_test_files_that_cannot_be_used_are_told_once() -> None:
    shown = console(terminal=False)
    state = state_of("kit")
    recipe = SimpleNamespace(evidence=("a.java: left out, since org.mockito.Mockito is not there", "JUnit 4"))
    state.prepared = SimpleNamespace(  # type: ignore[assignment]
        baseline=SimpleNamespace(uncollected={"tests/x.py": "ImportError: y\nmore"}, suite_s=lambda: 1.0),
        environment=SimpleNamespace(recipe=recipe),
    )
    with Progress(shown) as progress:
        for stage in ("coverage", "find"):
            state.job_started(stage)
            progress([state])
    told = [line for line in text_of(shown).splitlines() if "cannot be used" in line]
    assert told == [
        "[00:00] kit: 2 files of tests cannot be used (`excise env` lists them), first tests/x.py: ImportError: y"
    ]


def test_a_long_suite_that_is_left_takes_most_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of four sources are done after a minute; the fourth has by far the longest suite."""
    states = [state_of(f"pypi:{number}") for number in range(4)]
    for state, seconds in zip(states, (1.0, 1.0, 1.0, 45.0), strict=True):
        state.stage = "done"
        state.prepared = SimpleNamespace(  # type: ignore[assignment]
            baseline=SimpleNamespace(uncollected={}, suite_s=lambda seconds=seconds: seconds)
        )
    states[3].stage, states[3].limit = "prove", 6
    progress = Progress(console(terminal=False))
    progress.began = 0.0
    monkeypatch.setattr("excise.pipeline.run.progress.time", SimpleNamespace(monotonic=lambda: 60.0))
    assert progress.progress_of(states[3]) == 0.4
    assert progress.time_left(states) == "51 s", "29.4 parts of 64 are left"
    assert not progress.time_left(states[3:]), "it has no task yet"
