"""Sums over the whole set: funnel, difficulty, coverage, reasons, gates, cost per project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from excise.datasets.viewer.loaded_set import LoadedSet, Row

_FUNNEL = """
SELECT count(*) AS sources, count(*) FILTER (status = 'ok') AS ok, sum(num_tests) AS tests,
       sum(num_passing) AS passing, sum(num_flaky) AS flaky, sum(num_symbols) AS symbols, sum(num_covered) AS covered,
       sum(num_features) AS features, sum(num_candidates) AS candidates, sum(num_valid) AS valid,
       sum(cpu_s) AS cpu_s, count(DISTINCT repo) AS projects
FROM repo_rows
"""
_TASKS = """
SELECT count(*) AS tasks, count(DISTINCT repo) AS projects, median(loc) AS loc, quantile_cont(loc, 0.9) AS loc_p90,
       median(num_f2p) AS f2p, avg(cpu_s) AS gate_cpu_s,
       (SELECT count(DISTINCT instance_id) FROM quarantine_rows) AS quarantined
FROM task_rows
"""
_DIFFICULTY = """
SELECT tier, count(*) AS tasks, median(loc) AS loc, avg(complexity) AS complexity, avg(num_f2p) AS f2p,
       avg(num_files) AS files
FROM task_rows GROUP BY tier ORDER BY tier
"""
_KINDS = "SELECT {column} AS name, count(*) AS tasks FROM task_rows GROUP BY ALL ORDER BY tasks DESC, name LIMIT 12"
_REASONS = """
SELECT reason, stage, count(*) AS refused, count(DISTINCT repo) AS projects, any_value(detail) AS example
FROM rejection_rows GROUP BY reason, stage ORDER BY refused DESC, reason LIMIT 14
"""
_NOT_PROPOSED = """
SELECT entry.key AS reason, sum(entry.value)::BIGINT AS symbols
FROM (SELECT unnest(map_entries(not_proposed)) AS entry FROM repo_rows) GROUP BY ALL ORDER BY symbols DESC LIMIT 10
"""
_GATES = """
SELECT gate, sum(num_runs)::BIGINT AS runs, sum(num_passed)::BIGINT AS passed, sum(num_failed)::BIGINT AS failed,
       sum(num_undecided)::BIGINT AS undecided, sum(cpu_s) AS cpu_s, sum(cpu_s) / sum(num_runs) AS mean_cpu_s
FROM gate_sums GROUP BY gate ORDER BY cpu_s DESC
"""
PROJECT_SORTS = {
    "tasks": "tasks DESC, repo",
    "repo": "repo",
    "yield": "valid_share DESC NULLS LAST, repo",
    "cost": "cpu_per_task DESC NULLS LAST, repo",
    "coverage": "covered_share DESC NULLS LAST, repo",
    "tests": "num_tests DESC, repo",
    "status": "status, repo",
}
"""Names of orders of the projects to SQL."""
_PROJECTS = """
WITH counted AS (SELECT repo, count(*) AS tasks FROM task_rows GROUP BY repo)
SELECT r.repo, r.version, r.license, r.source, r.status, r.detail, r.num_tests, r.num_passing, r.num_flaky,
       r.num_symbols, r.num_covered, r.num_features, r.num_candidates, r.num_valid, coalesce(c.tasks, 0) AS tasks,
       r.num_valid / nullif(r.num_candidates, 0) AS valid_share,
       r.num_covered / nullif(r.num_symbols, 0) AS covered_share,
       r.cpu_s, r.cpu_s / nullif(r.num_valid, 0) AS cpu_per_task
FROM repo_rows r LEFT JOIN counted c USING (repo)
WHERE contains(lower(concat_ws(' ', r.repo, r.source, r.status)), ?)
ORDER BY {order} LIMIT ? OFFSET ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What the first page shows."""

    funnel: Row
    """Sums of the counts of all sources."""
    tasks: Row
    """Sums over the tasks."""
    tiers: list[Row]
    """One row a tier."""
    kinds: list[Row]
    """Kinds of features with their number of tasks."""
    deleters: list[Row]
    """Deleters with their number of tasks."""
    reasons: list[Row]
    """Most frequent reasons of refusal."""
    not_proposed: list[Row]
    """Why symbols are in no feature."""
    gates: list[Row]
    """One row a gate, the most costly first."""


def overview(index: LoadedSet) -> Overview:
    """The sums over the set."""
    return Overview(
        funnel=index.row(_FUNNEL) or {},
        tasks=index.row(_TASKS) or {},
        tiers=index.rows(_DIFFICULTY),
        kinds=index.rows(_KINDS.format(column="kind")),
        deleters=index.rows(_KINDS.format(column="deleter")),
        reasons=index.rows(_REASONS),
        not_proposed=index.rows(_NOT_PROPOSED),
        gates=index.rows(_GATES),
    )


def projects(index: LoadedSet, *, search: str = "", sort: str = "tasks", limit: int = 50, offset: int = 0) -> list[Row]:
    """Sources with yield, coverage and cost."""
    order = PROJECT_SORTS.get(sort, PROJECT_SORTS["tasks"])
    return index.rows(_PROJECTS.format(order=order), [search.lower(), limit, offset])


def count_projects(index: LoadedSet, search: str = "") -> int:
    """Number of sources that :func:`projects` gives."""
    sql = "SELECT count(*) AS n FROM repo_rows WHERE contains(lower(concat_ws(' ', repo, source, status)), ?)"
    row: dict[str, Any] = index.row(sql, [search.lower()]) or {}
    return int(row.get("n", 0))
