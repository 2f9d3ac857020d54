"""The client against a real socket: retries, delays, budgets and the handling of the API key."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from excise.agents.budget import Budget, Meter, budget_of
from excise.agents.client import OpenAIClient
from excise.agents.messages import Message, Reply, Request, ToolCall, Usage
from excise.agents.retries import MAX_TRIES, retry_after
from excise.agents.text_calls import parse_calls, with_text_tools
from excise.config import ModelSettings, load
from excise.errors import AgentError, ConfigError

from .scripted_server import Answer, ScriptedServer, calls, completion, drops, fails, says

ADD = {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}
REQUEST = Request(model="m", messages=(Message(role="user", content="hello"),), tools=(ADD,))


class SleepRecorder:
    """Replaces ``time.sleep`` and records the seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def ask(
    server: ScriptedServer, request: Request = REQUEST, sleep: SleepRecorder | None = None, **settings: object
) -> tuple[Reply, Meter]:
    model_settings = ModelSettings(base_url=server.url, model="m", **settings)  # type: ignore[arg-type]
    meter = Meter(budget_of(model_settings))
    client = OpenAIClient(model_settings, meter, environ={"KEY": "s3cret-value"}, sleep=sleep or SleepRecorder())
    return client.complete(request), meter


def test_a_call_comes_back_and_is_counted() -> None:
    with ScriptedServer([calls(("add", {"a": 1}), tokens=(70, 9))]) as server:
        reply, meter = ask(server, api_key_env="KEY")
    assert reply.message.tool_calls == (ToolCall(call_id="c0", name="add", arguments='{"a": 1}'),)
    assert meter.spent == Usage(prompt_tokens=70, completion_tokens=9)
    assert server.headers[0]["authorization"] == "Bearer s3cret-value"
    sent = server.requests[0]
    assert sent["tools"] == [{"type": "function", "function": ADD}]
    assert sent["messages"] == [{"role": "user", "content": "hello"}]


def test_tokens_are_estimated_if_the_server_reports_none() -> None:
    with ScriptedServer([completion({"role": "assistant", "content": "x" * 300}, "stop", None)]) as server:
        _, meter = ask(server)
    assert meter.spent.completion_tokens == 100
    assert meter.spent.prompt_tokens > 0


@pytest.mark.parametrize(
    "responses",
    [
        [fails(500), fails(503)],
        [fails(408), drops()],
        [drops(), drops()],
        [Answer(body=b"<html>not json"), Answer(body={"choices": []})],
        [fails(429), fails(529)],
    ],
)
def test_temporary_failures_are_retried(responses: list[Answer]) -> None:
    sleep = SleepRecorder()
    with ScriptedServer([*responses, says("at last")]) as server:
        reply, _ = ask(server, sleep=sleep)
    assert reply.message.content == "at last"
    assert len(sleep.seconds) == 2
    assert 0 < sleep.seconds[0] <= 0.5 < sleep.seconds[1] <= 1.0


def test_retry_after_headers_are_followed() -> None:
    sleep = SleepRecorder()
    retry_date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    with ScriptedServer([fails(429, retry_after="7"), fails(503, retry_after=retry_date), says("ok")]) as server:
        ask(server, sleep=sleep)
    assert sleep.seconds[0] == 7
    assert 15 < sleep.seconds[1] <= 20
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_the_delay_is_real() -> None:
    with ScriptedServer([fails(429, retry_after="0.3"), says("ok")]) as server:
        settings = ModelSettings(base_url=server.url, model="m")
        OpenAIClient(settings, Meter(budget_of(settings))).complete(REQUEST)
    assert server.times[1] - server.times[0] >= 0.3


def test_delays_beyond_the_time_limit_are_refused() -> None:
    sleep = SleepRecorder()
    with ScriptedServer([fails(429, retry_after="3600")]) as server, pytest.raises(AgentError) as caught:
        ask(server, sleep=sleep, max_wall_s=600)
    assert caught.value.reason == "model_unavailable"
    assert "3600 s" in str(caught.value)
    assert sleep.seconds == []


def test_a_server_that_never_answers_times_out() -> None:
    began = time.monotonic()
    slow = Answer(body={}, delay_s=30)
    with ScriptedServer([slow] * MAX_TRIES) as server, pytest.raises(AgentError) as caught:
        ask(server, max_wall_s=2.0, call_timeout_s=1.0)
    assert caught.value.reason in {"budget", "model_unavailable"}
    assert time.monotonic() - began < 15


def test_a_reply_that_the_time_of_the_job_does_not_suffice_for_is_no_verdict() -> None:
    with (
        ScriptedServer([Answer(delay_s=3.0)]) as server,
        pytest.raises(AgentError, match="did not answer within the job's 1 s") as caught,
    ):
        ask(server, max_wall_s=1.0)
    assert caught.value.reason == "model_unavailable"


def test_a_server_that_is_down_is_an_error_with_a_remedy() -> None:
    with ScriptedServer([]) as server:
        pass
    with pytest.raises(AgentError, match=r"cannot be reached\. Is model\.base_url right") as caught:
        ask(server)
    assert caught.value.reason == "model_unavailable"


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        (fails(401, "wrong key s3cret-value"), "model_unavailable", r"Put a valid key into \$KEY.*\[key\]"),
        (fails(404, "no such model"), "model_unavailable", "has no model 'm'"),
        (fails(429, "insufficient_quota"), "model_unavailable", "quota"),
        (fails(400, "This model's maximum context length is 10"), "budget", r"Lower model\.context_chars"),
        (fails(400, "bad"), "model_unavailable", "status 400"),
    ],
)
def test_final_failures_are_not_retried_and_name_a_remedy(answer: Answer, reason: str, message: str) -> None:
    sleep = SleepRecorder()
    with ScriptedServer([answer]) as server, pytest.raises(AgentError, match=message) as caught:
        ask(server, sleep=sleep, api_key_env="KEY")
    assert caught.value.reason == reason
    assert "s3cret" not in str(caught.value)
    assert sleep.seconds == []


def test_the_key_is_removed_from_replies() -> None:
    with ScriptedServer([says("your key is s3cret-value")]) as server:
        reply, _ = ask(server, api_key_env="KEY")
    assert reply.message.content == "your key is [key]"


def test_halves_of_surrogate_pairs_in_replies_are_replaced() -> None:
    with ScriptedServer([says("a\ud800b \ud83d\ude00"), calls(("add\udc00", {}))]) as server:
        told, called = ask(server)[0], ask(server)[0]
    assert told.message.content == "a\ufffdb \U0001f600"
    assert called.message.tool_calls[0].name == "add\ufffd"


def test_a_missing_key_or_endpoint_is_named() -> None:
    for model_settings, message in (
        (ModelSettings(base_url="http://x/v1", model="m", api_key_env="NOT_THERE"), "NOT_THERE is not set"),
        (ModelSettings(model="m"), r"Set model\.base_url"),
    ):
        with pytest.raises(AgentError, match=message):
            OpenAIClient(model_settings, Meter(Budget()), environ={})


# ------------------------------------------------------------------------------------- budgets
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_tokens": 100}, r"model\.max_tokens"),
        ({"max_cost": 0.001, "prompt_price": 10.0}, r"model\.max_cost"),
        ({"max_wall_s": 600}, r"model\.max_wall_s"),
    ],
)
def test_no_request_is_sent_once_the_budget_is_used_up(settings: dict[str, float], message: str) -> None:
    with ScriptedServer([says("one", tokens=(100, 1)), says("two")]) as server:
        model_settings = ModelSettings(base_url=server.url, model="m", **settings)  # type: ignore[arg-type]
        ahead_s = 0.0
        meter = Meter(budget_of(model_settings), clock=lambda: time.monotonic() + ahead_s)
        client = OpenAIClient(model_settings, meter, environ={})
        client.complete(REQUEST)
        ahead_s = 601.0
        with pytest.raises(AgentError, match=message) as caught:
            client.complete(REQUEST)
    assert caught.value.reason == "budget"
    assert len(server.requests) == 1


def test_replies_are_limited_to_the_rest_of_the_budget() -> None:
    with ScriptedServer([says("one")]) as server:
        ask(server, max_tokens=200, max_reply_tokens=4096)
    assert 100 < server.requests[0]["max_tokens"] < 200
    meter = Meter(Budget(max_cost=1.0, completion_price=1e6, prompt_price=0))
    assert meter.reply_tokens(50, 10) == 1


# ---------------------------------------------------------------------------------- plain text
def test_calls_in_text_are_found() -> None:
    text = 'I will.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call> <tool_call>{"name": 3}'
    first, second = parse_calls(text)
    assert (first.name, first.arguments) == ("add", '{"a": 1}')
    assert (second.name, second.arguments) == ("", '{"name": 3}')
    (fenced,) = parse_calls('```json\n{"name": "add", "parameters": {}}\n```')
    assert fenced.name == "add"
    assert parse_calls("nothing here") == ()


@pytest.mark.parametrize("written", ["[" * 3000, '{"name": "\\ud800"}', '{"name": "add", "arguments": ' + "[" * 3000])
def test_invalid_json_is_an_invalid_call(written: str) -> None:
    (call,) = parse_calls(f"<tool_call>{written}</tool_call>")
    assert (call.name, call.arguments) == ("", written)


def test_an_endpoint_without_tool_calling_uses_text() -> None:
    call = ToolCall(call_id="c", name="add", arguments="{}")
    request = Request(
        model="m",
        messages=(
            Message(role="system", content="Be brief."),
            Message(role="user", content="go"),
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", content="3", tool_call_id="c"),
            Message(role="user", content="and now?"),
        ),
        tools=(ADD,),
    )
    with ScriptedServer([says('<tool_call>{"name": "add", "arguments": {"b": 2}}</tool_call>')]) as server:
        reply, _ = ask(server, request, tool_calls="text")
    sent = server.requests[0]
    assert "tools" not in sent
    assert [m["role"] for m in sent["messages"]] == ["system", "user", "assistant", "user"]
    assert '"description": "Adds."' in sent["messages"][0]["content"]
    assert '<tool_call>{"name": "add", "arguments": {}}</tool_call>' in sent["messages"][2]["content"]
    assert sent["messages"][3]["content"].startswith("<tool_response>\n3\n</tool_response>")
    assert reply.message.tool_calls[0].arguments == '{"b": 2}'
    assert with_text_tools(REQUEST).messages[0].role == "system"


# -------------------------------------------------------------------------------------- config
@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.api_key_env=sk-abc", "NAME of an environment variable"),
        ("model.api_key=sk-abc", "no such setting"),
        ("model.base_url=http://me:sk-abc@host/v1", "without a user or key"),
        ("model.base_url=host/v1", "write http"),
    ],
)
def test_keys_are_refused_in_settings_and_not_repeated(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load(overrides=[override], environ={})
    assert "sk-abc" not in str(caught.value).replace(f"--set {override}", "")


def test_settings_come_from_file_and_environment(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[model]\nbase_url = "http://localhost:1/v1"\nmax_cost = 1.5\nreplay = "kept"\n')
    settings = load([tmp_path / "a.toml"], environ={"EXCISE_MODEL__MODEL": "some/model"})
    assert settings.model.is_configured
    assert (settings.model.model, settings.model.max_cost) == ("some/model", 1.5)
    assert settings.model.replay == tmp_path / "kept"
    assert not load(environ={}).model.is_configured
