"""Moves the three streams of one command between a worker and a sandbox."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Sequence


class Pump:
    """The three streams of one command: feeds stdin, keeps the first bytes of the outputs, reads the rest away."""

    def __init__(self, fds: Sequence[int], stdin: bytes, keep: int) -> None:
        self._into, *self._outputs = fds
        self._pending = memoryview(stdin)
        self._keep = keep
        self._kept = {fd: bytearray() for fd in self._outputs}
        self._selector = selectors.DefaultSelector()
        os.set_blocking(self._into, False)
        self._selector.register(self._into, selectors.EVENT_WRITE)
        for fd in self._outputs:
            self._selector.register(fd, selectors.EVENT_READ)

    def __enter__(self) -> Pump:
        return self

    def __exit__(self, *exc: object) -> None:
        for fd in [key.fd for key in self._selector.get_map().values()]:
            self._drop(fd)
        self._selector.close()

    def turn(self, control: socket.socket, timeout_s: float) -> bool:
        """Move what can be moved now; whether ``control`` has something to say."""
        self._selector.register(control, selectors.EVENT_READ)
        try:
            ready = self._selector.select(max(0.0, timeout_s))
        finally:
            self._selector.unregister(control)
        done = False
        for key, _ in ready:
            if key.fileobj is control:
                done = True
            elif key.fd == self._into:
                self._write()
            elif not self._read(key.fd):
                self._drop(key.fd)
        return done

    def rest(self) -> tuple[bytes, bytes]:
        """What was kept of stdout and of stderr; every writer is dead by now."""
        for fd in self._outputs:
            while fd in self._selector.get_map() and self._read(fd):
                pass
        first, second = (bytes(self._kept[fd]) for fd in self._outputs)
        return first, second

    def _write(self) -> None:
        try:
            self._pending = self._pending[os.write(self._into, self._pending[:65536]) if self._pending else 0 :]
        except BrokenPipeError:
            self._pending = self._pending[:0]
        if not self._pending:
            self._drop(self._into)

    def _read(self, fd: int) -> bool:
        data = os.read(fd, 1 << 16)
        self._kept[fd] += data[: max(0, self._keep - len(self._kept[fd]))]
        return bool(data)

    def _drop(self, fd: int) -> None:
        self._selector.unregister(fd)
        os.close(fd)
