"""Joining of task sets, for example those of several machines, into one.

A project that only one set has is taken over as it is: its files are linked. A project that several sets have is joined
row by row where its sources are the same; where they differ, it is kept twice, the second time with its tree in its
name. Of a task that several sets have, the first one stays; where another one differs in more than its proof, that is a
conflict, which is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from excise.datasets.comparison.set_diff import COSTS
from excise.datasets.rows import Row, canonical_json, sort_key, with_all_columns
from excise.datasets.schema import TABLES
from excise.datasets.storage import near_duplicates
from excise.datasets.storage.blobs import Blobs
from excise.datasets.storage.garbage import referenced_blobs
from excise.datasets.storage.manifest import SnapshotReport
from excise.datasets.storage.near_duplicates import NearDuplicate
from excise.datasets.storage.set_index import Entry
from excise.datasets.storage.set_reference import folder_of
from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.storage.store import Store
from excise.datasets.storage.writer import Writer
from excise.errors import StoreError
from excise.system.files import link_or_copy, store_errors, sync
from excise.types import DETERMINISTIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A task that two sets have with different contents."""

    instance_id: str
    """The task."""
    set: str
    """Folder of the set whose task was left out."""
    columns: tuple[str, ...]
    """Columns that differ, besides those of the proof."""


@dataclass(slots=True, kw_only=True)
class MergeReport:
    """What a merge did."""

    report: SnapshotReport = field(default_factory=SnapshotReport)
    """Changes of the set that was written."""
    num_repeated: int = 0
    """Number of tasks that the joined set had already."""
    conflicts: list[Conflict] = field(default_factory=list)
    """Those of them with other contents."""
    versions: dict[str, str] = field(default_factory=dict)
    """Name of a project that was kept a second time, to the entry that it came from."""
    num_blobs: int = 0
    """Number of archives and kits that were taken along."""
    near_duplicates: tuple[NearDuplicate, ...] = ()
    """New tasks that are almost the same as others."""


def merge(sources: Sequence[Snapshot], out: Path) -> MergeReport:
    """Join snapshots into the set in the folder ``out``, which may have tasks already, and publish it once.

    Raises :class:`StoreError` if a set is damaged or ``out`` is being written. Nothing is published then.
    """
    report = MergeReport()
    with Store(out).writer() as writer:
        for snapshot in sources:
            report.num_blobs += _take_blobs(snapshot, out)
            for name in sorted(snapshot.index.entries):
                _Project(writer, snapshot, name).add(report)
        report.report = writer.changes()
        writer.publish()
        report.near_duplicates = near_duplicates.update(out)
    return report


def _take_blobs(snapshot: Snapshot, out: Path) -> int:
    """Link or copy the archives and kits of a snapshot; return the number of new ones."""
    theirs, ours, count = Blobs(folder_of(snapshot)), Blobs(out), 0
    for sha in referenced_blobs(snapshot):
        for suffix in (".tar.xz", ".json"):
            source = theirs.root / sha[:2] / f"{sha}{suffix}"
            target = ours.root / sha[:2] / source.name
            if source.exists() and not target.exists():
                theirs.path(sha, suffix)
                with store_errors("store a source archive"):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    temporary = target.with_name(f".{target.name}.merge.tmp")
                    temporary.unlink(missing_ok=True)
                    link_or_copy(source, temporary)
                    temporary.replace(target)
                    sync(target.parent)
                count += 1
    return count


class _Project:
    """One project of one set on its way into another."""

    def __init__(self, writer: Writer, snapshot: Snapshot, name: str) -> None:
        self._writer, self._snapshot, self._name = writer, snapshot, name
        self._entry = snapshot.index.entries[name]

    def add(self, report: MergeReport) -> None:
        """Take the project over, or join it with the one that is there."""
        target = self._target()
        if target != self._name:
            report.versions[target] = self._name
        known = self._writer.entry(target)
        if known is None:
            try:
                self._writer.put_entry(target, self._snapshot, self._name)
                return
            except StoreError as error:
                if error.reason != "duplicate_task":
                    raise
        elif _digests(known) == _digests(self._entry):
            report.num_repeated += self._entry.num_tasks
            return
        self._join(target, report)

    def _target(self) -> str:
        """The name in the joined set: another one if there is a project of this name with other sources."""
        [tree] = {str(row["tree"]) for row in self._rows("repos")} or {""}
        known = {str(row["tree"]) for row in self._writer.rows(self._name, "repos")}
        is_other = known - {tree, "None"} and tree not in ("", "None")
        return f"{self._name}@{tree[:12]}" if is_other else self._name

    def _rows(self, table: str) -> list[Row]:
        return self._snapshot.rows(table, self._name)

    def _join(self, target: str, report: MergeReport) -> None:
        ours = {table: self._writer.rows(target, table) for table in TABLES}
        theirs = {table: self._rows(table) for table in TABLES}
        new = [row for row in theirs["tasks"] if not self._is_known(row, report)]
        subjects = {row["instance_id"] for row in ours["verdicts"]} | {row["instance_id"] for row in ours["tasks"]}
        added = {
            "tasks": new,
            "verdicts": [row for row in theirs["verdicts"] if row["instance_id"] not in subjects],
            "rejections": theirs["rejections"],
            "repos": [] if any(row["tree"] for row in ours["repos"]) else theirs["repos"],
            "environments": _unknown(ours["environments"], theirs["environments"], "env_id"),
            "quarantines": theirs["quarantines"],
            "features": _unknown(ours["features"], theirs["features"], "feature_id"),
            "symbols": _unknown(ours["symbols"], theirs["symbols"], "symbol"),
            "statements": self._statements(ours, theirs, new),
        }
        if added["repos"]:
            ours["repos"] = []  # a source that this machine could fetch replaces one that another could not
        joined = {table: _sorted(table, [*ours[table], *added[table]]) for table in TABLES}
        known = self._writer.entry(target)
        self._writer.put_rows(target, joined, known.spec if known else self._entry.spec)

    def _statements(self, ours: dict[str, list[Row]], theirs: dict[str, list[Row]], new: list[Row]) -> list[Row]:
        """Their statements of new tasks; of others those of models, which ours may not have asked."""
        known = {(row["instance_id"], row["style"], row["author"]) for row in ours["statements"]}
        added = {row["instance_id"] for row in new}
        tasks = added | {row["instance_id"] for row in ours["tasks"]}
        return [
            row
            for row in theirs["statements"]
            if row["instance_id"] in added
            or (
                row["author"] != DETERMINISTIC
                and row["instance_id"] in tasks
                and (row["instance_id"], row["style"], row["author"]) not in known
            )
        ]

    def _is_known(self, row: Row, report: MergeReport) -> bool:
        """Whether the joined set has the task; a difference is noted."""
        instance_id = str(row["instance_id"])
        known = self._writer.task_row(instance_id)
        if known is None:
            return False
        report.num_repeated += 1
        columns = sorted(c for c in {*row, *known} - COSTS if row.get(c) != known.get(c))
        if columns:
            folder = str(folder_of(self._snapshot))
            report.conflicts.append(Conflict(instance_id=instance_id, set=folder, columns=tuple(columns)))
        return True


def _digests(entry: Entry) -> dict[str, str]:
    return {table: place.digest for table, place in entry.tables.items()}


def _unknown(ours: Iterable[Row], theirs: Iterable[Row], key: str) -> list[Row]:
    known = {row[key] for row in ours}
    return [row for row in theirs if row[key] not in known]


def _sorted(table: str, rows: list[Row]) -> list[Row]:
    """Different rows in the order of the table."""
    whole = (with_all_columns(TABLES[table], row) for row in rows)
    by_text = {canonical_json(row): row for row in whole}
    return sorted(by_text.values(), key=lambda row: sort_key(TABLES[table], row))
