"""The pages: what each address shows. Both the server and static copies call these functions.

A page is a function of the set and of the address's parts and questions that returns a template's name with its
values, or ``None`` if there is no such page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from excise.datasets.queries.scores import KS
from excise.datasets.viewer.loaded_set import LoadedSet, snapshots
from excise.datasets.viewer.queries import (
    comparison,
    generation,
    imported,
    overview,
    refreshes,
    rejections,
    scores,
    tasks,
    training,
    tries,
)
from excise.datasets.viewer.queries.filters import page_of
from excise.datasets.viewer.rendering.charts import line_chart
from excise.datasets.viewer.rendering.diffs import MAX_FILES, count_files, parse_diff

Query = Mapping[str, str]
Found = tuple[str, dict[str, Any]] | None
RAW_COLUMNS = ("problem_statement", "interface", "patch", "test_patch", "deletion_patch", "certificate")
"""Columns of a task that can be read as plain text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What all pages are made of."""

    index: LoadedSet
    """The set."""
    run_folders: tuple[Path, ...] = ()
    """Folders of training runs."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Name of a gate to its claim."""
    name: str = "task set"
    """Name of the set in titles."""
    is_static: bool = False
    """Whether the pages are files of a static copy."""
    page_size: int = 50
    """Rows of a page of a list."""


def overview_page(site: Site, _query: Query) -> Found:
    """The set's sums, and its projects."""
    index = site.index
    run = next(iter(generation.run_names(index.root)), None)
    return "overview.html", {
        "active": "overview",
        "sums": index.cached("overview", lambda: overview.overview(index)),
        "projects": index.cached("first projects", lambda: overview.projects(index, limit=15)),
        "num_projects": index.cached("count projects", lambda: overview.count_projects(index)),
        "run": generation.read_run(index.root, run) if run else None,
        "is_empty": index.snapshot is None,
        "claims": site.claims,
        "live": True,
    }


def projects_page(site: Site, query: Query) -> Found:
    """All sources with yield, coverage and cost."""
    search, sort = query.get("q", ""), query.get("sort", "tasks")
    page = page_of(query.get("page", ""), overview.count_projects(site.index, search), site.page_size)
    rows = overview.projects(site.index, search=search, sort=sort, limit=page.size, offset=page.offset)
    return "projects.html", {
        "active": "projects", "rows": rows, "page": page, "wanted": {"q": search, "sort": sort},
        "sorts": list(overview.PROJECT_SORTS), "live": True,
    }  # fmt: skip


def tasks_page(site: Site, query: Query) -> Found:
    """The list of tasks."""
    wanted = _wanted(query, "q", "text", "sort", "quarantined", *tasks.FILTERS)
    return "tasks.html", {
        "active": "tasks",
        "found": tasks.task_list(site.index, {**wanted, "page": query.get("page", "")}, site.page_size),
        "choices": site.index.cached("task choices", lambda: tasks.choices(site.index)),
        "wanted": wanted,
        "sorts": list(tasks.SORTS),
        "live": True,
    }


def task_page(site: Site, _query: Query, instance_id: str) -> Found:
    """Everything about one task."""
    task = tasks.whole_task(site.index, instance_id)
    if task is None:
        return None
    patch, deletion = str(task.row.get("patch") or ""), str(task.row.get("deletion_patch") or "")
    code_paths = {file.path for file in parse_diff(patch)}
    files = parse_diff(deletion)
    tests = parse_diff(str(task.row.get("test_patch") or ""))
    return "task.html", {
        "active": "tasks",
        "task": task,
        "row": task.row,
        "code_files": [file for file in files if file.path in code_paths],
        "test_files": [file for file in files if file.path not in code_paths],
        "hidden_files": tests,
        "num_left_out": max(0, count_files(deletion) - MAX_FILES),
        "claims": site.claims,
        "raw_columns": RAW_COLUMNS,
    }


def rejections_page(site: Site, query: Query) -> Found:
    """The list of rejections."""
    wanted = _wanted(query, "q", *rejections.FILTERS)
    return "rejections.html", {
        "active": "rejections",
        "found": rejections.rejection_list(site.index, {**wanted, "page": query.get("page", "")}, site.page_size),
        "choices": site.index.cached("rejection choices", lambda: rejections.choices(site.index)),
        "wanted": wanted,
        "live": True,
    }


def rejection_page(site: Site, _query: Query, file: str, row: str) -> Found:
    """Everything about one rejection."""
    is_number = row.isascii() and row.isdigit() and len(row) < 10
    found = rejections.whole_rejection(site.index, file, int(row)) if is_number else None
    return ("rejection.html", {"active": "rejections", "found": found, "claims": site.claims}) if found else None


def tries_page(site: Site, query: Query) -> Found:
    """The list of rollouts and attempts."""
    wanted = _wanted(query, "q", "sort", "solved", "flag", "hint", *tries.FILTERS)
    return "tries.html", {
        "active": "tries",
        "found": tries.try_list(site.index, {**wanted, "page": query.get("page", "")}, site.page_size),
        "choices": site.index.cached("try choices", lambda: tries.choices(site.index)),
        "wanted": wanted,
        "sorts": list(tries.SORTS),
        "live": True,
    }


def try_page(site: Site, _query: Query, origin: str, run: str, try_id: str) -> Found:
    """One rollout or attempt, turn by turn."""
    found = tries.whole_try(site.index, origin, run, try_id)
    if found is None:
        return None
    diff = str(found.row.get("diff") or "")
    return "try.html", {"active": "tries", "found": found, "files": parse_diff(diff), "diff": diff}


def scores_page(site: Site, query: Query) -> Found:
    """Scores of the runs of ``excise solve``: a table and a picture."""
    wanted = _wanted(query, *scores.FILTERS)
    found = site.index.cached(("scores", *wanted.items()), lambda: scores.scores(site.index, wanted))
    charts = [
        {
            "title": chart.title,
            "names": [(series.name, bool(series.points)) for series in chart.series],
            "svg": line_chart(chart.series, label=chart.title, axes=chart.axes),
        }
        for chart in scores.charts(found)
    ]
    return "scores.html", {
        "active": "scores",
        "found": found,
        "charts": charts,
        "ks": [k for k in KS if any(k in one.pass_at for one in found)],
        "max_curves": scores.MAX_CURVES,
        "choices": site.index.cached("score choices", lambda: scores.choices(site.index)),
        "wanted": wanted,
        "live": True,
    }


def training_page(site: Site, _query: Query) -> Found:
    """The list of training runs."""
    runs = training.training_runs(site.index, site.run_folders)
    curves = {}
    for run in runs:
        rows = training.metrics(site.index, run)
        first = next((series for title, series in training.chart_series(rows) if title.startswith("Pass rate")), [])
        curves[run.name] = line_chart(first, label=f"Pass rate of {run.name}")
    return "training.html", {"active": "training", "runs": runs, "curves": curves, "live": True}


def training_run_page(site: Site, _query: Query, name: str) -> Found:
    """The curves of a training run, and what its curriculum asked for."""
    run = next((r for r in training.training_runs(site.index, site.run_folders) if r.name == name), None)
    if run is None:
        return None
    rows = training.metrics(site.index, run)
    charts = [
        {"title": title, "names": [s.name for s in series], "last": [s.points[-1][1] for s in series],
         "svg": line_chart(series, label=f"{title}, by step")}
        for title, series in training.chart_series(rows)
    ]  # fmt: skip
    return "training_run.html", {
        "active": "training",
        "run": run,
        "charts": charts,
        "steps": rows[-12:][::-1],
        "num_steps": len(rows),
        "requests": training.requests(run),
        "live": True,
    }


def compare_page(site: Site, query: Query) -> Found:
    """Two snapshots compared; the two newest by default."""
    kept = {folder.name: folder for folder in snapshots(site.index.root)}
    newest = list(kept)[-2:]
    a = query.get("a", "") if query.get("a", "") in kept else newest[0] if newest else ""
    b = query.get("b", "") if query.get("b", "") in kept else newest[-1] if newest else ""
    key = ("compare", a, b, *kept)
    result = site.index.cached(key, lambda: comparison.compare(site.index, kept[a], kept[b])) if a and a != b else None
    facts = site.index.cached(("facts", *kept), lambda: comparison.snapshot_facts(site.index.root))
    return "compare.html", {"active": "compare", "facts": facts, "a": a, "b": b, "result": result, "live": True}


def generation_page(site: Site, query: Query) -> Found:
    """A run of ``excise generate`` from its log, also while it runs."""
    names = generation.run_names(site.index.root)
    name = query.get("run", "") if query.get("run", "") in names else names[0] if names else ""
    run = generation.read_run(site.index.root, name) if name else None
    return "generation.html", {"active": "generation", "names": names, "run": run, "live": True}


def refreshes_page(site: Site, query: Query) -> Found:
    """The list of refreshes."""
    found = refreshes.refresh_list(site.index.root, query.get("page", ""), site.page_size)
    return "refreshes.html", {"active": "refreshes", "found": found, "live": True}


def refresh_page(site: Site, _query: Query, refresh_id: str) -> Found:
    """Everything about one refresh."""
    found = refreshes.whole_refresh(site.index, refresh_id)
    if found is None:
        return None
    report, most = found.report, refreshes.MAX_LISTED
    order = ("quarantined", "unconfirmed", "undecided", "holds")
    return "refresh.html", {
        "active": "refreshes",
        "found": found,
        "report": report,
        "max_listed": most,
        "runs": generation.run_names(site.index.root),
        "shown_reverified": sorted(report.reverified, key=lambda t: [*order, t.outcome].index(t.outcome))[:most],
        "shown_sources": sorted(report.sources, key=lambda source: not source.stage)[:most],
    }


def imports_page(site: Site, query: Query) -> Found:
    """The rows of other tools' sets and what became of them."""
    wanted = _wanted(query, "q", *imported.FILTERS)
    return "imports.html", {
        "active": "imports",
        "found": imported.import_list(site.index, {**wanted, "page": query.get("page", "")}, site.page_size),
        "choices": site.index.cached("import choices", lambda: imported.choices(site.index)),
        "wanted": wanted,
        "live": True,
    }


def import_page(site: Site, _query: Query, imported_set: str, place: str) -> Found:
    """Everything about one row of another tool's set."""
    row = imported.whole_import(site.index, imported_set, place)
    return ("import.html", {"active": "imports", "row": row, "claims": site.claims}) if row else None


def raw_text(site: Site, instance_id: str, column: str) -> str | None:
    """A column of a task as it is stored; ``None`` if there is none."""
    row = tasks.find_task(site.index, instance_id) if column in RAW_COLUMNS else None
    return None if row is None else str(row.get(column) or "")


def keep_ready(site: Site) -> None:
    """Have the sums and the choices of filters ready before anyone asks for a page."""
    index = site.index
    index.keep_ready("overview", lambda: overview.overview(index))
    index.keep_ready("first projects", lambda: overview.projects(index, limit=15))
    index.keep_ready("count projects", lambda: overview.count_projects(index))
    index.keep_ready("task choices", lambda: tasks.choices(index))
    tasks.keep_order_ready(index)
    index.keep_ready("rejection choices", lambda: rejections.choices(index))
    index.keep_ready("try choices", lambda: tries.choices(index))


LISTS: dict[str, Callable[[Site, Query], Found]] = {
    "": overview_page,
    "projects": projects_page,
    "tasks": tasks_page,
    "rejections": rejections_page,
    "tries": tries_page,
    "scores": scores_page,
    "training": training_page,
    "compare": compare_page,
    "generation": generation_page,
    "refreshes": refreshes_page,
    "imports": imports_page,
}
"""Pages without parts in their address."""
DETAILS: dict[str, tuple[int, Callable[..., Found]]] = {
    "task": (1, task_page),
    "rejection": (2, rejection_page),
    "try": (3, try_page),
    "run": (1, training_run_page),
    "refresh": (1, refresh_page),
    "import": (2, import_page),
}
"""Pages about one thing: how many parts the address has after the name, and the page."""


def _wanted(query: Query, *names: str) -> dict[str, str]:
    return {name: query.get(name, "")[:300] for name in names}
