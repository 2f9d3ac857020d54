"""The web application of ``excise view``: reads addresses, renders pages. It writes nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

import excise
from excise.datasets.viewer.links import Links, ServerLinks, unprotected
from excise.datasets.viewer.pages import DETAILS, LISTS, Found, Site, keep_ready, raw_text
from excise.datasets.viewer.queries.refreshes import changed_at
from excise.datasets.viewer.rendering.templates import render, warm_up
from excise.datasets.viewer.security import AccessMiddleware
from excise.datasets.visible_text import visible

logger = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"
"""Folder of the style sheet and the script."""


def build_app(site: Site, *, token: str = "") -> ASGIApp:
    """The application, behind :class:`excise.datasets.viewer.security.AccessMiddleware`."""

    async def page(request: Request) -> Response:
        return await run_in_threadpool(_answer, site, _parts(request), dict(request.query_params))

    async def version(_request: Request) -> Response:
        await run_in_threadpool(site.index.refresh)
        return JSONResponse({"version": _version(site)}, headers={"Cache-Control": "no-store"})

    async def icon(_request: Request) -> Response:
        return FileResponse(STATIC / "icon.svg")

    warm_up()
    keep_ready(site)
    routes = [
        Mount("/static", StaticFiles(directory=STATIC)),
        Route("/version", version),
        Route("/favicon.ico", icon),  # what browsers ask for beside plain text
        Route("/{path:path}", page),
    ]
    return AccessMiddleware(Starlette(routes=routes), token=token)


def _parts(request: Request) -> list[str]:
    """The parts of the address, where ``%2F`` is no separator."""
    raw = request.scope.get("raw_path") or request.url.path.encode()
    path = raw.decode("latin-1").partition("?")[0].strip("/")
    return [unprotected(unquote(part, errors="replace")) for part in path.split("/")]


def _answer(site: Site, parts: list[str], query: Mapping[str, str]) -> Response:
    site.index.refresh()
    if parts[0] == "raw" and len(parts) == 3:
        text = raw_text(site, parts[1], parts[2])
        if text is not None:
            return PlainTextResponse(text.encode("utf-8", "replace"), headers={"Cache-Control": "no-store"})
    try:
        html = page_html(site, parts, query, ServerLinks())
    except Exception:  # one page that fails leaves the others
        logger.exception("page failed", extra={"path": "/".join(parts)})
        html = message_html(site, "This page failed", "The log of `excise view` has the error.", ServerLinks())
        return _html(html, 500)
    if html is None:
        text = "There is no such page, or what it showed is gone from the set."
        return _html(message_html(site, "Not found", text, ServerLinks()), 404)
    return _html(html, 200)


def _html(text: str, status: int) -> Response:
    headers = {"Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8"}
    return Response(text.encode("utf-8", "replace"), status_code=status, headers=headers)


def page_html(site: Site, parts: list[str], query: Mapping[str, str], links: Links) -> str | None:
    """A page as HTML; ``None`` if there is none at this address."""
    found: Found = None
    if len(parts) == 1 and parts[0] in LISTS:
        found = LISTS[parts[0]](site, query)
    elif parts[0] in DETAILS and len(parts) == 1 + DETAILS[parts[0]][0]:
        found = DETAILS[parts[0]][1](site, query, *parts[1:])
    return render(found[0], {**_common(site, links), **found[1]}) if found else None


def message_html(site: Site, title: str, text: str, links: Links) -> str:
    """A page that only says something."""
    return render("message.html", {**_common(site, links), "title": title, "text": text})


def _common(site: Site, links: Links) -> dict[str, Any]:
    return {
        "url": links,
        "site": site,
        "set_name": visible(site.name),
        "version": _version(site),
        "excise_version": excise.__version__,
        "snapshot": site.index.snapshot.name if site.index.snapshot else "",
        "problem": visible(str(site.index.problem or "")),
        "active": "",
        "live": False,
    }


def _version(site: Site) -> str:
    """Changes whenever a page could show something else: rows, logs, metrics or reports have changed."""
    logs = [path.stat().st_mtime_ns for path in site.index.root.glob("logs/*.jsonl")]
    runs = [
        path.stat().st_mtime_ns
        for folder in site.run_folders
        for path in (*folder.glob("metrics.jsonl"), *folder.glob("*/metrics.jsonl"))
    ]
    times = (
        site.index.version,
        int(site.index.problem is not None),
        max(logs, default=0),
        max(runs, default=0),
        changed_at(site.index.root),
    )
    return "-".join(map(str, times))
