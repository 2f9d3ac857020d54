"""Fetches pages and files of package indexes with the host's credentials, and caches them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from excise.envs.index.index_pages import ACCEPT, File
from excise.system.files import replace_file, replacement

FRESH_S = 600.0
"""Seconds for which a cached page is used without a new request; package installers use the same default."""
TIMEOUT_S = 60.0
"""Seconds for one request."""
_CHUNK = 1 << 18


class Unreachable(Exception):
    """The index did not answer, and the cache has no copy."""


@dataclass(frozen=True, slots=True)
class IndexResponse:
    """The response of an index."""

    status: int
    """HTTP status."""
    body: bytes = b""
    """Content of the page."""
    content_type: str = "text/html"
    """Content type of the page."""
    url: str = ""
    """URL after redirects."""


class Downloads:
    """A client of package indexes, with a cache in a folder that no sandbox can write."""

    def __init__(self, folder: Path, index_urls: Sequence[str]) -> None:
        self.folder = folder
        self._client = _client(index_urls)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def page(self, url: str) -> IndexResponse:
        """Return an index page, from the cache while it is fresh or if the index does not answer.

        Raises :class:`Unreachable`.
        """
        path = self.folder / "pages" / hashlib.sha256(url.encode()).hexdigest()
        cached = _read_page(path)
        if cached is not None and time.time() - path.stat().st_mtime < FRESH_S:
            return cached
        try:
            response = self._request(url)
        except Unreachable:
            if cached is None:
                raise
            return cached
        if response.status == 200:
            head = json.dumps({"content_type": response.content_type, "url": response.url}).encode()
            replace_file(path, head + b"\n" + response.body)
        return response

    def file(self, wanted: File) -> Path | int:
        """Return the path of a downloaded file, whose hash matches its index page; or the HTTP status of a failure.

        Raises :class:`Unreachable`.
        """
        slot = wanted.sha256 or hashlib.sha256(wanted.url.encode()).hexdigest()
        path = self.folder / "files" / slot[:2] / slot
        return path if path.is_file() else self._download(wanted, path)

    def _request(self, url: str) -> IndexResponse:
        with _http_errors():
            got = self._client.get(url, headers={"Accept": ACCEPT})
        _require_answer(got.status_code)
        return IndexResponse(got.status_code, got.content, got.headers.get("content-type", ""), str(got.url))

    def _download(self, wanted: File, path: Path) -> Path | int:
        digest = hashlib.sha256()
        with _http_errors(), self._client.stream("GET", wanted.url) as got:
            _require_answer(got.status_code)
            if got.status_code != 200:
                return int(got.status_code)
            with replacement(path) as file:
                for chunk in got.iter_bytes(_CHUNK):
                    digest.update(chunk)
                    file.write(chunk)
                if wanted.sha256 and digest.hexdigest() != wanted.sha256:
                    raise Unreachable(f"{wanted.name} is not the file that the index page describes")
        return path


@contextmanager
def _http_errors() -> Iterator[None]:
    """Turn errors of connections and of the protocol into :class:`Unreachable`."""
    import httpx2

    try:
        yield
    except httpx2.HTTPError as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from error


def _require_answer(status: int) -> None:
    """Raise :class:`Unreachable` for a status by which the index says that it cannot answer now."""
    if status >= 500 or status == 429:
        raise Unreachable(f"the index answers {status}")


def _client(index_urls: Sequence[str]) -> Any:
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient

    auth = MultiDomainBasicAuth(prompting=False, index_urls=list(index_urls))
    return PyPIClient(timeout=TIMEOUT_S, auth=auth, follow_redirects=True)


def _read_page(path: Path) -> IndexResponse | None:
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        facts: Mapping[str, str] = json.loads(head)
        return IndexResponse(200, body, facts["content_type"], facts["url"])
    except (OSError, ValueError, KeyError):
        return None
