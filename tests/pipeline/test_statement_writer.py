"""Statements that a model writes, over a real socket: what is kept, completed and refused; budget, cache and replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from excise.config import ModelSettings, Settings
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError
from excise.pipeline.cli.options import require_model
from excise.pipeline.stages.statement_writer import WrittenStatements, model_statements
from excise.types import StatementStyle, Task, WorkerOutcome

from ..agents.scripted_server import Script, ScriptedServer, calls, fails, says
from ..conftest import SETS

TASK = next(t for t in TaskSet.open(SETS / "shapes").tasks() if t.removed == ("src/shapes/text.py::parse",))
BODY = 'values = [float(number) for number in numbers.split(",") if number.strip()]'
VAGUE = "Reading figures from text does not work in shapes any more. Please look into it."
WHOLE = "Bring back `def parse(text)` in `src/shapes/text.py`, and `parse` in `shapes`. It makes figures."


def hand_in(text: str, **more: Any) -> Any:
    return calls(("hand_in", {"text": text}), **more)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def settings_for(cache: Path, *styles: str, **options: Any) -> Settings:
    model = ModelSettings(model="scripted", write_statements=tuple(map(StatementStyle, styles)), **options)
    return Settings(model=model, cache=cache)


def written(script: Script, cache: Path, *styles: str, task: Task = TASK, **options: Any) -> WrittenStatements:
    with ScriptedServer(script) as server:
        found = model_statements(settings_for(cache, *styles, base_url=server.url, **options), task)
        assert len(server.requests) == len(script)
        return found


def test_a_text_is_completed_with_what_hidden_tests_need(cache: Path) -> None:
    (found,) = written([hand_in("# Parsing is gone\n\n`parse` no longer works.")], cache, "issue").statements
    assert (found.style, found.author, found.complete, found.missing) == ("issue", "scripted", True, ())
    assert found.text.startswith("# Parsing is gone\n\n`parse` no longer works.\n\n## Details\n\n- ")
    assert "`def parse(text)` in `src/shapes/text.py`." in found.text
    assert found.added[0] == "signature def parse(text)"


def test_a_complete_text_stays_as_it_is(cache: Path) -> None:
    (found,) = written([hand_in(WHOLE)], cache, "specification").statements
    assert (found.text, found.added, found.complete) == (f"{WHOLE}\n", (), True)


def test_terse_and_ambiguous_texts_are_not_completed(cache: Path) -> None:
    terse, ambiguous = written(
        [hand_in("Please bring back `parse`."), hand_in(VAGUE)], cache, "terse", "ambiguous"
    ).statements
    assert (terse.text, terse.complete, terse.added) == ("Please bring back `parse`.\n", False, ())
    assert "file src/shapes/text.py" in terse.missing
    assert not ambiguous.complete


def test_a_text_with_code_of_the_body_is_refused(cache: Path) -> None:
    leaking = hand_in(f"{WHOLE}\n\n```python\n{BODY}\n```")
    found = written([leaking, hand_in(WHOLE)], cache, "issue")
    assert [statement.text for statement in found.statements] == [f"{WHOLE}\n"], "the model may correct it"
    found = written([leaking] * 4, cache / "other", "issue")
    assert found.statements == ()
    (row,) = found.rejections
    assert (row.stage, row.subject, row.reason) == ("statement", TASK.instance_id, "gives_code")
    assert row.worker_outcome is WorkerOutcome.OK
    assert BODY not in row.detail


def test_an_ambiguous_text_must_leave_something_out(cache: Path) -> None:
    found = written([hand_in(WHOLE), hand_in(VAGUE)], cache, "ambiguous")
    assert [statement.text for statement in found.statements] == [f"{VAGUE}\n"]
    (row,) = written([hand_in(WHOLE)] * 4, cache / "other", "ambiguous").rejections
    assert row.reason == "not_ambiguous"


def test_what_the_model_is_told_holds_no_code(cache: Path) -> None:
    with ScriptedServer([hand_in(VAGUE)]) as server:
        model_statements(settings_for(cache, "terse", base_url=server.url), TASK)
    said = "\n".join(str(message["content"]) for message in server.requests[0]["messages"])
    assert TASK.problem_statement in said
    assert BODY not in said


def test_a_model_that_hands_nothing_in_is_a_rejection(cache: Path) -> None:
    (row,) = written([says("I would rather not.")] * 4, cache, "terse").rejections
    assert (row.reason, row.worker_outcome) == ("step_limit", WorkerOutcome.OK)


@pytest.mark.parametrize("answer", [fails(401), hand_in("Too short", tokens=(2900, 100))])
def test_without_a_model_or_a_budget_nothing_is_decided(answer: Any, cache: Path) -> None:
    found = written([answer], cache, "terse", max_tokens=3000, max_reply_tokens=200)
    assert found.statements == ()
    assert {row.worker_outcome for row in found.rejections} == {WorkerOutcome.INFRA_ERROR}
    again = written([hand_in(WHOLE)], cache, "terse", max_tokens=3000, max_reply_tokens=200)
    assert len(again.statements) == 1, "the next run asks again"


def test_answers_come_from_the_cache_and_from_recordings(cache: Path, tmp_path: Path) -> None:
    first = written([hand_in(WHOLE)], cache, "issue")
    assert written([], cache, "issue") == first
    (transcript,) = (cache / "transcripts").iterdir()
    assert transcript.name == f"statements-{TASK.instance_id}.jsonl"
    replayed = model_statements(settings_for(tmp_path / "other", "issue", replay=transcript), TASK)
    assert replayed == first
    assert len(written([hand_in(WHOLE), hand_in(VAGUE)], cache, "issue", "terse").statements) == 2


def test_a_model_is_required() -> None:
    with pytest.raises(ConfigError, match="write_statements needs a model"):
        require_model(Settings(model=ModelSettings(write_statements=(StatementStyle.ISSUE,))))
    with pytest.raises(ValueError, match="specification"):
        ModelSettings(write_statements=("rude",))  # type: ignore[arg-type]
