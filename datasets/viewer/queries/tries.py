"""Rollouts of training runs and attempts of ``excise solve``, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from excise.datasets.queries.attempts import PARTS
from excise.datasets.viewer.loaded_set import LoadedSet, Row
from excise.datasets.viewer.queries.filters import Page, Where, choices_of, page_of
from excise.datasets.viewer.rendering.conversation import (
    Message,
    rollout_messages,
    trajectory_messages,
    transcript_messages,
)

SORTS = {
    "newest": "step DESC, run, try_id",
    "reward": "reward DESC, run, try_id",
    "tokens": "tokens DESC NULLS LAST, run, try_id",
    "task": "instance_id, run, step, try_id",
}
"""Names of orders to SQL."""
FILTERS = {"origin": "origin", "run": "run", "task": "instance_id", "ending": "ending", "agent": "agent"}
"""Names of filters to columns."""
_MAX_TRAJECTORY_BYTES = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TryList:
    """One page of rollouts and attempts."""

    page: Page
    """Which page."""
    rows: list[Row]
    """The rollouts and attempts."""
    solved: int
    """How many of all pages got the full reward."""
    flagged: int
    """How many of all pages the monitor flagged."""


def try_list(index: LoadedSet, wanted: Mapping[str, str], size: int = 50) -> TryList:
    """The rollouts and attempts that an address asks for."""
    where = Where()
    where.search(wanted.get("q", ""), "lower(concat_ws(' ', instance_id, run, try_id))")
    where.equals(wanted, FILTERS)
    if wanted.get("solved") in {"yes", "no"}:
        where.add("solved = ?", wanted["solved"] == "yes")
    for name, column in (("flag", "flags"), ("hint", "hints")):
        if wanted.get(name) == "any":
            where.add(f"len({column}) > 0")
        elif wanted.get(name):
            where.add(f"list_contains({column}, ?)", wanted[name])
    sql = f"""SELECT count(*) AS n, count(*) FILTER (solved) AS solved, count(*) FILTER (len(flags) > 0) AS flagged
              FROM tries{where.sql}"""
    sums = index.row(sql, where.values) or {"n": 0, "solved": 0, "flagged": 0}
    page = page_of(wanted.get("page", ""), int(sums["n"]), size)
    order = SORTS.get(wanted.get("sort", ""), SORTS["newest"])
    rows = index.rows(
        f"SELECT * FROM tries{where.sql} ORDER BY {order} LIMIT ? OFFSET ?", [*where.values, page.size, page.offset]
    )
    return TryList(page=page, rows=rows, solved=int(sums["solved"]), flagged=int(sums["flagged"]))


def choices(index: LoadedSet) -> dict[str, list[str]]:
    """The values that filters offer, the most frequent first."""
    lists = {"flag": "unnest(flags)", "hint": "unnest(hints)"}
    columns = {name: column for name, column in FILTERS.items() if name != "task"} | lists
    return choices_of(index, "tries", columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTry:
    """Everything about one rollout or attempt."""

    summary: Row
    """The row of the view ``tries``."""
    row: Row
    """All columns of its file."""
    messages: list[Message]
    """The conversation, turn by turn."""
    group: list[Row]
    """All rollouts of its group, or all attempts of the run at the task."""


def whole_try(index: LoadedSet, origin: str, run: str, try_id: str) -> WholeTry | None:
    """A rollout or an attempt; ``None`` if there is none."""
    sql = "SELECT * FROM tries WHERE origin = ? AND run = ? AND try_id = ?"
    summary = index.row(sql, [origin, run, try_id])
    row = index.whole_row(summary) if summary else None
    if summary is None or row is None:
        return None
    if origin == "rollout":
        messages = rollout_messages(str(row.get("text") or ""), str(row.get("segments") or ""))
        group = index.rows(
            """SELECT 'rollout' AS origin, * FROM rollout_rows WHERE run = ? AND group_id = ? AND step = ?
               ORDER BY try_id LIMIT 64""",
            [run, row.get("group_id"), row.get("step")],
        )
    else:
        messages = _attempt_messages(Path(str(summary["file"])), row)
        sql = "SELECT * FROM tries WHERE origin = ? AND run = ? AND instance_id = ? ORDER BY step LIMIT 64"
        group = index.rows(sql, [origin, run, row.get("instance_id")])
    return WholeTry(summary=summary, row=row, messages=messages, group=group)


def _attempt_messages(file: Path, row: Row) -> list[Message]:
    """What the model wrote, where it is known; else what was seen from outside its sandbox."""
    said = transcript_messages(str(row.get("transcript") or ""))
    if any(message.role == "assistant" for message in said):
        return said
    folder = file.parent.parent if file.parent.name == PARTS else file.parent
    name = str(row.get("attempt_id") or "")
    trajectory = folder / f"{name if '/' not in name else file.stem}.jsonl"
    try:
        if trajectory.stat().st_size <= _MAX_TRAJECTORY_BYTES:
            seen = trajectory_messages(trajectory.read_text(encoding="utf-8", errors="replace").splitlines())
            return seen or said
    except OSError:
        pass
    return said
