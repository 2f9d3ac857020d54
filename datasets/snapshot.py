"""One published snapshot of a task set: an immutable folder of Parquet files with a manifest."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from excise.datasets.rows import Row, read_rows
from excise.datasets.schema import TABLES, VERSION_KEY, arrow_schema
from excise.errors import StoreError
from excise.system.files import store_errors
from excise.types import SCHEMA_VERSION, SourceSpec, from_json, to_json

EMPTY_FILE = "_schema.parquet"
"""Name of a Parquet file without rows in each table's folder; it defines the columns if there are no other files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReport:
    """The changes of a snapshot by instance id."""

    came: tuple[str, ...] = ()
    """Ids of added tasks."""
    changed: tuple[str, ...] = ()
    """Ids of tasks whose row (certificate included) changed."""
    went: tuple[str, ...] = ()
    """Ids of removed tasks."""
    unchanged: int = 0
    """Number of unchanged tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoFiles:
    """Manifest entry of one repository: its files and tasks."""

    files: dict[str, str]
    """Table name to file name; tables without rows have no file."""
    tasks: dict[str, str]
    """Instance id to the hash of the task's row."""
    spec: SourceSpec | None = None
    """The source as the user named it, with its options; ``None`` in older sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """Manifest entry of one file."""

    sha256: str
    """sha256 of the file."""
    rows: int
    """Number of rows."""
    bytes: int
    """Size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """``manifest.json`` of a snapshot."""

    schema_version: int
    """Version of the schema."""
    number: int
    """Number of the snapshot, greater than its parent's."""
    parent: int | None
    """Number of the previous snapshot; ``None`` for the first."""
    created_at: str
    """Time of publication, UTC."""
    report: SnapshotReport
    """The changes since the parent."""
    repos: dict[str, RepoFiles] = field(default_factory=dict)
    """Name given to :meth:`excise.datasets.store.Writer.put_repo` to its entry."""
    files: dict[str, FileEntry] = field(default_factory=dict)
    """Path inside the snapshot to the file's entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot opened for reading."""

    root: Path
    """Folder of the snapshot."""
    manifest: Manifest
    """Manifest of the snapshot."""

    @classmethod
    def current(cls, store: Path) -> Snapshot | None:
        """The published snapshot of the folder ``store``; ``None`` if nothing was published yet."""
        with store_errors("read the task set"):
            link = store / "current"
            return cls.open(link.resolve()) if link.is_symlink() or link.exists() else None

    @classmethod
    def open(cls, root: Path) -> Snapshot:
        """The snapshot in the folder ``root``. Raises :class:`StoreError` if it is newer than this program."""
        with store_errors("read the task set"):
            path = root / "manifest.json"
            if not path.exists():
                raise StoreError(f"{root} is no snapshot of a task set: it has no manifest.json.", reason="damaged")
            data = path.read_bytes()
        try:
            check_version(json.loads(data)["schema_version"], root)
            return cls(root=root, manifest=from_json(Manifest, data))
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} is damaged: {error}", reason="damaged") from error

    def rows(self, table: str, repo: str | None = None, columns: list[str] | None = None) -> list[Row]:
        """Rows of a table, for all repositories or for the one named ``repo`` in the manifest."""
        entries = self.manifest.repos
        chosen = entries.values() if repo is None else [entries[repo]] if repo in entries else []
        names = sorted(entry.files[table] for entry in chosen if table in entry.files)
        return [row for name in names for row in read_table(self.root / table / name, table, columns)]


def read_table(path: Path, table: str, columns: list[str] | None = None) -> list[Row]:
    """Rows of one file. Raises :class:`StoreError` if it is missing, damaged or of a newer schema version."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with store_errors("read the task set"):
        try:
            with pq.ParquetFile(path) as file:
                version = (file.schema_arrow.metadata or {}).get(VERSION_KEY.encode(), b"0")
                check_version(int(version), path)
                return read_rows(TABLES[table], file.read(columns=columns))
        except FileNotFoundError:
            message = f"{path} is gone: newer snapshots replaced this one. Open the task set again."
            raise StoreError(message, reason="snapshot_gone") from None
        except (pa.ArrowInvalid, pa.ArrowException) as error:
            raise StoreError(f"{path} is damaged: {error}", reason="damaged") from error


def check_version(version: int, path: Path) -> None:
    """Raise :class:`StoreError` if a schema version is newer than :data:`SCHEMA_VERSION`."""
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema version {version}, this excise reads up to {SCHEMA_VERSION}. Upgrade excise.",
            reason="newer_schema",
        )


def write_table(path: Path, table: str, rows: list[Row], *, comments: bool = False) -> None:
    """Write a Parquet file (zstd level 3); equal rows give equal bytes. The caller must sync it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema(TABLES[table], comments=comments)
    maps = [c.name for c in TABLES[table].columns if c.kind.startswith("map")]
    plain = [row | {name: list(row[name].items()) for name in maps if row[name] is not None} for row in rows]
    arrow = pa.Table.from_pylist(plain, schema=schema)
    pq.write_table(arrow, path, compression="zstd", compression_level=3, row_group_size=128 * 1024)


def manifest_bytes(manifest: Manifest) -> bytes:
    """The bytes of ``manifest.json``, with sorted keys and one key per line."""
    return json.dumps(json.loads(to_json(manifest)), indent=1, sort_keys=True).encode() + b"\n"
