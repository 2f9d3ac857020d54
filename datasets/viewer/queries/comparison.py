"""Two snapshots compared. Files that both have are equal, so that only the others are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from excise.datasets.storage.snapshot import EMPTY_FILE, Snapshot
from excise.datasets.viewer.loaded_set import LoadedSet, Row, snapshots
from excise.errors import StoreError

MAX_ROWS = 500
"""Tasks that are listed for each kind of change."""
_CHANGES = ("came", "changed", "went")
_TASKS = """
WITH a AS (SELECT instance_id, repo, certificate_id, hash(patch, problem_statement, test_patch) AS content, tier, loc
           FROM read_parquet(?, union_by_name = true)),
     b AS (SELECT instance_id, repo, certificate_id, hash(patch, problem_statement, test_patch) AS content, tier, loc
           FROM read_parquet(?, union_by_name = true))
SELECT coalesce(b.instance_id, a.instance_id) AS instance_id, coalesce(b.repo, a.repo) AS repo,
       CASE WHEN a.instance_id IS NULL THEN 'came' WHEN b.instance_id IS NULL THEN 'went'
            WHEN a.content IS DISTINCT FROM b.content THEN 'changed'
            WHEN a.certificate_id IS DISTINCT FROM b.certificate_id THEN 'proven again' ELSE '' END AS change,
       coalesce(b.tier, a.tier) AS tier, coalesce(b.loc, a.loc) AS loc
FROM a FULL JOIN b USING (instance_id) ORDER BY change, repo, instance_id
"""
_REPOS = """
WITH a AS (SELECT * FROM read_parquet(?, union_by_name = true)),
     b AS (SELECT * FROM read_parquet(?, union_by_name = true))
SELECT coalesce(b.repo, a.repo) AS repo, a.status AS status_a, b.status AS status_b, a.version AS version_a,
       b.version AS version_b, a.num_valid AS valid_a, b.num_valid AS valid_b, a.num_candidates AS tried_a,
       b.num_candidates AS tried_b, a.cpu_s AS cpu_a, b.cpu_s AS cpu_b
FROM a FULL JOIN b ON a.repo = b.repo AND a.source IS NOT DISTINCT FROM b.source
ORDER BY 1
"""
_REASONS = """
WITH a AS (SELECT reason, count(*) AS n FROM read_parquet(?, union_by_name = true) GROUP BY 1),
     b AS (SELECT reason, count(*) AS n FROM read_parquet(?, union_by_name = true) GROUP BY 1)
SELECT coalesce(a.reason, b.reason) AS reason, coalesce(a.n, 0) AS before, coalesce(b.n, 0) AS after
FROM a FULL JOIN b USING (reason) WHERE a.n IS DISTINCT FROM b.n ORDER BY abs(after - before) DESC, reason
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is different between two snapshots."""

    tasks: list[Row]
    """Tasks that came, changed, went or were proven again; at most :data:`MAX_ROWS` of each."""
    counts: dict[str, int]
    """Kind of change to number of tasks."""
    unchanged: int
    """Number of tasks that are equal in both."""
    repos: list[Row]
    """Projects that changed."""
    reasons: list[Row]
    """Reasons of refusal whose number changed."""


def snapshot_facts(root: Path) -> list[Row]:
    """Number, time and size of the snapshots that are kept, newest first."""
    found = []
    for folder in reversed(snapshots(root)):
        try:
            snapshot = Snapshot.open(folder)
            sources = len(snapshot.index.entries)
        except StoreError:
            continue
        manifest, report = snapshot.manifest, snapshot.manifest.report
        num_tasks = manifest.num_tasks or sum(len(entry.tasks) for entry in manifest.repos.values())
        changes = {name: getattr(report, f"num_{name}") or len(getattr(report, name)) for name in _CHANGES}
        row = {"number": folder.name, "created_at": manifest.created_at, "tasks": num_tasks, "sources": sources}
        found.append(row | changes)
    return found


def compare(index: LoadedSet, before: Path, after: Path) -> Comparison:
    """What is different in ``after`` against ``before``."""
    rows = index.rows(_TASKS, _different(before, after, "tasks"))
    changed = [row for row in rows if row["change"]]
    counts: dict[str, int] = {}
    shown = []
    for row in changed:
        counts[row["change"]] = counts.get(row["change"], 0) + 1
        if counts[row["change"]] <= MAX_ROWS:
            shown.append(row)
    same = _num_rows(index, sorted(_names(before, "tasks") & _names(after, "tasks")), after / "tasks")
    return Comparison(
        tasks=shown,
        counts=counts,
        unchanged=same + len(rows) - len(changed),
        repos=index.rows(_REPOS, _different(before, after, "repos")),
        reasons=index.rows(_REASONS, _different(before, after, "rejections")),
    )


def _names(snapshot: Path, table: str) -> set[str]:
    return {path.name for path in (snapshot / table).glob("*.parquet")} - {EMPTY_FILE}


def _different(before: Path, after: Path, table: str) -> list[list[str]]:
    """Files of a table that only one of the snapshots has, and an empty one, which gives the columns."""
    a, b = _names(before, table), _names(after, table)
    return [
        [str(folder / table / EMPTY_FILE), *(str(folder / table / name) for name in sorted(own))]
        for folder, own in ((before, a - b), (after, b - a))
    ]


def _num_rows(index: LoadedSet, names: list[str], folder: Path) -> int:
    if not names:
        return 0
    sql = "SELECT sum(num_rows)::BIGINT AS n FROM parquet_file_metadata(?)"
    row = index.row(sql, [[str(folder / name) for name in names]])
    return int(row["n"] or 0) if row else 0
