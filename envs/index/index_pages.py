"""Rewrites pages of a package index, so that the files that they list are downloaded through the relay."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urldefrag, urljoin

JSON = "application/vnd.pypi.simple.v1+json"
"""Content type of PEP 691."""
ACCEPT = f"{JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
"""``Accept`` header: JSON is preferred because it has upload times, which ``--exclude-newer`` needs."""


@dataclass(frozen=True, slots=True)
class File:
    """One file that an index page lists."""

    name: str
    """File name."""
    url: str
    """Absolute URL, without a fragment."""
    sha256: str = ""
    """Hash of the file; empty if the page gives none."""


NewUrl = Callable[[File], str]
"""Returns the URL that replaces a file's own on the rewritten page."""


def rewrite(body: bytes, content_type: str, base: str, new_url: NewUrl) -> bytes:
    """The page with new URLs; ``base`` is the URL of the page. Raises ``ValueError`` if it is no index page."""
    if "json" in content_type:
        return _rewrite_json(body, base, new_url)
    return _rewrite_html(body.decode("utf-8", errors="replace"), base, new_url)


def _rewrite_json(body: bytes, base: str, new_url: NewUrl) -> bytes:
    page: Any = json.loads(body)
    if not isinstance(page, dict) or not isinstance(page.get("files"), list):
        raise ValueError("the index page has no list of files")
    for entry in page["files"]:
        url, _ = urldefrag(urljoin(base, str(entry["url"])))
        digest = str((entry.get("hashes") or {}).get("sha256", ""))
        entry["url"] = new_url(File(str(entry["filename"]), url, digest))
    return json.dumps(page).encode()


def _rewrite_html(text: str, base: str, new_url: NewUrl) -> bytes:
    parser = _Links(base)
    parser.feed(text)
    lines = ["<!DOCTYPE html><html><body>"]
    for attributes in parser.links:
        url, fragment = urldefrag(urljoin(parser.base, attributes.pop("href") or ""))
        name = url.rpartition("/")[2]
        if not url.startswith(("http://", "https://")) or not name:
            continue
        kind, _, digest = fragment.partition("=")
        href = new_url(File(name, url, digest if kind == "sha256" else "")) + (f"#{fragment}" if fragment else "")
        rest = "".join(f' {key}="{html.escape(value or "")}"' for key, value in attributes.items())
        lines.append(f'<a href="{html.escape(href)}"{rest}>{html.escape(name)}</a>')
    return "\n".join([*lines, "</body></html>"]).encode()


class _Links(HTMLParser):
    """Collects links with their attributes (``data-requires-python``, ``data-yanked``, …)."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "base" and attributes.get("href"):
            self.base = urljoin(self.base, attributes["href"] or "")
        elif tag == "a" and attributes.get("href"):
            kept = {key: value for key, value in attributes.items() if key == "href" or key.startswith("data-")}
            self.links.append(kept)
