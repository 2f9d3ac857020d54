"""Files and pages of package indexes, fetched by the host with its own credentials and kept by content."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from excise.envs.index.index_pages import ACCEPT, File

FRESH_S = 600.0
"""A page is asked for again after this time, as package installers do by default."""
TIMEOUT_S = 60.0
_CHUNK = 1 << 18


class Unreachable(Exception):
    """The index did not answer, and nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an index said."""

    status: int
    """HTTP status."""
    body: bytes = b""
    """The page."""
    content_type: str = "text/html"
    """Its type."""
    url: str = ""
    """Where it was found in the end."""


class Downloads:
    """Asks indexes, and keeps what they say in a folder that no sandbox can write."""

    def __init__(self, folder: Path, index_urls: Sequence[str]) -> None:
        self.folder = folder
        self._client = _client(index_urls)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def page(self, url: str) -> Answer:
        """An index page; a kept one while it is fresh, and where the index does not answer.

        Raises :class:`Unreachable`.
        """
        kept = self.folder / "pages" / hashlib.sha256(url.encode()).hexdigest()
        known = _read_page(kept)
        if known is not None and time.time() - kept.stat().st_mtime < FRESH_S:
            return known
        try:
            answer = self._ask(url)
        except Unreachable:
            if known is None:
                raise
            return known
        if answer.status == 200:
            head = json.dumps({"content_type": answer.content_type, "url": answer.url}).encode()
            _write(kept, head + b"\n" + answer.body)
        return answer

    def file(self, wanted: File) -> Path | int:
        """A file, its hash checked against the page's; or the HTTP status that the index gave instead.

        Raises :class:`Unreachable`.
        """
        slot = wanted.sha256 or hashlib.sha256(wanted.url.encode()).hexdigest()
        kept = self.folder / "files" / slot[:2] / slot
        return kept if kept.is_file() else self._download(wanted, kept)

    def _ask(self, url: str) -> Answer:
        import httpx2

        try:
            got = self._client.get(url, headers={"Accept": ACCEPT})
        except httpx2.HTTPError as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from error
        if got.status_code >= 500 or got.status_code == 429:
            raise Unreachable(f"the index answers {got.status_code}")
        return Answer(got.status_code, got.content, got.headers.get("content-type", ""), str(got.url))

    def _download(self, wanted: File, kept: Path) -> Path | int:
        import httpx2

        kept.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as partial:
            try:
                with self._client.stream("GET", wanted.url) as got:
                    if got.status_code >= 500 or got.status_code == 429:
                        raise Unreachable(f"the index answers {got.status_code}")
                    if got.status_code != 200:
                        os.unlink(partial.name)
                        return int(got.status_code)
                    for chunk in got.iter_bytes(_CHUNK):
                        digest.update(chunk)
                        partial.write(chunk)
                if wanted.sha256 and digest.hexdigest() != wanted.sha256:
                    raise Unreachable(f"{wanted.name} is not the file that the index page describes")
            except httpx2.HTTPError as error:
                os.unlink(partial.name)
                raise Unreachable(f"{type(error).__name__}: {error}") from error
            except Unreachable:
                os.unlink(partial.name)
                raise
        os.replace(partial.name, kept)
        return kept


def _client(index_urls: Sequence[str]) -> Any:
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient

    auth = MultiDomainBasicAuth(prompting=False, index_urls=list(index_urls))
    return PyPIClient(timeout=TIMEOUT_S, auth=auth, follow_redirects=True)


def _read_page(kept: Path) -> Answer | None:
    try:
        head, _, body = kept.read_bytes().partition(b"\n")
        facts: Mapping[str, str] = json.loads(head)
        return Answer(200, body, facts["content_type"], facts["url"])
    except (OSError, ValueError, KeyError):
        return None


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as partial:
        partial.write(data)
    os.replace(partial.name, path)
