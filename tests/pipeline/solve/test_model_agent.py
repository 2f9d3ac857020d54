"""The built-in agent: a scripted endpoint over a real socket, its budgets, its failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from excise.config import ModelSettings

from ...agents.scripted_server import Script, ScriptedServer, calls, fails, says
from .solving import Bench, applying

FINISH = calls(("finish", {}))
LOOK = calls(("run", {"command": "ls"}))


def attempted(bench: Bench, script: Script, **options: Any) -> dict[str, Any]:
    with ScriptedServer(script) as server:
        result = bench.solve("model", settings=bench.with_model(server.url, **options))
    assert result.lost == ()
    return bench.row()


def test_a_model_solves_a_task(bench: Bench) -> None:
    script = [LOOK, applying(bench.task.patch), FINISH]
    row = attempted(bench, script, prompt_price=2.0, completion_price=10.0)
    assert (row["solved"], row["reward"], row["ending"], row["steps"]) == (True, 1.0, "finished", 3)
    assert (row["prompt_tokens"], row["completion_tokens"]) == (300, 60)
    assert row["cost"] == pytest.approx((300 * 2 + 60 * 10) / 1e6)
    assert (row["agent"], row["model"], row["flags"]) == ("model", "scripted", [])
    events = [json.loads(line)["event"] for line in row["transcript"].splitlines()]
    assert events == ["job", "start", "reply", "tool", "reply", "tool", "reply", "tool", "end"]


@pytest.mark.parametrize(
    ("options", "ending", "steps"),
    [
        ({"solve_steps": 2}, "step_limit", 2),
        ({"max_tokens": 300}, "token_limit", 3),
        ({"max_cost": 0.0003, "prompt_price": 1.0, "completion_price": 1.0}, "cost_limit", 3),
    ],
)
def test_limits_end_an_attempt_and_what_was_done_is_graded(
    bench: Bench, options: dict[str, Any], ending: str, steps: int
) -> None:
    row = attempted(bench, [applying(bench.task.patch), *[LOOK] * 9], **options)
    assert (row["ending"], row["steps"], row["solved"]) == (ending, steps, True)
    assert row["detail"] == "" if ending == "step_limit" else row["detail"]


def test_the_time_limit_ends_commands_too(bench: Bench) -> None:
    script = [calls(("run", {"command": "sleep 60"})), LOOK]
    row = attempted(bench, script, max_wall_s=2.0)
    assert (row["ending"], row["steps"], row["reasons"]) == ("time_limit", 1, ["empty_diff"])
    assert row["wall_s"] < 15


def test_a_model_that_calls_no_tool(bench: Bench) -> None:
    assert attempted(bench, [says("I would rather not.")] * 5)["ending"] == "malformed_calls"


def test_a_conversation_that_becomes_too_long(bench: Bench) -> None:
    script = [LOOK, fails(400, "This model's maximum context length is 100 tokens")]
    assert attempted(bench, script)["ending"] == "context_full"


def test_an_endpoint_that_fails_is_no_attempt(bench: Bench) -> None:
    with ScriptedServer([fails(401), LOOK, FINISH]) as server:
        settings = bench.with_model(server.url)
        (lost,) = bench.solve("model", settings=settings).lost
        assert (lost.reason, bench.rows()) == ("model_unavailable", [])
        assert bench.solve("model", settings=settings).num_new == 1
    assert bench.row()["ending"] == "finished"


def test_attempts_are_replayed_from_their_transcripts(bench: Bench) -> None:
    first = attempted(bench, [applying(bench.task.patch), FINISH])
    settings = bench.with_model("", replay=bench.out / "cache" / "transcripts")
    (bench.out / "attempts" / "model-scripted-specification" / f"{first['attempt_id']}.parquet").unlink()
    settings = settings.model_copy(update={"cache": bench.out / "other"})
    assert isinstance(settings.model, ModelSettings)
    bench.solve("model", settings=settings)
    again = bench.row()
    same = ("diff", "solved", "steps", "prompt_tokens", "completion_tokens")
    assert [again[name] for name in same] == [first[name] for name in same]
