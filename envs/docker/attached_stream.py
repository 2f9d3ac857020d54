"""Messages to and from a container's first process, over the stream that is attached to it.

The engine sends what the process writes in frames of its own (a byte that says which stream, three of nothing, four
with the length); ours lie in the first stream, and its words in distress in the second.
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

_MOST_LAST_WORDS = 4000


class Closed(SandboxError):
    """The process at the other end is gone."""


class Channel:
    """One attached stream."""

    def __init__(self, attached: Any) -> None:
        self._owner = attached
        self._socket: Any = getattr(attached, "_sock", attached)
        self._raw = b""
        self._data = bytearray()
        self.last_words = b""
        self._sending, self._receiving = threading.Lock(), threading.Lock()

    def send(self, header: Mapping[str, object], *bodies: bytes) -> None:
        """Send one message. Raises :class:`Closed`."""
        text = json.dumps({**header, "sizes": [len(body) for body in bodies]}).encode()
        with self._sending:
            try:
                self._socket.settimeout(None)
                self._socket.sendall(struct.pack("!I", len(text)) + text)
                for body in bodies:
                    self._socket.sendall(body)
            except OSError as error:
                raise Closed(f"The sandbox's container is gone ({error}).") from error

    def receive(self, deadline: float) -> tuple[dict[str, Any], list[bytes]]:
        """The next message. Raises :class:`Closed`, and ``TimeoutError`` at the (monotonic) deadline."""
        with self._receiving:
            length = struct.unpack("!I", self._exactly(4, deadline, keep=True))[0]
            self._exactly(4 + length, deadline, keep=True)
            del self._data[:4]
            header: dict[str, Any] = json.loads(self._exactly(length, deadline))
            return header, [self._exactly(size, deadline) for size in header["sizes"]]

    def _exactly(self, count: int, deadline: float, *, keep: bool = False) -> bytes:
        while len(self._data) < count:
            self._more(deadline)
        data = bytes(self._data[:count])
        if not keep:
            del self._data[:count]
        return data

    def _more(self, deadline: float) -> None:
        """Read one piece of the stream, and take the engine's frames apart."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        try:
            data = self._socket.recv(1 << 20)
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(f"The sandbox's container is gone ({error}).") from error
        if not data:
            raise Closed(f"The sandbox's first process ended. {self.last_words.decode(errors='replace').strip()}")
        self._raw += data
        while len(self._raw) >= 8:
            stream, size = self._raw[0], struct.unpack("!I", self._raw[4:8])[0]
            if len(self._raw) < 8 + size:
                return
            body, self._raw = self._raw[8 : 8 + size], self._raw[8 + size :]
            if stream == 2:
                self.last_words = (self.last_words + body)[-_MOST_LAST_WORDS:]
            else:
                self._data += body

    def close(self) -> None:
        """Hang up: the process at the other end then ends, and its container with it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._receiving:  # whoever still waits has woken up: its descriptor's number must not be another's by then
            for it in (self._owner, self._socket):
                with contextlib.suppress(OSError):
                    it.close()
