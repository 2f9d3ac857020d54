"""The one writer of a task set: collects records and publishes them as a snapshot in one atomic step."""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from excise.datasets.rows import (
    RepoRows,
    Row,
    canonical_json,
    quarantine_from,
    quarantine_row,
    statement_from,
    table_rows,
    with_all_columns,
)
from excise.datasets.schema import TABLES
from excise.datasets.storage import compaction
from excise.datasets.storage.manifest import FileEntry, Manifest, SnapshotReport, listed, manifest_bytes
from excise.datasets.storage.retention import remove_expired
from excise.datasets.storage.set_index import INDEX, Entry, RowRange, SetIndex, write_index
from excise.datasets.storage.snapshot import STAGING, Snapshot, read_table, write_table
from excise.datasets.storage.views import write_views
from excise.errors import StoreError
from excise.system.files import file_sha256, link_or_copy, replace_link, store_errors, sync, write_file
from excise.types import (
    DETERMINISTIC,
    SCHEMA_VERSION,
    Quarantine,
    SourceSpec,
    StatementStyle,
    TaskStatement,
    content_id,
)

PUT_BEFORE_JOINING = 256
"""Projects after which small files of unpublished rows are joined, so that a long run has few files."""
INDEX_TASKS = 50_000
"""Tasks in an index file, unless one project has more."""
INDEX_PROJECTS = 2_000
"""Projects in an index file at most."""
Tasks = Mapping[str, str]
"""Instance id to the hash of the task's row."""


class Writer:
    """Collects the records of a run; :meth:`publish` makes them the current snapshot. Made by ``Store.writer``.

    Rows are on the disk from the moment they are put. In memory are one small record per project of the set, ten bytes
    per task, and ids and hashes of the tasks that were put since the last publication.
    """

    def __init__(self, root: Path, staging: Path, on_publish: Callable[[int], None] | None = None) -> None:
        """``on_publish`` is called with the number of a snapshot before it becomes the current one."""
        self._root = root
        self._on_publish = on_publish
        self._staging = staging
        self._run = f"{datetime.now(UTC).isoformat('T', 'seconds')}-{secrets.token_hex(4)}"
        self._previous: Snapshot | None = None
        self._index: SetIndex | None = None
        self._entries: dict[str, Entry] = {}
        self._put: dict[str, Tasks] = {}
        """Tasks of the projects that were put or dropped since the last publication."""
        self._owners: dict[str, str] = {}
        """Project of each of these tasks."""
        self._published: dict[str, Tasks] = {}
        """Tasks that these projects have in the last snapshot."""
        self._initial: dict[str, Tasks] = {}
        """Tasks that all projects touched by this writer had before."""
        self._num_put = 0
        self._is_rewritten = False
        self._open_current()
        self._initial_count = self._num_tasks()
        for table in (*TABLES, INDEX):
            (staging / table).mkdir()

    def _open_current(self) -> None:
        self._previous = Snapshot.current(self._root)
        self._index = self._previous.index if self._previous else None
        self._entries = dict(self._index.entries) if self._index else {}
        self._put, self._owners, self._published = {}, {}, {}

    def put_repo(self, name: str, rows: RepoRows) -> None:
        """Replace all records of the repository ``name`` (any string that identifies it in this set).

        Quarantines of its tasks are kept until :meth:`release`, and statements that a model wrote about tasks whose
        specification is the same. Raises :class:`StoreError` if another repository of the
        set has one of the tasks.
        """
        self._refuse_duplicates(name, [task.instance_id for task in rows.tasks])
        kept = self._quarantines(name, {task.instance_id for task in rows.tasks})
        statements = self._kept_statements(name, rows.statements)
        rows = replace(
            rows,
            quarantines=tuple(dict.fromkeys([*kept, *rows.quarantines])),
            statements=(*rows.statements, *statements),
        )
        self._put_tables(name, table_rows(rows.repo.repo if rows.repo else name, rows), rows.spec)

    def put_rows(self, name: str, tables: Mapping[str, list[Row]], spec: SourceSpec | None) -> None:
        """Replace all records of ``name`` by rows of the tables, quarantines included; see :meth:`put_repo`."""
        self._refuse_duplicates(name, [str(row["instance_id"]) for row in tables.get("tasks", ())])
        whole = {table: [with_all_columns(TABLES[table], row) for row in rows] for table, rows in tables.items()}
        self._put_tables(name, whole, spec)

    def put_entry(self, name: str, snapshot: Snapshot, entry: str) -> None:
        """Replace all records of ``name`` by those that the project ``entry`` has in a snapshot of another set.

        Files are linked where that is possible, not read. Raises :class:`StoreError` like :meth:`put_repo`.
        """
        tasks, found = snapshot.index.tasks(entry), snapshot.index.entries[entry]
        self._refuse_duplicates(name, list(tasks))
        for table, place in found.tables.items():
            target = self._staging / table / place.file
            if not target.exists() and not self._is_published(table, place.file):
                with store_errors("write the task set"):
                    link_or_copy(snapshot.root / table / place.file, target)
        self._set(name, found, tasks)

    def quarantine(self, quarantines: Iterable[Quarantine]) -> None:
        """Quarantine tasks of this set. Raises :class:`StoreError` for an unknown task."""
        for quarantine in quarantines:
            name = self._owner(quarantine.instance_id)
            known = self._quarantines(name, self.task_ids(name))
            if all((q.instance_id, q.leak_id) != (quarantine.instance_id, quarantine.leak_id) for q in known):
                self._write_quarantines(name, [*known, quarantine])

    def release(self, instance_id: str) -> None:
        """End the quarantine of a task, if there is one. Raises :class:`StoreError` for an unknown task."""
        name = self._owner(instance_id)
        known = self._quarantines(name, self.task_ids(name))
        self._write_quarantines(name, [q for q in known if q.instance_id != instance_id])

    def drop_repo(self, name: str) -> None:
        """Remove a repository, if it is in the set."""
        if name in self._entries:
            self._set(name, None, {})

    def names(self) -> tuple[str, ...]:
        """Names of the repositories in the next snapshot."""
        return tuple(sorted(self._entries))

    def num_tasks(self, name: str) -> int:
        """Number of tasks of one repository in the next snapshot."""
        return self._entries[name].num_tasks if name in self._entries else 0

    def task_ids(self, name: str) -> Set[str]:
        """Ids of the tasks of one repository in the next snapshot."""
        return self._tasks(name).keys()

    def entry(self, name: str) -> Entry | None:
        """A repository of the next snapshot; ``None`` for an unknown one."""
        return self._entries.get(name)

    def rows(self, name: str, table: str) -> list[Row]:
        """Rows of one repository in the next snapshot; none of an unknown one."""
        place = self._entries[name].tables.get(table) if name in self._entries else None
        return read_table(self._path(table, place.file), table, place=place) if place else []

    def task_row(self, instance_id: str) -> Row | None:
        """The row of a task in the next snapshot; ``None`` for an unknown task."""
        owner = self._find_owner(instance_id)
        rows = self.rows(owner, "tasks") if owner else []
        return next((row for row in rows if row["instance_id"] == instance_id), None)

    def compact(self) -> None:
        """Join all small files of the next snapshot, however few they are."""
        self._rewrite_files(max_small=1)

    def publish(self) -> SnapshotReport:
        """Publish all records as the current snapshot in one atomic step. Writes nothing if nothing changed."""
        report = self.report()
        if self._index and self._entries == self._index.entries and not self._is_rewritten:
            return report
        with store_errors("publish the task set"):
            self._rewrite_files(compaction.MAX_SMALL)
            number = self._next_number()
            folder = self._build_folder(number, report)
            target = self._root / "snapshots" / str(number)
            folder.rename(target)
            sync(target.parent)
            if self._on_publish:
                self._on_publish(number)
            replace_link(self._root / "current", f"snapshots/{number}")
        self._open_current()
        self._is_rewritten = False
        remove_expired(self._root)
        return report

    def report(self) -> SnapshotReport:
        """The changes since the last publication."""
        return self._changes_since(self._published)

    def changes(self) -> SnapshotReport:
        """The changes of all records since this writer was opened."""
        return self._changes_since(self._initial)

    def _changes_since(self, before_by_name: Mapping[str, Tasks]) -> SnapshotReport:
        before = {i: digest for tasks in before_by_name.values() for i, digest in tasks.items()}
        after = {i: digest for name in before_by_name for i, digest in self._tasks(name).items()}
        both = before.keys() & after.keys()
        changed = {i for i in both if before[i] != after[i]}
        return SnapshotReport(
            came=tuple(sorted(after.keys() - before.keys())),
            changed=tuple(sorted(changed)),
            went=tuple(sorted(before.keys() - after.keys())),
            unchanged=self._num_tasks() - len(after) + len(both) - len(changed),
        )

    def _num_tasks(self) -> int:
        return sum(entry.num_tasks for entry in self._entries.values())

    def _tasks(self, name: str) -> Tasks:
        if name in self._put:
            return self._put[name]
        return self._index.tasks(name) if self._index and name in self._entries else {}

    def _set(self, name: str, entry: Entry | None, tasks: Tasks) -> None:
        """Make an entry of the next snapshot, or remove it."""
        before = self._tasks(name)
        self._published.setdefault(name, before)
        self._initial.setdefault(name, before)
        for instance_id in self._put.get(name, ()):
            self._owners.pop(instance_id, None)
        if entry is None:
            del self._entries[name]
        else:
            self._entries[name] = entry
        self._put[name] = tasks
        self._owners.update(dict.fromkeys(tasks, name))

    def _put_tables(self, name: str, tables: Mapping[str, list[Row]], spec: SourceSpec | None) -> None:
        known = self._entries[name].tables if name in self._entries else {}
        places = {table: self._write(table, name, rows, known.get(table)) for table, rows in tables.items() if rows}
        tasks = {str(row["instance_id"]): content_id("row", canonical_json(row)) for row in tables.get("tasks", ())}
        self._set(name, Entry(spec=spec, tables=places, num_tasks=len(tasks)), tasks)
        self._num_put += 1
        if self._num_put % PUT_BEFORE_JOINING == 0:
            self._rewrite_files(compaction.MAX_SMALL, is_publishing=False)

    def _find_owner(self, instance_id: str) -> str | None:
        name = self._owners.get(instance_id)
        return name or next((n for n in self._possible_owners(instance_id) if instance_id in self._tasks(n)), None)

    def _owner(self, instance_id: str) -> str:
        name = self._find_owner(instance_id)
        if name is None:
            raise StoreError(f"No task {instance_id!r} in this task set.", reason="unknown_id")
        return name

    def _possible_owners(self, instance_id: str) -> Iterable[str]:
        """Projects of the last snapshot that may still have the task."""
        found = self._index.possible_owners(instance_id) if self._index else ()
        return (name for name in found if name in self._entries)

    def _refuse_duplicates(self, name: str, ids: list[str]) -> None:
        if len(set(ids)) != len(ids):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            raise StoreError(f"{name}: the same task twice: {', '.join(twice)}", reason="duplicate_task")
        for instance_id in sorted(ids):
            owners = [self._owners[instance_id]] if instance_id in self._owners else []
            owners += [n for n in self._possible_owners(instance_id) if n != name and instance_id in self._tasks(n)]
            if other := next((owner for owner in owners if owner != name), None):
                raise StoreError(
                    f"{name}: task {instance_id} is already in this set, from {other}. Drop one of the two sources.",
                    reason="duplicate_task",
                )

    def _quarantines(self, name: str, tasks: Set[str]) -> list[Quarantine]:
        """The quarantines of the repository ``name``, limited to ``tasks``."""
        found = map(quarantine_from, self.rows(name, "quarantines"))
        return [quarantine for quarantine in found if quarantine.instance_id in tasks]

    def _kept_statements(self, name: str, new: Sequence[TaskStatement]) -> list[TaskStatement]:
        """Statements by models that the repository has, that ``new`` lacks, and whose specification is in ``new``."""
        before = [statement_from(row) for row in self.rows(name, "statements")]
        specified = {(s.instance_id, s.text) for s in new if _is_specification(s)}
        tasks = {s.instance_id for s in before if _is_specification(s) and (s.instance_id, s.text) in specified}
        known = {(s.instance_id, s.style, s.author) for s in new}
        kept = (s for s in before if s.author != DETERMINISTIC and s.instance_id in tasks)
        return [s for s in kept if (s.instance_id, s.style, s.author) not in known]

    def _write_quarantines(self, name: str, quarantines: list[Quarantine]) -> None:
        entry = self._entries[name]
        rows = sorted((quarantine_row(name, q) for q in quarantines), key=canonical_json)
        tables = {table: place for table, place in entry.tables.items() if table != "quarantines"}
        if rows:
            tables["quarantines"] = self._write("quarantines", name, rows, entry.tables.get("quarantines"))
        self._set(name, replace(entry, tables=tables), self._tasks(name))

    def _write(self, table: str, name: str, rows: list[Row], known: RowRange | None) -> RowRange:
        """Where the rows are; they are written unless the project has the same ones already."""
        digest = content_id("table", table, SCHEMA_VERSION, *(canonical_json(row) for row in rows))
        if known is not None and known.digest == digest:
            return known
        file_name = f"{slug(name)}-{digest}.parquet"
        target = self._staging / table / file_name
        if not target.exists() and not self._is_published(table, file_name):
            with store_errors("write the task set"):
                part = target.with_name(f".{file_name}")  # a file in its place is whole, also after Ctrl-C
                write_table(part, table, rows)
                sync(part)
                part.replace(target)
        return RowRange(file=file_name, start=0, count=len(rows), digest=digest)

    def _is_published(self, table: str, file_name: str) -> bool:
        return self._previous is not None and f"{table}/{file_name}" in self._previous.manifest.files

    def _path(self, table: str, file_name: str) -> Path:
        """Where a file of the next snapshot is now."""
        staged = self._staging / table / file_name
        return staged if self._previous is None or staged.exists() else self._previous.root / table / file_name

    def _rewrite_files(self, max_small: int, *, is_publishing: bool = True) -> None:
        """Join small files, and (for a publication) write files that have dead rows again; see ``compaction``."""
        for table in TABLES:
            files = self._table_files(table, staged_only=not is_publishing)
            for group in compaction.plan(files, max_small):
                if len(group) == 1 and not is_publishing:
                    continue
                with store_errors("write the task set"):
                    moved = compaction.join(table, group, self._staging / table)
                    sync(self._staging / table / next(iter(moved.values())).file)
                for name, place in moved.items():
                    entry = self._entries[name]
                    self._entries[name] = replace(entry, tables=entry.tables | {table: place})
                    self._is_rewritten = True
                kept = next(iter(moved.values())).file
                for file in group:  # of published files, only the links in the staging folder
                    if file.path.parent == self._staging / table and file.path.name != kept:
                        file.path.unlink()

    def _table_files(self, table: str, *, staged_only: bool = False) -> list[compaction.TableFile]:
        live: dict[str, list[tuple[str, RowRange]]] = {}
        for name, entry in self._entries.items():
            if place := entry.tables.get(table):
                live.setdefault(place.file, []).append((name, place))
        files = []
        for file, owners in sorted(live.items()):
            path = self._path(table, file)
            if not staged_only or path.parent.parent == self._staging:
                facts = self._facts(table, file)
                owners.sort(key=lambda owner: owner[1].start)
                files.append(compaction.TableFile(path=path, rows=facts.rows, bytes=facts.bytes, live=tuple(owners)))
        return files

    def _facts(self, table: str, file: str, *, sha: bool = False) -> FileEntry:
        """The manifest entry of a file; of new files without the sha256, unless ``sha`` asks for it."""
        from pyarrow import parquet

        if self._previous and (entry := self._previous.manifest.files.get(f"{table}/{file}")):
            return entry
        path = self._staging / table / file
        rows = parquet.read_metadata(path).num_rows
        return FileEntry(sha256=file_sha256(path) if sha else "", rows=rows, bytes=path.stat().st_size)

    def _build_folder(self, number: int, report: SnapshotReport) -> Path:
        """A synced temporary folder with the files of the snapshot; removed again on failure."""
        folder = Path(tempfile.mkdtemp(prefix=STAGING, dir=self._root / "snapshots"))
        try:
            self._write_files(folder, number, report)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def _write_files(self, folder: Path, number: int, report: SnapshotReport) -> None:
        folder.chmod(0o755)
        write_views(folder)
        files: dict[str, FileEntry] = {}
        for table in TABLES:
            live = {entry.tables[table].file for entry in self._entries.values() if table in entry.tables}
            for name in sorted(live):
                files[f"{table}/{name}"] = self._add_file(folder, table, name)
            sync(folder / table)
        (folder / INDEX).mkdir()
        for name in self._index_files():
            files[f"{INDEX}/{name}"] = self._add_file(folder, INDEX, name)
        sync(folder / INDEX)
        manifest = Manifest(
            schema_version=SCHEMA_VERSION,
            number=number,
            parent=self._previous.manifest.number if self._previous else None,
            created_at=datetime.now(UTC).isoformat("T", "seconds"),
            report=listed(report),
            run=self._run,
            num_tasks=self._num_tasks(),
            files=files,
        )
        write_file(folder / "manifest.json", [manifest_bytes(manifest)])
        sync(folder)

    def _add_file(self, folder: Path, table: str, name: str) -> FileEntry:
        link_or_copy(self._path(table, name), folder / table / name)
        return self._facts(table, name, sha=True)

    def _index_files(self) -> list[str]:
        """Names of the index files of the next snapshot; files of the last one stay if their projects are the same."""
        kept: dict[str, list[str]] = {}
        old = self._index.entries if self._index else {}
        for path, names in (self._index.files if self._index else {}).items():
            if all(self._entries.get(name) == old[name] for name in names):
                kept[path.removeprefix(f"{INDEX}/")] = names
        small = [file for file, names in kept.items() if len(names) < INDEX_PROJECTS // 2 and
                 sum(old[name].num_tasks for name in names) < INDEX_TASKS // 2]  # fmt: skip
        if len(small) >= compaction.MAX_SMALL:
            for file in small:
                del kept[file]
        covered = {name for names in kept.values() for name in names}
        written = [self._write_index(names) for names in self._index_groups(self._entries.keys() - covered)]
        return sorted({*kept, *written})

    def _write_index(self, names: list[str]) -> str:
        name = write_index(
            self._staging / INDEX, {n: self._entries[n] for n in names}, {n: self._tasks(n) for n in names}
        )
        sync(self._staging / INDEX / name)
        return name

    def _index_groups(self, names: Set[str]) -> list[list[str]]:
        groups: list[list[str]] = []
        size = 0
        for name in sorted(names):
            size += self._entries[name].num_tasks
            if not groups or size > INDEX_TASKS or len(groups[-1]) >= INDEX_PROJECTS:
                groups.append([])
                size = self._entries[name].num_tasks
            groups[-1].append(name)
        return groups

    def _next_number(self) -> int:
        taken = [int(f.name) for f in (self._root / "snapshots").iterdir() if f.name.isdigit()]
        return max(taken, default=0) + 1


def _is_specification(statement: TaskStatement) -> bool:
    """Whether it is the statement of the table ``tasks``."""
    return statement.style is StatementStyle.SPECIFICATION and statement.author == DETERMINISTIC


def slug(name: str) -> str:
    """A readable and unique file name for a repository."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:60]
    if plain == name and not plain.startswith("_"):
        return plain
    return f"{plain.lstrip('_')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
