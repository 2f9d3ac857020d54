"""Real mini-swe-agent from PyPI, whose commands run in the sandbox, with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from excise.config import Settings
from excise.errors import ConfigError
from excise.pipeline.solve.mini_agent import MiniAgent

from ...agents.scripted_server import Answer, ScriptedServer, calls
from .solving import Bench, git_apply

pytestmark = pytest.mark.slow
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def bash(command: str) -> Answer:
    return calls(("bash", {"command": command}), text="I go on.")


def attempted(bench: Bench, venv: Path, script: list[Answer], **options: Any) -> dict[str, Any]:
    with ScriptedServer(script) as server:
        settings = bench.with_model(server.url, prompt_price=2.0, completion_price=10.0, **options)
        result = bench.solve(MiniAgent(settings, {"EXCISE_MINI_VENV": str(venv)}), settings=settings)
        assert len(server.requests) == len(script)
        assert bench.task.problem_statement.split("\n")[0] in json.dumps(server.requests[0]["messages"][1])
    assert result.lost == ()
    return bench.row()


def test_mini_swe_agent_solves_a_task_in_the_sandbox(bench: Bench, mini_swe_agent: Path) -> None:
    script = [bash("pwd; ls /excise/inside; cat no-such-file"), bash(git_apply(bench.task.patch)), bash(SUBMIT)]
    row = attempted(bench, mini_swe_agent, script)
    assert (row["solved"], row["ending"], row["steps"], row["flags"]) == (True, "finished", 3, [])
    assert (row["prompt_tokens"], row["completion_tokens"]) == (300, 60)
    assert row["cost"] == pytest.approx((300 * 2 + 60 * 10) / 1e6)
    assert row["agent_detail"] == "mini-swe-agent 2.4.6"
    messages = json.loads(row["transcript"])["messages"]
    first = next(message for message in messages if message["role"] == "tool")
    assert "/testbed" in first["content"]
    assert "No such file" in first["content"]
    trajectory = next((bench.out / "attempts").glob("*/*.jsonl")).read_text()
    assert "no-such-file" in trajectory


def test_mini_swe_agent_is_ended_by_the_budget(bench: Bench, mini_swe_agent: Path) -> None:
    script = [bash(git_apply(bench.task.patch)), bash("true")]
    row = attempted(bench, mini_swe_agent, script, max_tokens=200)
    assert (row["ending"], row["steps"], row["solved"]) == ("token_limit", 2, True)


def test_what_mini_swe_agent_needs() -> None:
    with pytest.raises(ConfigError, match="needs a model"):
        MiniAgent(Settings(), {})
    settings = Settings.model_validate({"model": {"base_url": "http://localhost:1/v1", "model": "m"}})
    with pytest.raises(ConfigError, match=r"no mini-swe-agent on the path.*pip install mini-swe-agent"):
        MiniAgent(settings, {"PATH": "/nowhere"})
