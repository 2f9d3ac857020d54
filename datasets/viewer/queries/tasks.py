"""Lists of tasks, and everything about one task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from excise.datasets.viewer.loaded_set import LoadedSet, Row
from excise.datasets.viewer.queries.filters import Page, Where, choices_of, page_of
from excise.types import DETERMINISTIC

SORTS = {
    "id": "instance_id",
    "repo": "repo, instance_id",
    "tier": "tier DESC, loc DESC, instance_id",
    "loc": "loc DESC, instance_id",
    "tests": "num_f2p DESC, instance_id",
    "complexity": "complexity DESC, instance_id",
    "cost": "cpu_s DESC, instance_id",
    "easy": "tier, loc, instance_id",
}
"""Names of orders to SQL."""
DEEP = 5000
"""Rows before a page from which on all rows are sorted once and remembered."""
FILTERS = {"repo": "repo", "kind": "kind", "tier": "tier", "deleter": "deleter", "visibility": "visibility"}
"""Names of filters to columns."""
_COLUMNS = """instance_id, repo, version, kind, tier, loc, num_files, num_symbols, complexity, num_f2p, num_p2p,
       deleter, removed, cpu_s"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskList:
    """One page of tasks."""

    page: Page
    """Which page."""
    rows: list[Row]
    """The tasks."""


def task_list(index: LoadedSet, wanted: Mapping[str, str], size: int = 50) -> TaskList:
    """The tasks that search and filters of an address ask for."""
    where = Where()
    where.search(wanted.get("q", ""))
    where.equals(wanted, FILTERS)
    if wanted.get("quarantined"):
        where.add("instance_id IN (SELECT instance_id FROM quarantine_rows)")
    if wanted.get("text") and wanted.get("q"):
        where = _in_statements(index, wanted)
    key = sorted((name, value) for name, value in wanted.items() if value and name not in {"page", "sort"})
    counted = index.cached(
        ("count", *key),
        lambda: index.row(f"SELECT count(*) AS n FROM task_rows{where.sql}", where.values),
    )
    page = page_of(wanted.get("page", ""), int((counted or {"n": 0})["n"]), size)
    order = SORTS.get(wanted.get("sort", ""), SORTS["id"])
    if page.offset > DEEP:
        ids = index.cached(("order", order, *key), lambda: _all_in_order(index, where, order))
        chosen, values = "SELECT unnest(?::BIGINT[])", [ids[page.offset : page.offset + page.size].tolist()]
    else:
        chosen = f"SELECT rowid FROM task_rows{where.sql} ORDER BY {order} LIMIT ? OFFSET ?"
        values = [*where.values, page.size, page.offset]
    sql = f"""SELECT {_COLUMNS}, instance_id IN (SELECT instance_id FROM quarantine_rows) AS quarantined
              FROM task_rows WHERE rowid IN ({chosen}) ORDER BY {order}"""
    return TaskList(page=page, rows=index.rows(sql, values))


def keep_order_ready(index: LoadedSet) -> None:
    """Have the order of all tasks ready, which deep pages of the whole list need."""
    index.keep_ready(("order", SORTS["id"]), lambda: _all_in_order(index, Where(), SORTS["id"]))


def _all_in_order(index: LoadedSet, where: Where, order: str) -> Any:
    """Row numbers of all tasks as a NumPy array: later pages of a long list need no sorting."""
    return index.column(f"SELECT rowid FROM task_rows{where.sql} ORDER BY {order}", where.values)


def _in_statements(index: LoadedSet, wanted: Mapping[str, str]) -> Where:
    """Conditions for a search in the statements, which are read from the files."""
    where = Where()
    where.equals(wanted, FILTERS)
    words = wanted["q"].split()[:8]
    files = [str(row["file"]) for row in index.rows(f"SELECT DISTINCT file FROM task_rows{where.sql}", where.values)]
    test = " AND ".join(["contains(lower(problem_statement), ?)"] * len(words))
    where.add(
        f"instance_id IN (SELECT instance_id FROM read_parquet(?, union_by_name = true) WHERE {test or 'true'})",
        files or [""],
        *[word.lower() for word in words],
    )
    if not files:
        return Where(parts=["false"])
    return where


def choices(index: LoadedSet) -> dict[str, list[str]]:
    """The values that filters offer, the most frequent first."""
    return choices_of(index, "task_rows", FILTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRuns:
    """All runs of one gate in a certificate."""

    gate: str
    """Name of the gate."""
    outcome: str
    """Outcome of the run that decides: the first that did not pass."""
    reason: str
    """Its reason code."""
    detail: str
    """Its explanation."""
    runs: list[Row]
    """The verdicts."""
    cpu_s: float
    """CPU seconds of all runs."""
    num_tests: int
    """Tests of the deciding run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTask:
    """Everything about one task."""

    row: Row
    """All columns of the task."""
    repo: Row
    """The project's row; empty if there is none."""
    certificate: Row
    """The certificate without its verdicts."""
    gates: list[GateRuns]
    """The certificate gate by gate."""
    siblings: list[Row]
    """Other tasks of the same feature."""
    statements: list[Row]
    """Its statements in other styles and of other authors."""
    quarantines: list[Row]
    """Why it is excluded, if it is."""
    tries: list[Row]
    """Newest attempts and rollouts."""
    num_tries: int
    """Number of attempts and rollouts."""
    neighbours: tuple[str, str]
    """Ids of the project's tasks before and after it; empty at the ends."""


def find_task(index: LoadedSet, instance_id: str) -> Row | None:
    """All columns of a task."""
    place = index.row("SELECT file, row FROM task_rows WHERE instance_id = ?", [instance_id])
    return index.whole_row(place) if place else None


def whole_task(index: LoadedSet, instance_id: str) -> WholeTask | None:
    """Everything about a task; ``None`` if the set has none of this id."""
    place = index.row("SELECT file, row FROM task_rows WHERE instance_id = ?", [instance_id])
    row = index.whole_row(place) if place else None
    if place is None or row is None:
        return None
    siblings = f"""SELECT {_COLUMNS}, false AS quarantined FROM task_rows
                   WHERE feature_id = ? AND repo = ? AND instance_id <> ? ORDER BY loc LIMIT 50"""
    tries = "SELECT * FROM tries WHERE instance_id = ? ORDER BY run, step DESC, try_id LIMIT 30"
    certificate, gates = _certificate(row.get("certificate"))
    return WholeTask(
        row=row,
        repo=index.row("SELECT * FROM repo_rows WHERE repo = ? LIMIT 1", [row["repo"]]) or {},
        certificate=certificate,
        gates=gates,
        siblings=index.rows(siblings, [row["feature_id"], row["repo"], instance_id]),
        statements=_statements(index, instance_id),
        quarantines=index.rows("SELECT * FROM quarantine_rows WHERE instance_id = ?", [instance_id]),
        tries=index.rows(tries, [instance_id]),
        num_tries=_count(index.row("SELECT count(*) AS n FROM tries WHERE instance_id = ?", [instance_id])),
        neighbours=(_beside(index, place, -1), _beside(index, place, 1)),
    )


def _statements(index: LoadedSet, instance_id: str) -> list[Row]:
    """Statements beside the one in the task's row, read from the snapshot; sets of older versions have none."""
    folder = index.snapshot / "statements" if index.snapshot else None
    files = [str(path) for path in folder.glob("*.parquet")] if folder else []
    sql = """SELECT style, author, text, complete, added, missing FROM read_parquet(?, union_by_name = true)
             WHERE instance_id = ? AND NOT (style = 'specification' AND author = ?) ORDER BY style, author"""
    return index.rows(sql, [files, instance_id, DETERMINISTIC]) if files else []


def _beside(index: LoadedSet, place: Row, step: int) -> str:
    """Id of the next or previous task of the same project; empty at the ends."""
    sql = "SELECT instance_id AS id FROM task_rows WHERE file = ? AND row = ?"
    row = index.row(sql, [place["file"], place["row"] + step])
    return str(row["id"]) if row else ""


def _count(row: Row | None) -> int:
    return int(row["n"]) if row else 0


def _certificate(text: object) -> tuple[Row, list[GateRuns]]:
    try:
        record: Any = json.loads(str(text)) if text else {}
    except ValueError:
        record = {}
    if not isinstance(record, dict):
        record = {}
    listed = record.get("verdicts")
    verdicts = [_checked(v, _VERDICT) for v in listed if isinstance(v, dict)] if isinstance(listed, list) else []
    return _checked(record, _CERTIFICATE), gates_of(verdicts)


_NUMBER = (int, float)
_CERTIFICATE = {
    "flake_rate": _NUMBER,
    "num_runs": _NUMBER,
    "cpu_s": _NUMBER,
    "excise_version": (str,),
    "digest": (str,),
}
_VERDICT = {
    "gate": (str,), "run": _NUMBER, "worker_outcome": (str,), "outcome": (str,), "reason": (str,), "detail": (str,),
    "num_tests": _NUMBER, "statuses": (dict,), "evidence": (dict,), "cpu_s": _NUMBER, "wall_s": _NUMBER,
}  # fmt: skip


def _checked(record: Row, kinds: Mapping[str, tuple[type, ...]]) -> Row:
    """The fields of a record of JSON that are of the right kind: a set may come from anyone."""
    return {name: record[name] for name, kind in kinds.items() if isinstance(record.get(name), kind)}


def gates_of(verdicts: list[Row]) -> list[GateRuns]:
    """Verdicts gathered by gate, in the order of the first."""
    ordered = list(dict.fromkeys(str(verdict.get("gate")) for verdict in verdicts))
    by_rank = sorted(verdicts, key=lambda verdict: ordered.index(str(verdict.get("gate"))))
    found = []
    for gate, group in groupby(by_rank, key=lambda verdict: str(verdict.get("gate"))):
        runs = list(group)
        deciding = next((run for run in runs if run.get("outcome") != "PASSED"), runs[0])
        found.append(
            GateRuns(
                gate=gate,
                outcome=str(deciding.get("outcome", "")),
                reason=str(deciding.get("reason") or ""),
                detail=str(deciding.get("detail") or ""),
                runs=runs,
                cpu_s=sum(float(run.get("cpu_s") or 0) for run in runs),
                num_tests=int(deciding.get("num_tests") or 0),
            )
        )
    return found
