"""An OpenAI-compatible endpoint over a real socket that answers from a list. Standard library only.

An answer is one of: ``calls(...)``, ``says(text)``, ``fails(status, ...)``, ``drops()``, or a function from the
request's JSON to one of these. Every request is kept with its headers.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One HTTP response."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    delay_s: float = 0.0


Script = Sequence[Answer | Callable[[dict[str, Any]], Answer]]


def calls(*named: tuple[str, Any], tokens: tuple[int, int] = (100, 20), text: str = "") -> Answer:
    """An answer that calls tools: ``(name, arguments)`` each; arguments that are text are sent as they are."""
    tool_calls = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)},
        }
        for number, (name, arguments) in enumerate(named)
    ]
    return completion({"role": "assistant", "content": text, "tool_calls": tool_calls}, "tool_calls", tokens)


def says(text: str, tokens: tuple[int, int] = (100, 20)) -> Answer:
    """A text answer without tool calls."""
    return completion({"role": "assistant", "content": text}, "stop", tokens)


def completion(message: dict[str, Any], finish: str, tokens: tuple[int, int] | None) -> Answer:
    """A chat-completions response with one message."""
    body = {
        "id": "x", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
    }  # fmt: skip
    if tokens is not None:
        body["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return Answer(body=body)


def fails(status: int, message: str = "no", **headers: str) -> Answer:
    """An error response with headers, such as ``retry_after="2"``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body={"error": {"message": message, "type": "x", "code": None}}, headers=named)


def drops() -> Answer:
    """The connection is closed without a response."""
    return Answer(drop=True)


class ScriptedServer:
    """Serves a list of answers; a context manager."""

    def __init__(self, script: Script) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = outer.answer(request, {name.lower(): value for name, value in self.headers.items()})
                time.sleep(answer.delay_s)
                if answer.drop:
                    self.close_connection = True
                    return
                data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):  # the client did not wait
                    self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False

    def answer(self, request: dict[str, Any], headers: dict[str, str]) -> Answer:
        self.times.append(time.monotonic())
        number = len(self.requests)
        self.requests.append(request)
        self.headers.append(headers)
        if number >= len(self.script):
            return fails(400, "the script is over")
        step = self.script[number]
        return step(request) if callable(step) else step

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ScriptedServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
