"""Addresses of pages: paths of the server, or relative paths of files in a static copy."""

from __future__ import annotations

import hashlib
import re
from typing import Protocol
from urllib.parse import quote, urlencode

_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}")


class Links(Protocol):
    """What templates ask for addresses."""

    def __call__(self, *path: object, **query: object) -> str:
        """The address of the page at ``path``, with what is not empty of ``query``."""


class ServerLinks:
    """Addresses below the server's root."""

    def __call__(self, *path: object, **query: object) -> str:
        """See :class:`Links`."""
        asked = urlencode({name: value for name, value in query.items() if value not in ("", None)})
        place = "/" + "/".join(quote(_protected(str(part)), safe="") for part in path)
        return f"{place}?{asked}" if asked else place


def _protected(part: str) -> str:
    """A part with a tilde before it where browsers would take it for a step to another folder."""
    return f"~{part}" if part.startswith("~") or part in {"", ".", ".."} else part


def unprotected(part: str) -> str:
    """The part of an address as it was given to :class:`ServerLinks`."""
    return part.removeprefix("~")


class StaticLinks:
    """Relative addresses from one page of a static copy to others, which all have a file if ``exists`` says so.

    Searches, filters and orders need a server: such addresses lead to the first page of the list.
    """

    def __init__(self, here: str) -> None:
        self._up = "../" * here.count("/")

    def __call__(self, *path: object, **query: object) -> str:
        """See :class:`Links`."""
        return self._up + static_path(*path, **query)


def static_path(*path: object, **query: object) -> str:
    """The file of a page in a static copy. Names that are no safe file names are replaced by their hashes."""
    if path[:1] == ("static",):
        return "/".join(str(part) for part in path)
    parts = [_file_name(str(part)) for part in path] or ["index"]
    if "page" in query and str(query["page"]) not in {"", "1"}:
        parts[-1] += f".page-{_file_name(str(query['page']))}"
    if path[:1] == ("compare",) and query.get("a"):
        parts[-1] += f".{_file_name(str(query['a']))}-{_file_name(str(query.get('b', '')))}"
    return "/".join(parts) + (".txt" if path[:1] == ("raw",) else ".html")


def _file_name(name: str) -> str:
    if _SAFE_NAME.fullmatch(name) and not name.startswith("x-"):
        return name
    return f"x-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
