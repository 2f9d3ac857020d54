"""One published snapshot of a task set: an immutable folder of Parquet files with a manifest.

A reader holds a shared lock on the snapshot's manifest, so that nobody removes the snapshot meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from excise.datasets.rows import Row, read_rows
from excise.datasets.schema import TABLES, VERSION_KEY, arrow_schema
from excise.datasets.storage.manifest import Manifest, check_version, damaged_error, gone_error, read_manifest
from excise.datasets.storage.set_index import RowRange, SetIndex
from excise.errors import StoreError
from excise.system.files import file_sha256, store_errors
from excise.system.locks import Lease, lease

STAGING = ".staging-"
"""Beginning of the names of folders in ``snapshots`` that are not published; the next writer removes them."""
EMPTY_FILE = "_schema.parquet"
"""Name of a Parquet file without rows in each table's folder; it defines the columns if there are no other files."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A snapshot opened for reading. It is not removed while this object exists."""

    root: Path
    """Folder of the snapshot."""
    manifest: Manifest
    """Manifest of the snapshot."""
    lease: Lease | None = field(default=None, compare=False, repr=False)
    """Lock that keeps the snapshot; ``None`` if it cannot be locked."""

    @classmethod
    def current(cls, store: Path) -> Snapshot | None:
        """The published snapshot of the folder ``store``; ``None`` if nothing was published yet."""
        link = store / "current"
        for _ in range(MAX_TRIES):
            with store_errors("read the task set"):
                if not link.is_symlink() and not link.exists():
                    return None
                target = link.resolve()
            try:
                return cls.open(target)
            except StoreError as error:
                if error.reason != "snapshot_gone":
                    raise
                if link.resolve() == target:
                    time.sleep(RETRY_S)
        raise damaged_error(link, f"names a snapshot that is missing, {link.resolve()}")

    @classmethod
    def at(cls, store: Path, as_of: str) -> Snapshot | None:
        """The snapshot with this number, or the last one published at or before this date or time (UTC).

        An empty ``as_of`` means the current one, and the result is ``None`` if nothing was published yet. Raises
        :class:`StoreError` that lists the kept snapshots if there is no such snapshot.
        """
        if not as_of:
            return cls.current(store)
        known = published(store)
        until = "" if as_of.isdigit() else _utc(as_of)
        for manifest in reversed(known):
            if str(manifest.number) == as_of or (until and _utc(manifest.created_at) <= until):
                return cls.open(store / "snapshots" / str(manifest.number))
        kept = ", ".join(f"{m.number} ({m.created_at})" for m in known[-20:])
        raise StoreError(
            f"{store} has no snapshot {as_of}. " + (f"Kept are: {kept}." if known else "Nothing was published yet."),
            reason="unknown_id",
        )

    @classmethod
    def open(cls, root: Path) -> Snapshot:
        """The snapshot in the folder ``root``. Raises :class:`StoreError` if it is newer than this program."""
        with store_errors("read the task set"):
            path = root / "manifest.json"
            if not path.exists():
                if not root.exists():
                    raise gone_error(root)
                raise damaged_error(root, "has no manifest.json")
            try:
                held = lease(path)
            except FileNotFoundError:
                raise gone_error(path) from None
        return cls(root=root, manifest=read_manifest(root), lease=held)

    def check_files(self, *, check_hashes: bool) -> None:
        """Check that every file of the manifest exists with its size, and with ``check_hashes`` its content.

        Raises :class:`StoreError` that names the file.
        """
        for name, entry in self.manifest.files.items():
            path = self.root / name
            with store_errors("read the task set"):
                if not path.exists():
                    raise damaged_error(path, "is missing")
                if path.stat().st_size != entry.bytes or (check_hashes and file_sha256(path) != entry.sha256):
                    raise damaged_error(path)

    @cached_property
    def index(self) -> SetIndex:
        """The projects of the snapshot and where their rows are."""
        return SetIndex(self.root, self.manifest)

    def rows(self, table: str, repo: str | None = None, columns: list[str] | None = None) -> list[Row]:
        """Rows of a table, for all repositories or for the one with the entry ``repo``."""
        if repo is None:
            paths = [self.root / table / name for name in self.files_of(table)]
            return [row for path in paths for row in read_table(path, table, columns)]
        entry = self.index.entries.get(repo)
        if entry is None or table not in entry.tables:
            return []
        place = entry.tables[table]
        return read_table(self.root / table / place.file, table, columns, place)

    def select(self, table: str, column: str, value: str) -> list[Row]:
        """Rows of a table with this value in a column of texts; row groups that cannot have it are not read."""
        paths = [self.root / table / name for name in self.files_of(table)]
        return [row for path in paths for row in select_rows(path, table, column, value)]

    def files_of(self, table: str) -> list[str]:
        """Names of the files of a table, sorted."""
        prefix = f"{table}/"
        return sorted(path.removeprefix(prefix) for path in self.manifest.files if path.startswith(prefix))

    def batches(self, table: str, columns: list[str], size: int = 4096) -> Iterator[list[Row]]:
        """Rows of a table of all repositories, a bounded number at a time."""
        for name in self.files_of(table):
            for batch in arrow_batches(self.root / table / name, columns, size):
                yield read_rows(TABLES[table], batch)


RETRY_S = 0.01
"""Seconds to wait if the current snapshot is not there."""
MAX_TRIES = 100
"""How often a reader looks for the current snapshot again when it is removed before it could be locked."""


def numbers(store: Path) -> list[int]:
    """Numbers of the published snapshots of the folder ``store``, in order."""
    with store_errors("read the task set"):
        link = store / "current"
        if not link.is_symlink() and not link.exists():
            return []
        current = int(link.resolve().name) if link.is_symlink() else read_manifest(link).number
        folder = store / "snapshots"
        found = sorted(int(f.name) for f in folder.iterdir() if f.name.isdigit()) if folder.is_dir() else []
    return [number for number in found if number <= current]


def published(store: Path) -> list[Manifest]:
    """Manifests of the published snapshots, in order; of snapshots that are removed meanwhile, none."""
    found = []
    for number in numbers(store):
        try:
            found.append(read_manifest(store / "snapshots" / str(number)))
        except StoreError as error:
            if error.reason != "snapshot_gone":
                raise
    return found


def _utc(text: str) -> str:
    """A date or time as comparable text; a date means its end. Raises :class:`StoreError`."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise StoreError(f"{text!r} is neither a snapshot's number nor a date or time.", reason="unknown_id") from None
    if len(text) <= len("2026-01-31"):
        moment = moment.replace(hour=23, minute=59, second=59)
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC).isoformat("T", "seconds")


def select_rows(path: Path, table: str, column: str, value: str) -> list[Row]:
    """Rows of one file with this value in a column. Raises :class:`StoreError` as :func:`read_table`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with store_errors("read the task set"):
        try:
            found = pq.read_table(path, filters=[(column, "=", value)], partitioning=None)
            check_version(int((found.schema.metadata or {}).get(VERSION_KEY.encode(), b"0")), path)
            return read_rows(TABLES[table], found)
        except FileNotFoundError:
            raise gone_error(path) from None
        except (pa.ArrowInvalid, pa.ArrowException) as error:
            raise damaged_error(path, f"is damaged: {error}") from error


def read_table(path: Path, table: str, columns: list[str] | None = None, place: RowRange | None = None) -> list[Row]:
    """Rows of one file, or of a range of it.

    Raises :class:`StoreError` if it is missing, damaged or of a newer schema version.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with store_errors("read the task set"):
        try:
            with pq.ParquetFile(path) as file:
                version = (file.schema_arrow.metadata or {}).get(VERSION_KEY.encode(), b"0")
                check_version(int(version), path)
                found = file.read(columns=columns) if place is None else read_range(file, place, columns)
                return read_rows(TABLES[table], found)
        except FileNotFoundError:
            raise gone_error(path) from None
        except (pa.ArrowInvalid, pa.ArrowException) as error:
            raise damaged_error(path, f"is damaged: {error}") from error


def read_range(file: Any, place: RowRange, columns: list[str] | None = None) -> Any:
    """A range of rows of an open ``ParquetFile`` as a ``pyarrow.Table``; reads only the row groups that it touches."""
    groups: list[int] = []
    first = begin = 0
    for number in range(file.num_row_groups):
        end = begin + file.metadata.row_group(number).num_rows
        if begin < place.start + place.count and place.start < end:
            first = first if groups else begin
            groups.append(number)
        begin = end
    return file.read_row_groups(groups, columns=columns).slice(place.start - first, place.count)


def arrow_batches(path: Path, columns: list[str] | None, size: int) -> Iterator[Any]:
    """A file as ``pyarrow.RecordBatch`` of at most ``size`` rows. Raises :class:`StoreError` as :func:`read_table`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with store_errors("read the task set"):
        try:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(batch_size=size, columns=columns)
        except FileNotFoundError:
            raise gone_error(path) from None
        except (pa.ArrowInvalid, pa.ArrowException) as error:
            raise damaged_error(path, f"is damaged: {error}") from error


def write_table(path: Path, table: str, rows: list[Row], *, comments: bool = False) -> None:
    """Write a Parquet file (zstd level 3); equal rows give equal bytes. The caller must sync it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema(TABLES[table], comments=comments)
    maps = [c.name for c in TABLES[table].columns if c.kind.startswith("map")]
    plain = [row | {name: list(row[name].items()) for name in maps if row[name] is not None} for row in rows]
    arrow = pa.Table.from_pylist(plain, schema=schema)
    pq.write_table(arrow, path, compression="zstd", compression_level=3, row_group_size=128 * 1024)
