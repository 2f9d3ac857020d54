"""A minimal asyncio HTTP client for JSON requests with a timeout, on the standard library alone.

A cancelled call closes its connection, which tells vLLM to abort the request.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import json
from typing import Any
from urllib.parse import urlsplit


class HTTPFailure(Exception):
    """Raised when the server answers with an error status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text[:500]}")
        self.status = status


class _BytesSocket:
    """The part of a socket that :class:`http.client.HTTPResponse` uses."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any) -> io.BytesIO:
        return io.BytesIO(self._data)


async def call(url: str, body: Any = None, *, timeout_s: float, method: str = "POST") -> Any:
    """Send a request; returns the JSON of the response, ``None`` if it is empty.

    Raises :class:`HTTPFailure` for an error status, and ``OSError`` (or its subclass ``TimeoutError``) if there is no
    response.
    """
    parts = urlsplit(url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    data = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
        try:
            writer.write(head.encode() + data)
            await writer.drain()
            raw = await reader.read(-1)
        finally:
            writer.close()
    return _parse_response(raw)


def _parse_response(raw: bytes) -> Any:
    response = http.client.HTTPResponse(_BytesSocket(raw))  # type: ignore[arg-type]
    try:
        response.begin()
        text = response.read()
    except http.client.HTTPException as error:
        raise ConnectionError(f"The server broke off: {error!r}") from error
    if response.status >= 300:
        raise HTTPFailure(response.status, text.decode(errors="replace"))
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise ConnectionError(f"The server broke off: {error}") from error
