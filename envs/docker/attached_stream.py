"""Messages to and from a container's first process, over the stream that the container engine attaches to it.

The engine wraps what the process writes in frames: one byte for the stream number, three zero bytes, four bytes for the
length. Messages are sent on stdout; stderr holds the error output of a process that crashed.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Mapping
from typing import Any

from excise.errors import SandboxError

_MAX_ERROR_BYTES = 4000
"""Bytes that are kept of the end of stderr."""


class StreamClosed(SandboxError):
    """The process at the other end has ended."""


class AttachedStream:
    """The connection to one container's first process."""

    def __init__(self, attached: Any) -> None:
        self._owner = attached
        self._socket: Any = getattr(attached, "_sock", attached)
        self._raw = b""
        self._data = bytearray()
        self.error_output = b""
        self._sending, self._receiving = threading.Lock(), threading.Lock()

    def send(self, header: Mapping[str, object], *bodies: bytes) -> None:
        """Send one message. Raises :class:`StreamClosed`."""
        text = json.dumps({**header, "sizes": [len(body) for body in bodies]}).encode()
        with self._sending:
            try:
                self._socket.settimeout(None)
                self._socket.sendall(struct.pack("!I", len(text)) + text)
                for body in bodies:
                    self._socket.sendall(body)
            except OSError as error:
                raise StreamClosed(f"The sandbox's container is gone ({error}).") from error

    def receive(self, deadline: float) -> tuple[dict[str, Any], list[bytes]]:
        """Return the next message (header, bodies).

        Raises :class:`StreamClosed`, and ``TimeoutError`` at the deadline, a time of the monotonic clock.
        """
        with self._receiving:
            length = struct.unpack("!I", self._exactly(4, deadline, keep=True))[0]
            self._exactly(4 + length, deadline, keep=True)
            del self._data[:4]
            header: dict[str, Any] = json.loads(self._exactly(length, deadline))
            return header, [self._exactly(size, deadline) for size in header["sizes"]]

    def _exactly(self, count: int, deadline: float, *, keep: bool = False) -> bytes:
        while len(self._data) < count:
            self._receive_frame(deadline)
        data = bytes(self._data[:count])
        if not keep:
            del self._data[:count]
        return data

    def _receive_frame(self, deadline: float) -> None:
        """Read once from the socket, and unwrap all frames that are complete."""
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        self._socket.settimeout(remaining_s)
        try:
            data = self._socket.recv(1 << 20)
        except TimeoutError:
            raise
        except OSError as error:
            raise StreamClosed(f"The sandbox's container is gone ({error}).") from error
        if not data:
            raise StreamClosed(
                f"The sandbox's first process ended. {self.error_output.decode(errors='replace').strip()}"
            )
        self._raw += data
        while len(self._raw) >= 8:
            stream, size = self._raw[0], struct.unpack("!I", self._raw[4:8])[0]
            if len(self._raw) < 8 + size:
                return
            body, self._raw = self._raw[8 : 8 + size], self._raw[8 + size :]
            if stream == 2:
                self.error_output = (self.error_output + body)[-_MAX_ERROR_BYTES:]
            else:
                self._data += body

    def close(self) -> None:
        """Close the connection; the process at the other end then exits, and the engine removes the container."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._receiving:  # a waiting thread has woken up: its descriptor must not be reused before
            for it in (self._owner, self._socket):
                with contextlib.suppress(OSError):
                    it.close()
