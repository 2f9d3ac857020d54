"""A local proxy for an OpenAI-compatible endpoint, which counts what an agent uses and ends it at its budget.

Agents that are programs of their own get its address in place of the endpoint's. It adds the key, which they never
see, sets the model's name, and refuses requests when a limit is reached; so tokens, steps and cost of every agent are
counted in the same way, outside of it. Streamed replies are passed on as they come.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests

from excise.agents.budget import Meter
from excise.agents.chat_format import CHARS_PER_TOKEN
from excise.agents.messages import Usage
from excise.config import ModelSettings
from excise.errors import AgentError

MAX_REQUEST = 64 << 20
"""Maximum size of a request in bytes."""
BUDGET_STATUS = 403
"""Status of refused requests: most clients do not try again after it."""
_FORWARDED = ("content-type", "retry-after")


class MeteredProxy:
    """Serves one attempt; a context manager. Raises :class:`AgentError` if the variable with the key is not set."""

    def __init__(
        self, settings: ModelSettings, meter: Meter, max_steps: int, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.settings, self.meter, self.max_steps = settings, meter, max_steps
        self.key = secrets.token_urlsafe(24)
        """What the agent has to send as its API key."""
        self.steps = 0
        """Number of replies."""
        self.refused_at: float | None = None
        """When the first request was refused because a limit is reached, in seconds of the monotonic clock."""
        self.failure = ""
        """Why the last request got no reply from the endpoint; empty if it got one."""
        self._lock = threading.Lock()
        self._upstream_key = environ.get(settings.api_key_env, "").strip() if settings.api_key_env else ""
        if settings.api_key_env and not self._upstream_key:
            raise AgentError(f"The environment variable {settings.api_key_env} is not set; put the key into it.")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.block_on_close = False

    @property
    def url(self) -> str:
        """Base URL for the agent's client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> MeteredProxy:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def exhausted(self) -> tuple[str, str]:
        """The limit that is reached (a field of the budget, or ``max_steps``), and a sentence; empty if none is."""
        if self.steps >= self.max_steps:
            return "max_steps", f"the model has answered {self.steps} times"
        return self.meter.exhausted()

    def headers(self) -> dict[str, str]:
        """Headers of requests to the endpoint."""
        return {"Authorization": f"Bearer {self._upstream_key}"} if self._upstream_key else {}

    def prepared(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request to send in place of an agent's: of the configured model, with no more tokens than are left."""
        name = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        wanted = body.get(name)
        limit = wanted if isinstance(wanted, int) and wanted > 0 else self.settings.max_reply_tokens
        estimate = len(json.dumps(body.get("messages", ""))) // CHARS_PER_TOKEN
        body = {**body, "model": self.settings.model, name: self.meter.reply_tokens(limit, estimate)}
        if body.get("stream"):
            body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
        return body

    def count(self, request: Mapping[str, Any], reply: bytes) -> None:
        """Count one reply; without a report of the endpoint, its tokens are estimated."""
        usage = _reported_usage(reply) or Usage(
            prompt_tokens=len(json.dumps(request.get("messages", ""))) // CHARS_PER_TOKEN,
            completion_tokens=len(reply) // CHARS_PER_TOKEN,
        )
        with self._lock:
            self.meter.add(usage)
            self.steps += 1
            self.failure = ""

    def fail(self, why: str) -> None:
        """Note that the endpoint gave no reply."""
        self.failure = why

    def refuse(self) -> None:
        """Note that a request was refused."""
        with self._lock:
            self.refused_at = time.monotonic() if self.refused_at is None else self.refused_at


def _reported_usage(reply: bytes) -> Usage | None:
    """The usage that a reply reports: a JSON object, or the events of a stream."""
    texts = [reply] if not reply.lstrip().startswith(b"data:") else []
    texts += [line[5:] for line in reply.splitlines() if line.startswith(b"data:")]
    for text in reversed(texts):
        with contextlib.suppress(ValueError, AttributeError):
            usage = json.loads(text).get("usage") or {}
            prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
            if isinstance(prompt, int) and isinstance(completion, int):
                return Usage(prompt_tokens=max(0, prompt), completion_tokens=max(0, completion))
    return None


def _handler(proxy: MeteredProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Pass a question on, such as the list of models."""
            if self._is_allowed():
                self._forward("GET", None)

        def do_POST(self) -> None:
            """Pass a request for a reply on, within the budget."""
            if not self._is_allowed():
                return
            length = int(self.headers.get("Content-Length") or 0)
            try:
                body = json.loads(self.rfile.read(length)) if 0 < length <= MAX_REQUEST else None
            except ValueError:
                body = None
            if not isinstance(body, dict):
                self._refuse(400, "the request is no JSON object")
            elif "/completions" not in self.path:
                self._refuse(404, "only chat/completions and completions are offered")
            elif (reached := proxy.exhausted())[0]:
                proxy.refuse()
                self._refuse(BUDGET_STATUS, f"the budget of this attempt is used up: {reached[1]}")
            else:
                self._forward("POST", proxy.prepared(body))

        def _is_allowed(self) -> bool:
            given = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
            if not secrets.compare_digest(given.encode(), proxy.key.encode()):
                self._refuse(401, "send the API key of this attempt")
                return False
            if not self.path.startswith("/v1/"):
                self._refuse(404, "the base URL ends in /v1")
                return False
            return True

        def _refuse(self, status: int, message: str) -> None:
            data = json.dumps({"error": {"message": message, "type": "excise", "code": None}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(data)

        def _forward(self, method: str, body: dict[str, Any] | None) -> None:
            url = proxy.settings.base_url.rstrip("/") + self.path.removeprefix("/v1")
            timeout = max(1.0, min(proxy.settings.call_timeout_s, proxy.meter.left_s()))
            received = bytearray()
            try:
                with requests.request(
                    method, url, json=body, headers=proxy.headers(), timeout=timeout, stream=True, allow_redirects=False
                ) as answer:
                    self.send_response(answer.status_code)
                    for name in _FORWARDED:
                        if name in answer.headers:
                            self.send_header(name, answer.headers[name])
                    self.end_headers()
                    for chunk in answer.iter_content(None):
                        received += chunk
                        self._pass_on(chunk)
            except requests.RequestException as error:
                proxy.fail(f"{proxy.settings.base_url}: {type(error).__name__}")
                if not received:
                    self._refuse(502, "the endpoint does not answer")
                return
            if answer.status_code == 200 and body is not None:
                proxy.count(body, bytes(received))
            elif answer.status_code in (401, 403, 404, 429) or answer.status_code >= 500:
                proxy.fail(f"{proxy.settings.base_url} answers with status {answer.status_code}")

        def _pass_on(self, chunk: bytes) -> None:
            with contextlib.suppress(OSError):  # a client that is gone: what it used counts all the same
                self.wfile.write(chunk)
                self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
