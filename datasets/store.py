"""The folder of a task set: atomically published snapshots, source archives and grading kits.

::

    DIR/current -> snapshots/7             replaced by one rename
    DIR/snapshots/7/manifest.json          files with sha256, rows and bytes; parent; changes
    DIR/snapshots/7/views.sql              views for `duckdb -init views.sql`
    DIR/snapshots/7/tasks/toolz-<hash>.parquet
    DIR/blobs/ab/ab12….tar.xz              original sources
    DIR/blobs/ab/ab12….json                grading kit of a task
    DIR/.lock                              held by the one writer

A writer starts from the current snapshot, so that the results of partial runs accumulate. File names contain content
hashes; files of unchanged repositories are hard links to those of the previous snapshot.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from excise.datasets.blobs import Blobs
from excise.datasets.catalogue import views_sql
from excise.datasets.rows import RepoRows, Row, canonical_json, quarantine_from, quarantine_row, table_rows
from excise.datasets.schema import TABLES
from excise.datasets.snapshot import (
    EMPTY_FILE,
    FileEntry,
    Manifest,
    RepoFiles,
    Snapshot,
    SnapshotReport,
    manifest_bytes,
    read_table,
    write_table,
)
from excise.errors import StoreError
from excise.system.files import file_sha256, link_or_copy, replace_link, store_errors, sync, write_file
from excise.system.locks import exclusive
from excise.types import SCHEMA_VERSION, Quarantine, content_id

KEEP_SNAPSHOTS = 3
"""Number of snapshots that are kept, the current one included, for readers that opened an earlier one."""

_STAGING = ".staging-"


class Store:
    """The folder of a task set, which need not exist yet."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.blobs = Blobs(self.root)

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """The exclusive writer, as a context manager. Unpublished data is discarded at its end.

        Raises :class:`StoreError` if another process is writing, or the folder cannot be written.
        """
        with store_errors("write the task set"):
            (self.root / "snapshots").mkdir(parents=True, exist_ok=True)
        with exclusive(self.root / ".lock"):
            self._remove_stale()
            with store_errors("write the task set"):
                staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self.root / "snapshots"))
            try:
                yield Writer(self.root, staging)
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    def current(self) -> Snapshot | None:
        """The current snapshot, if one was published."""
        return Snapshot.current(self.root)

    def put_blob(self, content: Path | bytes, suffix: str = ".tar.xz") -> str:
        """Store a source archive and return its sha256. No writer is needed, since archives are immutable."""
        return self.blobs.put(content, suffix)

    def _remove_stale(self) -> None:
        """Remove temporary folders of killed writers, and snapshots that were never published."""
        current = self.current()
        number = current.manifest.number if current else 0
        for folder in (self.root / "snapshots").iterdir():
            unpublished = folder.name.isdigit() and int(folder.name) > number
            if folder.name.startswith(_STAGING) or unpublished:
                shutil.rmtree(folder, ignore_errors=True)


class Writer:
    """Collects the records of a run; :meth:`publish` makes them the current snapshot. Made by :meth:`Store.writer`."""

    def __init__(self, root: Path, staging: Path) -> None:
        self._root = root
        self._staging = staging
        self._previous = Snapshot.current(root)
        self._repos = dict(self._previous.manifest.repos) if self._previous else {}
        self._initial_tasks = _task_hashes(self._repos)
        for table in TABLES:
            (staging / table).mkdir()

    def put_repo(self, name: str, rows: RepoRows) -> None:
        """Replace all records of the repository ``name`` (any string that identifies it in this set).

        Quarantines of its tasks are kept until :meth:`release`. Raises :class:`StoreError` if another repository of the
        set has one of the tasks.
        """
        self._refuse_duplicates(name, rows)
        kept = self._quarantines(name, {task.instance_id for task in rows.tasks})
        rows = replace(rows, quarantines=tuple(dict.fromkeys([*kept, *rows.quarantines])))
        tables = table_rows(rows.repo.repo if rows.repo else name, rows)
        files = {table: self._write(table, name, found) for table, found in tables.items() if found}
        tasks = {str(row["instance_id"]): content_id("row", canonical_json(row)) for row in tables["tasks"]}
        self._repos[name] = RepoFiles(files=files, tasks=tasks, spec=rows.spec)

    def quarantine(self, quarantines: Iterable[Quarantine]) -> None:
        """Quarantine tasks of this set. Raises :class:`StoreError` for an unknown task."""
        for quarantine in quarantines:
            name = self._owner(quarantine.instance_id)
            known = self._quarantines(name, set(self._repos[name].tasks))
            if all((q.instance_id, q.leak_id) != (quarantine.instance_id, quarantine.leak_id) for q in known):
                self._write_quarantines(name, [*known, quarantine])

    def release(self, instance_id: str) -> None:
        """End the quarantine of a task, if there is one. Raises :class:`StoreError` for an unknown task."""
        name = self._owner(instance_id)
        known = self._quarantines(name, set(self._repos[name].tasks))
        self._write_quarantines(name, [q for q in known if q.instance_id != instance_id])

    def _owner(self, instance_id: str) -> str:
        for name, entry in self._repos.items():
            if instance_id in entry.tasks:
                return name
        raise StoreError(f"No task {instance_id!r} in this task set.", reason="unknown_id")

    def _quarantines(self, name: str, tasks: set[str]) -> list[Quarantine]:
        """The quarantines of the repository ``name``, limited to ``tasks``."""
        file = self._repos[name].files.get("quarantines") if name in self._repos else None
        if file is None:
            return []
        staged = self._staging / "quarantines" / file
        folder = self._staging if staged.exists() else self._previous.root if self._previous else self._staging
        found = [quarantine_from(row) for row in read_table(folder / "quarantines" / file, "quarantines")]
        return [quarantine for quarantine in found if quarantine.instance_id in tasks]

    def _write_quarantines(self, name: str, quarantines: list[Quarantine]) -> None:
        entry = self._repos[name]
        rows = sorted((quarantine_row(name, q) for q in quarantines), key=canonical_json)
        others = {table: file for table, file in entry.files.items() if table != "quarantines"}
        files = others | ({"quarantines": self._write("quarantines", name, rows)} if rows else {})
        self._repos[name] = replace(entry, files=files)

    def drop_repo(self, name: str) -> None:
        """Remove a repository, if it is in the set."""
        self._repos.pop(name, None)

    def names(self) -> tuple[str, ...]:
        """Names of the repositories in the next snapshot."""
        return tuple(sorted(self._repos))

    def num_tasks(self, name: str) -> int:
        """Number of tasks of one repository in the next snapshot."""
        return len(self.task_ids(name))

    def task_ids(self, name: str) -> Set[str]:
        """Ids of the tasks of one repository in the next snapshot."""
        return self._repos[name].tasks.keys() if name in self._repos else frozenset()

    def publish(self) -> SnapshotReport:
        """Publish all records as the current snapshot in one atomic step. Writes nothing if nothing changed."""
        report = self._report(_task_hashes(self._previous.manifest.repos) if self._previous else {})
        if self._previous and self._repos == self._previous.manifest.repos:
            return report
        with store_errors("publish the task set"):
            number = self._next_number()
            folder = self._build_folder(number, report)
            target = self._root / "snapshots" / str(number)
            folder.rename(target)
            sync(target.parent)
            replace_link(self._root / "current", f"snapshots/{number}")
        self._previous = Snapshot.current(self._root)
        self._remove_old(number)
        return report

    def _write(self, table: str, name: str, rows: list[Row]) -> str:
        digest = content_id("table", table, SCHEMA_VERSION, *(canonical_json(row) for row in rows))
        file_name = f"{slug(name)}-{digest}.parquet"
        target = self._staging / table / file_name
        if not target.exists() and not self._published(table, file_name):
            with store_errors("write the task set"):
                write_table(target, table, rows)
                sync(target)
        return file_name

    def _published(self, table: str, file_name: str) -> bool:
        return self._previous is not None and f"{table}/{file_name}" in self._previous.manifest.files

    def _refuse_duplicates(self, name: str, rows: RepoRows) -> None:
        ids = [task.instance_id for task in rows.tasks]
        if len(set(ids)) != len(ids):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            raise StoreError(f"{name}: the same task twice: {', '.join(twice)}", reason="duplicate_task")
        for other, entry in self._repos.items():
            if other != name and (common := entry.tasks.keys() & set(ids)):
                raise StoreError(
                    f"{name}: task {min(common)} is already in this set, from {other}. Drop one of the two sources.",
                    reason="duplicate_task",
                )

    def _build_folder(self, number: int, report: SnapshotReport) -> Path:
        """A synced temporary folder with the files of the snapshot; removed again on failure."""
        folder = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._root / "snapshots"))
        try:
            self._write_files(folder, number, report)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def _write_files(self, folder: Path, number: int, report: SnapshotReport) -> None:
        folder.chmod(0o755)
        files: dict[str, FileEntry] = {}
        for table in TABLES:
            (folder / table).mkdir()
            write_table(folder / table / EMPTY_FILE, table, [], comments=True)
            for name in sorted(entry.files[table] for entry in self._repos.values() if table in entry.files):
                files[f"{table}/{name}"] = self._add_file(folder, table, name)
            sync(folder / table / EMPTY_FILE)
            sync(folder / table)
        manifest = Manifest(
            schema_version=SCHEMA_VERSION,
            number=number,
            parent=self._previous.manifest.number if self._previous else None,
            created_at=datetime.now(UTC).isoformat("T", "seconds"),
            report=report,
            repos=self._repos,
            files=files,
        )
        write_file(folder / "views.sql", [views_sql().encode()])
        write_file(folder / "manifest.json", [manifest_bytes(manifest)])
        sync(folder)

    def _add_file(self, folder: Path, table: str, name: str) -> FileEntry:
        from pyarrow import parquet

        target = folder / table / name
        if self._previous and (entry := self._previous.manifest.files.get(f"{table}/{name}")):
            link_or_copy(self._previous.root / table / name, target)
            return entry
        link_or_copy(self._staging / table / name, target)
        rows = parquet.read_metadata(target).num_rows
        return FileEntry(sha256=file_sha256(target), rows=rows, bytes=target.stat().st_size)

    def _next_number(self) -> int:
        taken = [int(f.name) for f in (self._root / "snapshots").iterdir() if f.name.isdigit()]
        return max(taken, default=0) + 1

    def changes(self) -> SnapshotReport:
        """The changes of all records since this writer was opened."""
        return self._report(self._initial_tasks)

    def _report(self, before: dict[str, str]) -> SnapshotReport:
        after = _task_hashes(self._repos)
        both = before.keys() & after.keys()
        changed = {i for i in both if before[i] != after[i]}
        return SnapshotReport(
            came=tuple(sorted(after.keys() - before.keys())),
            changed=tuple(sorted(changed)),
            went=tuple(sorted(before.keys() - after.keys())),
            unchanged=len(both) - len(changed),
        )

    def _remove_old(self, current: int) -> None:
        numbers = sorted(int(f.name) for f in (self._root / "snapshots").iterdir() if f.name.isdigit())
        for number in [n for n in numbers if n <= current][:-KEEP_SNAPSHOTS]:
            shutil.rmtree(self._root / "snapshots" / str(number), ignore_errors=True)


def _task_hashes(repos: dict[str, RepoFiles]) -> dict[str, str]:
    return {instance_id: digest for entry in repos.values() for instance_id, digest in entry.tasks.items()}


def slug(name: str) -> str:
    """A readable and unique file name for a repository."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:60]
    if plain == name and not plain.startswith("_"):
        return plain
    return f"{plain.lstrip('_')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
