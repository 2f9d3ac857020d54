"""A socket by which programs of the host run commands in the sandbox of an attempt, one at a time.

A program connects, sends one line of JSON (``command``, ``timeout_s``, ``cwd``) and gets one line back. The socket is
in a folder that only this user can open. ``clients/excise_run.py`` is the other side.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socketserver
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from excise.envs.sandbox.mount_points import REPO
from excise.errors import ExciseError
from excise.protocols import Session
from excise.trainer.rollouts.coding_tools import shell_line
from excise.types import WorkerOutcome

CLIENTS = Path(__file__).with_name("clients")
"""Folder of the programs on the other side."""
MAX_REQUEST = 16 << 20
"""Maximum length of a request in bytes."""
DEFAULT_S, MAX_S = 120.0, 1800.0
"""Seconds: time limit of a command without one, and the longest."""


class SandboxBridge:
    """Serves one sandbox from a socket in ``folder``; a context manager."""

    def __init__(self, session: Session, folder: Path, left_s: Callable[[], float]) -> None:
        self.session, self.left_s = session, left_s
        self.socket = folder / "sandbox"
        """The socket."""
        self.program = folder / "run"
        """A program that runs one shell command in the sandbox: its arguments."""
        self.failure: ExciseError | None = None
        """The error of the sandbox itself, if it had one."""
        self._lock = threading.Lock()
        client = CLIENTS / "excise_run.py"
        self.program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -I -S '{client}' '{self.socket}' 0 \"$@\"\n")
        self.program.chmod(0o700)
        self._server = _Server(str(self.socket), _handler(self))

    def __enter__(self) -> SandboxBridge:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        with self._lock:  # a command that still runs ends with its time limit or with the sandbox
            pass

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one command; the answer as JSON values."""
        wanted = float(request.get("timeout_s") or DEFAULT_S)
        limit = max(1.0, min(wanted, MAX_S, self.left_s()))
        line = shell_line(str(request.get("command", "")))
        try:
            with self._lock:
                done = self.session.exec(line, timeout_s=limit, cwd=str(request.get("cwd") or REPO))
        except ExciseError as error:
            self.failure = error
            return {"error": str(error)}
        return {
            "returncode": done.rc if done.worker is WorkerOutcome.OK else done.rc or -1,
            "timed_out": done.worker is WorkerOutcome.TIMEOUT,
            "stdout": base64.b64encode(done.stdout).decode(),
            "stderr": base64.b64encode(done.stderr).decode(),
        }


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False


def _handler(bridge: SandboxBridge) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            """Answer one request; a malformed one gets an error."""
            try:
                request = json.loads(self.rfile.readline(MAX_REQUEST))
                answer = bridge.answer(request) if isinstance(request, dict) else {"error": "no JSON object"}
            except (ValueError, TypeError) as error:
                answer = {"error": f"not a request: {error}"}
            with contextlib.suppress(OSError):  # the program is gone
                self.wfile.write(json.dumps(answer).encode() + b"\n")

    return Handler
