"""The supervisor's connection to the fork server of its sandbox; :class:`excise.protocols.ForkServer` has the protocol.

Code of the project runs beside the server and may take it over: answers are checked, and limited in size and time.
Standard library only: the zygote imports it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

SERVER_FD = 4
"""File descriptor on which a fork server is spoken to."""
TIMEOUT_S = 50.0
"""Seconds for each of the two steps in which a fork server starts, and for all of an answer that it has begun."""
MAX_ANSWER_BYTES = 1 << 16
"""Bytes of the longest answer."""
WAIT_FOR_MOUNTS = f'echo begun >&{SERVER_FD}; read mounted <&{SERVER_FD}; exec "$@"'
"""Shell code that starts a fork server when the mounts for it are there. They must be made after bubblewrap has copied
the mount namespace: what is copied could never be unmounted again."""


class CannotServe(OSError):
    """Raised if a command cannot be a fork server for this checkout, now or later."""


def server_command(argv: Sequence[str]) -> list[str]:
    """The command line that starts a fork server."""
    return ["/bin/sh", "-c", WAIT_FOR_MOUNTS, "sh", *argv, "--serve", str(SERVER_FD)]


class ServerConnection:
    """Our ends of the socket to a fork server and of its standard streams, which are pipes like those of its runs."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair()
        stdin, stdout, stderr = (os.pipe() for _ in range(3))
        self._streams = [stdin[1], stdout[0], stderr[0]]
        self.descriptors = [stdin[0], stdout[1], stderr[1], theirs.detach()]
        """What the server is started with: standard streams and socket; whoever starts it closes them."""

    def fileno(self) -> int:
        """The socket's descriptor, readable when the server answers or ends."""
        return self.socket.fileno()

    def wait_until_ready(self, mount: Callable[[], None]) -> None:
        """Wait until the server has begun, mount what it needs, and wait until it is ready. Raises ``OSError``."""
        begun = self._receive_line()
        mount()
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(b"mounted\n")
        line = self._receive_line() if begun else b""
        answer = json.loads(line or b'{"ready": false, "reason": "it ended while it was starting"}')
        if answer["ready"] is not True:
            raise CannotServe(f"no fork server: {answer['reason']}")

    def request_run(self, request: Mapping[str, object], fds: Sequence[int]) -> None:
        """Request a run with these streams. If the server has ended, nothing is raised."""
        data = json.dumps(request).encode() + b"\n"
        with contextlib.suppress(ConnectionError):
            sent = socket.send_fds(self.socket, [data], list(fds))
            self.socket.sendall(data[sent:])

    def receive_answer(self) -> dict[str, Any] | None:
        """Receive the answer to a run; ``None`` if the server has ended, or sent anything else."""
        try:
            answer = json.loads(self._receive_line())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(answer, dict):
            return None
        if "refused" in answer:
            return answer
        status, cpu_s = answer.get("status"), answer.get("cpu_s")
        sound = type(status) is int and 0 <= status < 1 << 16 and isinstance(cpu_s, int | float) and 0 <= cpu_s < 1e9
        return answer if sound and isinstance(answer.get("reusable"), bool) else None

    def close(self) -> None:
        """Close everything."""
        self.socket.close()
        for fd in self._streams:
            os.close(fd)
        self._streams.clear()

    def _receive_line(self) -> bytes:
        """Receive one line; empty if the other end is closed or the line is too long. Raises ``TimeoutError``."""
        data, ends_at = b"", time.monotonic() + TIMEOUT_S
        while not data.endswith(b"\n"):
            self.socket.settimeout(max(0.001, ends_at - time.monotonic()))
            more = self.socket.recv(MAX_ANSWER_BYTES)
            if not more or len(data) > MAX_ANSWER_BYTES:
                return b""
            data += more
        return data
