"""The tool loop against a real socket: calls, errors for the model, limits, transcripts and replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from excise.agents.budget import Meter, budget_of
from excise.agents.client import OpenAIClient
from excise.agents.messages import Client, Message, Request, ToolCall, conversation_chars
from excise.agents.replay import Recording, ReplayClient, ReplayTranscript
from excise.agents.tool import Arguments, MalformedCall, Result, Tool, ToolError, clip
from excise.agents.tool_loop import DROPPED_RESULT, Limits, LoopResult, StopReason, drop_old_results, run_tool_loop
from excise.agents.transcript import Transcript, read_events
from excise.config import ModelSettings
from excise.errors import AgentError

from .scripted_server import Script, ScriptedServer, calls, fails, says

OPENING = Request(model="m", messages=(Message(role="system", content="Add."), Message(role="user", content="1 + 2")))
LIMITS = Limits(max_steps=6, max_malformed=3, result_chars=100)


class Add(Arguments):
    """Two numbers."""

    a: int = Field(description="first")
    b: int


class Finish(Arguments):
    answer: int


def add(arguments: Add) -> str:
    if arguments.a > 1000:
        raise ToolError("too large, use smaller numbers")
    return str(arguments.a + arguments.b)


TOOLS: list[Tool[Any]] = [
    Tool(name="add", description="Adds.", arguments=Add, run=add),
    Tool(name="finish", description="Ends.", arguments=Finish,
         run=lambda arguments: Result(text="done", final=True, value=arguments.answer)),
]  # fmt: skip


def run_script(script: Script, path: Path, limits: Limits = LIMITS) -> tuple[LoopResult, ScriptedServer]:
    with ScriptedServer(script) as server, Transcript(path) as transcript:
        settings = ModelSettings(base_url=server.url, model="m", api_key_env="KEY")
        client = OpenAIClient(
            settings, Meter(budget_of(settings)), environ={"KEY": "s3cret-value"}, sleep=lambda seconds: None
        )
        return run_tool_loop("sums", client, OPENING, TOOLS, limits, transcript), server


def test_a_conversation_to_its_end(tmp_path: Path) -> None:
    script = [
        calls(("add", {"a": 1, "b": 2}), ("add", {"a": 5000, "b": 2})),
        calls(("finish", {"answer": 3}), ("add", {"a": 1, "b": 1})),
    ]
    result, server = run_script(script, tmp_path / "t.jsonl")
    assert (result.stop_reason, result.value, result.steps, result.malformed) == (StopReason.FINISHED, 3, 2, 0)
    tool_results = [m["content"] for m in server.requests[1]["messages"] if m["role"] == "tool"]
    assert tool_results == ["3", "error: too large, use smaller numbers"]
    schema = server.requests[0]["tools"][0]["function"]
    assert schema["parameters"]["additionalProperties"] is False
    assert schema["parameters"]["properties"]["a"]["description"] == "first"
    assert result.messages[-1].content == "done"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("subtract", {"a": 1}, "there is no tool 'subtract'; there are: add, finish"),
        ("add", '{"a": 1,', "Invalid JSON"),
        ("add", {"a": 1}, "b: Field required"),
        ("add", {"a": 1, "b": 2, "c": 3}, "c: Extra inputs are not permitted"),
        ("add", {"a": "x", "b": 2}, "a: Input should be a valid integer"),
        ("add", '["a"]', "Input should be an object"),
        ("", "{}", "there is no tool ''"),
    ],
)
def test_malformed_calls_are_answered(tmp_path: Path, name: str, arguments: object, message: str) -> None:
    result, server = run_script([calls((name, arguments)), calls(("finish", {"answer": 1}))], tmp_path / "t.jsonl")
    assert message in server.requests[1]["messages"][-1]["content"]
    assert (result.stop_reason, result.malformed) == (StopReason.FINISHED, 1)


def test_too_many_malformed_calls_end_the_conversation(tmp_path: Path) -> None:
    bad, good = calls(("nope", {})), calls(("add", {"a": 1, "b": 1}))
    result, server = run_script([bad, says("let me think"), good, bad, says("hm"), bad, good], tmp_path / "t.jsonl",
                           replace(LIMITS, max_steps=20))  # fmt: skip
    assert (result.stop_reason, result.steps, result.malformed) == (StopReason.MALFORMED_CALLS, 6, 5)
    assert "Answer with a call of a tool: add, finish." in server.requests[2]["messages"][-1]["content"]


def test_the_step_limit_ends_a_conversation(tmp_path: Path) -> None:
    result, server = run_script([calls(("add", {"a": 1, "b": 1}))] * 10, tmp_path / "t.jsonl")
    assert (result.stop_reason, result.value, len(server.requests)) == (StopReason.STEP_LIMIT, None, 6)


def test_long_results_are_cut_in_the_middle(tmp_path: Path) -> None:
    assert clip("x" * 100, 100) == "x" * 100
    text = clip("a" * 500 + "b" * 500, 100)
    assert text == f"{'a' * 50}\n[... 900 characters left out ...]\n{'b' * 50}"
    path = tmp_path / "t.jsonl"
    long = Tool(name="add", description="", arguments=Add, run=lambda arguments: "y" * 5000)
    with ScriptedServer([calls(("add", {"a": 1, "b": 2})), says("x")]) as server, Transcript(path) as transcript:
        settings = ModelSettings(base_url=server.url, model="m")
        client = OpenAIClient(settings, Meter(budget_of(settings)))
        run_tool_loop("cut", client, OPENING, [long], replace(LIMITS, max_steps=2), transcript)
    assert len(server.requests[1]["messages"][-1]["content"]) < 200


def test_old_results_are_dropped_first() -> None:
    call = ToolCall(call_id="c", name="add", arguments="{}")
    messages = [Message(role="system", content="s" * 100)]
    for number in range(10):
        messages += [
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", content=str(number) * 1000, tool_call_id="c"),
        ]
    request = Request(model="m", messages=tuple(messages))
    shorter = drop_old_results(request, 4000)
    assert conversation_chars(shorter.messages) <= 4000
    contents = [m.content for m in shorter.messages if m.role == "tool"]
    assert contents[:7] == [DROPPED_RESULT] * 7
    assert contents[-1] == "9" * 1000
    assert drop_old_results(request, 100_000) == request


def test_other_errors_of_a_tool_end_the_conversation(tmp_path: Path) -> None:
    def broken(arguments: Add) -> str:
        raise AgentError("broken")

    tool = Tool(name="add", description="", arguments=Add, run=broken)
    with ScriptedServer([calls(("add", {"a": 1, "b": 2}))]) as server, Transcript(tmp_path / "t.jsonl") as transcript:
        settings = ModelSettings(base_url=server.url, model="m")
        client = OpenAIClient(settings, Meter(budget_of(settings)))
        with pytest.raises(AgentError, match="broken"):
            run_tool_loop("x", client, OPENING, [tool], LIMITS, transcript)
    with pytest.raises(MalformedCall):
        tool.parse("nonsense")


# --------------------------------------------------------------------------------- transcripts
SCRIPT = [
    calls(("add", {"a": 1, "b": 2}), ("add", {})),
    fails(500),
    says("hm"),
    calls(("finish", {"answer": 3})),
]


def replayed(path: Path, into: Path, change: Callable[[Request], Request] = lambda r: r, strict: bool = False,
             tools: list[Tool[Any]] = TOOLS) -> tuple[LoopResult, int]:  # fmt: skip
    recording = Recording(path)
    client: Client = ReplayClient(recording)
    with ReplayTranscript(into, recording, strict=strict) as transcript:
        return run_tool_loop("sums", client, change(OPENING), tools, LIMITS, transcript), transcript.num_drifted


def test_a_transcript_is_replayed_exactly_without_a_server(tmp_path: Path) -> None:
    path, again = tmp_path / "t.jsonl", tmp_path / "again.jsonl"
    result, _ = run_script(SCRIPT, path)
    assert replayed(path, again, strict=True) == (result, 0)

    def without_times(events: list[Any]) -> list[Any]:
        return [{k: v for k, v in event.items() if k not in ("time", "wall_s")} for event in events]

    assert without_times(read_events(again)) == without_times(read_events(path))
    kinds = [event["event"] for event in read_events(path)]
    assert kinds == ["job", "start", "reply", "tool", "tool", "reply", "reply", "tool", "end"]
    assert read_events(path)[4]["malformed"] is True
    assert "s3cret" not in path.read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: replace(r, model="other"), 'model differs: "other" was "m"'),
        (lambda r: replace(r, messages=(r.messages[0], Message(role="user", content="2 + 2"))), "message 1 differs"),
        (lambda r: replace(r, temperature=1.0), "temperature differs"),
    ],
)
def test_a_job_with_another_opening_is_refused(
    tmp_path: Path, change: Callable[[Request], Request], message: str
) -> None:
    path = tmp_path / "t.jsonl"
    run_script(SCRIPT, path)
    with pytest.raises(AgentError, match=message) as caught:
        replayed(path, tmp_path / "again.jsonl", change)
    assert caught.value.reason == "replay_differs"


def test_differing_results_are_replaced_by_the_recorded_ones(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    run_script(SCRIPT, path)
    varying = [replace(TOOLS[0], run=lambda arguments: "took 0.2 s"), TOOLS[1]]
    result, num_differing = replayed(path, tmp_path / "again.jsonl", tools=varying)
    assert (result.value, num_differing) == (3, 1)
    with pytest.raises(AgentError, match=r"add says 'took 0\.2 s', not '3'"):
        replayed(path, tmp_path / "again.jsonl", tools=varying, strict=True)


def test_a_job_that_differs_from_its_transcript_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    run_script(SCRIPT, path)
    never_final = [TOOLS[0], replace(TOOLS[1], run=lambda arguments: Result(text="done"))]
    with pytest.raises(AgentError, match="does reply or error where the transcript has end"):
        replayed(path, tmp_path / "again.jsonl", tools=never_final)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:4]) + "\n")
    with pytest.raises(AgentError, match="where the transcript has nothing more"):
        replayed(path, tmp_path / "again.jsonl")


def test_a_recorded_failure_is_replayed_as_one(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with pytest.raises(AgentError) as first:
        run_script([calls(("add", {"a": 1, "b": 2})), fails(401, "bad key s3cret-value")], path)
    with pytest.raises(AgentError) as second:
        replayed(path, tmp_path / "again.jsonl")
    assert (str(second.value), second.value.reason) == (str(first.value), first.value.reason)
    assert "s3cret" not in path.read_text()


@pytest.mark.parametrize("text", ["", "not json\n", json.dumps({"event": "job", "version": 99}), "[]\n"])
def test_files_that_are_not_transcripts_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(AgentError) as caught:
        Recording(path)
    assert caught.value.reason == "bad_transcript"
    with pytest.raises(AgentError):
        Recording(tmp_path / "missing.jsonl")
