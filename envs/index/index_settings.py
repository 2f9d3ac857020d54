"""The package indexes that this machine is configured to use, and variables that point installers at the relay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from excise.package_index import index_url


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Package indexes and pages of links, in order of precedence."""

    indexes: tuple[str, ...]
    """URLs of simple indexes on the network, with credentials; never passed to a sandbox."""
    flat: tuple[str, ...] = ()
    """URLs of pages of links."""
    local: tuple[str, ...] = ()
    """Local folders and files that indexes and links refer to."""
    entries: tuple[tuple[str, str], ...] = ()
    """(variable of uv, value in which ``{relay}`` stands for the relay's address)."""

    def variables(self, relay: str) -> dict[str, str]:
        """Variables for uv and pip; ``relay`` is the address of the relay inside the sandbox."""
        found = {name: value.replace("{relay}", relay) for name, value in self.entries}
        pip = {"PIP_INDEX_URL": found["UV_DEFAULT_INDEX"]} if "UV_DEFAULT_INDEX" in found else {}
        return found | pip


def index_settings(environ: Mapping[str, str]) -> IndexSettings:
    """Read the variables and configuration files of pip and uv; uv's default index if none is configured."""
    indexes: list[str] = []
    flat: list[str] = []
    local: list[str] = []
    values: dict[str, list[str]] = {}

    def add(variable: str, entry: str, remote: list[str], kind: str) -> None:
        name, url = _split(entry)
        if (path := _local_path(url)) is not None:
            local.append(path)
            values.setdefault(variable, []).append(entry)
            return
        remote.append(_with_credentials(name, url, environ))
        prefix = f"{name}=" if name else ""
        values.setdefault(variable, []).append(f"{prefix}{{relay}}/{kind}{len(remote) - 1}/")

    add("UV_DEFAULT_INDEX", index_url(environ) or _public_index(), indexes, "i")
    for entry in _more_indexes(environ):
        add("UV_INDEX", entry, indexes, "i")
    for entry in re.split(r"[,\s]+", environ.get("UV_FIND_LINKS", "")):
        if entry:
            add("UV_FIND_LINKS", entry, flat, "l")
    joined = {name: ("," if name == "UV_FIND_LINKS" else " ").join(texts) for name, texts in values.items()}
    if strategy := environ.get("UV_INDEX_STRATEGY"):
        joined["UV_INDEX_STRATEGY"] = strategy
    return IndexSettings(
        indexes=tuple(indexes),
        flat=tuple(flat),
        local=tuple(dict.fromkeys(local)),
        entries=tuple(joined.items()),
    )


@cache
def _public_index() -> str:
    """The default index of installers, as unearth defines it."""
    from unearth import PackageFinder

    finder: Any = PackageFinder()
    return str(finder.sources[0]["url"])


def _more_indexes(environ: Mapping[str, str]) -> Iterator[str]:
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        yield from environ.get(name, "").split()


def _split(entry: str) -> tuple[str, str]:
    match = re.fullmatch(r"([A-Za-z][\w.-]*)=(.+)", entry)
    return (match[1], match[2]) if match else ("", entry)


def _local_path(url: str) -> str | None:
    if url.startswith("file://"):
        return unquote(urlsplit(url).path)
    return None if url.startswith(("http://", "https://")) else str(Path(url).absolute())


def _with_credentials(name: str, url: str, environ: Mapping[str, str]) -> str:
    """Add credentials of a named index, which uv reads from ``UV_INDEX_NAME_USERNAME`` and ``…_PASSWORD``."""
    key = re.sub(r"\W", "_", name).upper()
    user, secret = environ.get(f"UV_INDEX_{key}_USERNAME"), environ.get(f"UV_INDEX_{key}_PASSWORD")
    parts = urlsplit(url)
    if not name or not (user or secret) or "@" in parts.netloc:
        return url
    login = f"{quote(user or '', safe='')}:{quote(secret or '', safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc}"))
