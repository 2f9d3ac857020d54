"""The proxy between an agent's own program and the endpoint: real sockets on both sides."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
import requests

from excise.agents.budget import Budget, Meter
from excise.agents.metered_proxy import MeteredProxy
from excise.config import ModelSettings
from excise.errors import AgentError

from .scripted_server import Answer, ScriptedServer, completion, fails, says

HELLO: Any = [{"role": "user", "content": "hello"}]


def proxy_of(server: ScriptedServer, *, max_steps: int = 9, **budget: Any) -> MeteredProxy:
    return MeteredProxy(ModelSettings(base_url=server.url, model="real"), Meter(Budget(**budget)), max_steps)


def client_of(proxy: MeteredProxy) -> openai.OpenAI:
    return openai.OpenAI(base_url=proxy.url, api_key=proxy.key, max_retries=0)


def test_replies_are_passed_on_and_counted() -> None:
    with ScriptedServer([says("hi", tokens=(30, 7))]) as server, proxy_of(server, max_tokens=1000) as proxy:
        reply = client_of(proxy).chat.completions.create(model="fake", messages=HELLO, max_tokens=5000)
        assert reply.choices[0].message.content == "hi"
        (sent,) = server.requests
    assert (sent["model"], proxy.steps, proxy.meter.spent.total) == ("real", 1, 37)
    assert 900 < sent["max_tokens"] <= 1000


def test_streams_are_passed_on_and_counted() -> None:
    chunks: list[dict[str, Any]] = [
        {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None}]}
        for word in ("good ", "day")
    ]  # fmt: skip
    usage = {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}
    chunks.append({**chunks[0], "choices": [], "usage": usage})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    answer = Answer(body=body.encode(), headers={"Content-Type": "text/event-stream"})
    with ScriptedServer([answer]) as server, proxy_of(server) as proxy:
        stream = client_of(proxy).chat.completions.create(model="m", messages=HELLO, stream=True)
        words = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
        assert server.requests[0]["stream_options"] == {"include_usage": True}
    assert words == ["good ", "day"]
    assert (proxy.meter.spent.prompt_tokens, proxy.meter.spent.completion_tokens) == (11, 2)


def test_tokens_that_nobody_reports_are_estimated() -> None:
    answer = completion({"role": "assistant", "content": "x" * 300}, "stop", None)
    with ScriptedServer([answer]) as server, proxy_of(server) as proxy:
        client_of(proxy).chat.completions.create(model="m", messages=HELLO)
    assert proxy.meter.spent.completion_tokens >= 100
    assert proxy.meter.spent.prompt_tokens > 0


@pytest.mark.parametrize(("steps", "budget"), [(1, {}), (9, {"max_tokens": 50}), (9, {"max_cost": 1e-5})])
def test_requests_beyond_a_limit_are_refused(steps: int, budget: dict[str, Any]) -> None:
    script = [says("one", tokens=(40, 10))] * 3
    with ScriptedServer(script) as server, proxy_of(server, max_steps=steps, prompt_price=1.0, **budget) as proxy:
        client_of(proxy).chat.completions.create(model="m", messages=HELLO)
        assert proxy.refused_at is None
        with pytest.raises(openai.PermissionDeniedError, match="budget of this attempt is used up"):
            client_of(proxy).chat.completions.create(model="m", messages=HELLO)
        assert len(server.requests) == 1
    assert proxy.refused_at is not None


def test_only_the_agent_may_ask() -> None:
    with ScriptedServer([says("no")]) as server, proxy_of(server) as proxy:
        for headers in ({}, {"Authorization": "Bearer guessed"}):
            for method in ("GET", "POST"):
                answer = requests.request(method, f"{proxy.url}/models", json={}, headers=headers, timeout=10)
                assert answer.status_code == 401
        headers = {"Authorization": f"Bearer {proxy.key}"}
        for path, data, status in (("/embeddings", "{}", 404), ("/chat/completions", "[]", 400)):
            answer = requests.post(f"{proxy.url}{path}", data=data, headers=headers, timeout=10)
            assert answer.status_code == status
        assert server.requests == []


def test_failures_of_the_endpoint_are_told_and_kept_until_it_answers() -> None:
    with ScriptedServer([fails(503), fails(400, "bad request"), says("hi")]) as server, proxy_of(server) as proxy:
        with pytest.raises(openai.InternalServerError):
            client_of(proxy).chat.completions.create(model="m", messages=HELLO)
        assert "status 503" in proxy.failure
        with pytest.raises(openai.BadRequestError, match="bad request"):
            client_of(proxy).chat.completions.create(model="m", messages=HELLO)
        client_of(proxy).chat.completions.create(model="m", messages=HELLO)
        assert (proxy.failure, proxy.steps) == ("", 1)
    with proxy_of(server) as proxy:  # the endpoint is gone
        with pytest.raises(openai.InternalServerError):
            client_of(proxy).chat.completions.create(model="m", messages=HELLO)
        assert "ConnectionError" in proxy.failure


def test_a_missing_key_is_an_error() -> None:
    settings = ModelSettings(base_url="http://localhost:1/v1", model="m", api_key_env="NO_SUCH_KEY")
    with pytest.raises(AgentError, match="NO_SUCH_KEY is not set"):
        MeteredProxy(settings, Meter(Budget()), 1, {})
