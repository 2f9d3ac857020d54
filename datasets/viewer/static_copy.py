"""``excise view --static``: the same pages as files with relative links, for any host of files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from excise.datasets.queries.refreshes import refresh_ids
from excise.datasets.viewer.app import STATIC, page_html
from excise.datasets.viewer.links import StaticLinks, static_path
from excise.datasets.viewer.pages import RAW_COLUMNS, Site
from excise.datasets.viewer.queries import imported, overview, rejections, tasks, training, tries
from excise.errors import StoreError
from excise.system.files import store_errors

Address = tuple[list[str], dict[str, str]]


def write_static(site: Site, folder: Path, report: Callable[[int], object] = lambda _: None) -> int:
    """Write all pages into a new or empty folder and return their number; ``report`` gets the number so far.

    Raises :class:`StoreError` if the folder has files or cannot be written.
    """
    if folder.exists() and any(folder.iterdir()):
        raise StoreError(f"{folder} is not empty. Choose a new folder.", reason="not_empty")
    number = 0
    with store_errors("write the static copy"):
        shutil.copytree(STATIC, folder / "static")
        for parts, query in addresses(site):
            path = [part for part in parts if part]
            place = static_path(*path, **query)
            html = page_html(site, parts, query, StaticLinks(place))
            if html is not None:
                _write(folder / place, html)
                number += 1
                report(number)
            if parts[0] == "task":
                row = tasks.find_task(site.index, parts[1]) or {}
                for column in RAW_COLUMNS:
                    _write(folder / static_path("raw", parts[1], column), str(row.get(column) or ""))
    return number


def addresses(site: Site) -> Iterator[Address]:
    """The addresses of all pages: every page of every list in its first order, and every detail."""
    index = site.index
    for name in ("", "scores", "training", "compare", "generation"):
        yield [name], {}
    lists = {
        "projects": overview.count_projects(index),
        "tasks": tasks.task_list(index, {}).page.total,
        "rejections": rejections.rejection_list(index, {}).page.total,
        "tries": tries.try_list(index, {}).page.total,
        "refreshes": len(refresh_ids(index.root)),
        "imports": imported.import_list(index, {}).page.total,
    }
    for name, total in lists.items():
        for page in range(1, max(1, -(-total // site.page_size)) + 1):
            yield [name], {"page": str(page)}
    for row in index.rows("SELECT instance_id FROM task_rows ORDER BY ALL"):
        yield ["task", str(row["instance_id"])], {}
    for row in index.rows("SELECT parse_filename(file) AS file, row FROM rejection_rows ORDER BY ALL"):
        yield ["rejection", str(row["file"]), str(row["row"])], {}
    for row in index.rows("SELECT origin, run, try_id FROM tries ORDER BY ALL"):
        yield ["try", str(row["origin"]), str(row["run"]), str(row["try_id"])], {}
    for run in training.training_runs(index, site.run_folders):
        yield ["run", run.name], {}
    for refresh_id in refresh_ids(index.root):
        yield ["refresh", refresh_id], {}
    for row in index.rows("SELECT imported_set, place FROM import_rows ORDER BY ALL"):
        yield ["import", str(row["imported_set"]), str(row["place"])], {}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace")
