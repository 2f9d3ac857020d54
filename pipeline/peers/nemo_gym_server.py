"""A resources server for NeMo-Gym's agents; this file is copied into every export for it as ``excise_nemo_gym.py``.

It speaks the protocol of NeMo-Gym's resources servers over HTTP, with the standard library alone: ``/seed_session``
opens the sandbox of the row's task, ``/bash`` is the agent's tool, ``/verify`` grades the changes. In the exported
folder:

    python excise_nemo_gym.py --port 8000
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import threading
from collections import OrderedDict
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import excise_tasks  # type: ignore[import-not-found]

COOKIE = "excise_session"
MAX_SESSIONS = 256
"""Open sandboxes; of more, the oldest is closed."""
MAX_BODY = 64 << 20
"""Bytes of a request."""


class Sessions:
    """The open sandboxes by the cookie of their rollout."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = excise_tasks.load_tasks()
        self._open: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def seed(self, instance_id: str) -> str:
        """Open the sandbox of a task; return the cookie. Raises ``KeyError`` for an unknown task."""
        session = excise_tasks.TaskSession(self.tasks[instance_id])
        key = secrets.token_urlsafe(16)
        with self._lock:
            self._open[key] = session
            surplus = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - MAX_SESSIONS)]
        for old in surplus:
            old.close()
        return key

    def get(self, key: str) -> Any:
        """The sandbox of a cookie. Raises ``KeyError``."""
        return self._open[key]

    def close(self, key: str) -> None:
        """Close the sandbox of a cookie, if it is open."""
        with self._lock:
            session = self._open.pop(key, None)
        if session is not None:
            session.close()


class Handler(BaseHTTPRequestHandler):
    """Answers requests; ``sessions`` is set before the server starts."""

    sessions: Sessions

    def do_GET(self) -> None:
        """Say that the server is there."""
        self._send(200, {"status": "ok", "num_tasks": len(self.sessions.tasks)})

    def do_POST(self) -> None:
        """Open a sandbox, run a command, or grade."""
        try:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if 0 < size <= MAX_BODY else {}
            if self.path == "/seed_session":
                key = self.sessions.seed(body["instance_id"])
                self._send(200, {}, cookie=key)
            elif self.path == "/bash":
                self._send(200, self.sessions.get(self._key()).run(str(body["command"])))
            elif self.path == "/verify":
                self._send(200, self._verify(body))
            else:
                self._send(404, {"error": f"no {self.path}; there are /seed_session, /bash and /verify"})
        except (KeyError, ValueError, TypeError) as error:
            self._send(400, {"error": f"{type(error).__name__}: {error}. Was /seed_session called with a row?"})
        except (RuntimeError, OSError) as error:
            self._send(500, {"error": str(error)})

    def _verify(self, body: dict[str, Any]) -> dict[str, Any]:
        key = self._key()
        try:
            return {**body, "reward": self.sessions.get(key).reward()}
        finally:
            self.sessions.close(key)

    def _key(self) -> str:
        return SimpleCookie(self.headers.get("Cookie", ""))[COOKIE].value

    def _send(self, status: int, answer: dict[str, Any], cookie: str = "") -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if cookie:
            self.send_header("Set-Cookie", f"{COOKIE}={cookie}; Path=/; HttpOnly")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing for each request."""


def main() -> None:
    """Serve until interrupted; the first line of stdout is the address."""
    parser = argparse.ArgumentParser(description="Resources server for NeMo-Gym with the tasks of this folder.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any free one")
    options = parser.parse_args()
    Handler.sessions = Sessions()
    with ThreadingHTTPServer((options.host, options.port), Handler) as server:
        print(f"http://{options.host}:{server.server_address[1]}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
