"""The index of a snapshot: which projects it holds, where their rows are, and the hash of each task's row.

::

    snapshots/7/index/<digest>.parquet      one row per project

An index file is written once, and later snapshots link it while none of its projects changes. What is small is read
when the index is opened; ids and hashes of tasks are read when they are asked for, so that a million tasks cost about
ten bytes of memory each. Sets of schema version 6 and older have the same facts in ``manifest.json``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from excise.datasets.schema import VERSION_KEY
from excise.datasets.storage.manifest import Manifest, gone_error
from excise.errors import StoreError
from excise.system.files import store_errors
from excise.types import SCHEMA_VERSION, SourceSpec, content_id, from_json, to_json

INDEX = "index"
"""Name of the folder in a snapshot."""
_LIGHT = ["name", "spec", "tables", "num_tasks", "keys"]
_ROW_GROUP = 64
"""Projects per row group: what is read to see the tasks of one project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Where the rows of one project are in one table."""

    file: str
    """Name of the file in the table's folder."""
    start: int
    """Number of the first row; rows of other projects may be before and behind."""
    count: int
    """Number of rows."""
    digest: str
    """Content hash of the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One project of a set."""

    spec: SourceSpec | None
    """The source as the user named it, with its options; ``None`` in older sets."""
    tables: dict[str, RowRange]
    """Table name to rows; tables without rows are left out."""
    num_tasks: int
    """Number of tasks."""


def task_key(instance_id: str) -> int:
    """A 64-bit hash of an id, by which an index finds the task's project."""
    return int.from_bytes(hashlib.blake2b(instance_id.encode(), digest_size=8).digest(), "little", signed=True)


class SetIndex:
    """The index of one snapshot."""

    def __init__(self, root: Path, manifest: Manifest) -> None:
        self._root = root
        self._manifest = manifest
        self.entries: dict[str, Entry] = {}
        """Name of each project to its entry."""
        self.files: dict[str, list[str]] = {}
        """Index file to the names of its projects."""
        self._keys: list[Any] = []
        self._places: dict[str, tuple[str, int]] = {}
        if manifest.repos:
            self._read_manifest()
        else:
            for path in sorted(path for path in manifest.files if path.startswith(f"{INDEX}/")):
                self._read_file(path)

    def tasks(self, name: str) -> dict[str, str]:
        """Instance id of each task of a project to the hash of the task's row; empty for an unknown project."""
        if name in self._manifest.repos:
            return self._manifest.repos[name].tasks
        if name not in self._places:
            return {}
        path, row = self._places[name]
        group, offset = divmod(row, _ROW_GROUP)
        table = _read(self._root / path, columns=["ids", "hashes"], group=group)
        ids, hashes = (table.column(column)[offset].as_py() for column in ("ids", "hashes"))
        return dict(zip(ids, hashes, strict=True))

    def owner(self, instance_id: str) -> str | None:
        """The project of a task; ``None`` for an unknown task."""
        return next((name for name in self.possible_owners(instance_id) if instance_id in self.tasks(name)), None)

    def possible_owners(self, instance_id: str) -> Iterator[str]:
        """Projects that may have the task: those with a task of the same key."""
        import numpy as np

        keys, owners, names = self._sorted_keys
        key = task_key(instance_id)
        first, last = np.searchsorted(keys, key, "left"), np.searchsorted(keys, key, "right")
        return (names[owners[i]] for i in range(int(first), int(last)))

    def ids(self) -> Iterator[str]:
        """All instance ids, in no order."""
        for name in self._manifest.repos:
            yield from self._manifest.repos[name].tasks
        for path in self.files:
            for batch in _batches(self._root / path, ["ids"]):
                for ids in batch.column("ids").to_pylist():
                    yield from ids

    def hashes(self) -> Any:
        """A ``pyarrow.Table`` of all tasks: ``instance_id``, ``hash`` of the row."""
        import pyarrow as pa

        old = [pair for entry in self._manifest.repos.values() for pair in entry.tasks.items()]
        tables = [pa.table({"instance_id": [i for i, _ in old], "hash": [h for _, h in old]}, schema=_hashes_schema())]
        for path in self.files:
            for batch in _batches(self._root / path, ["ids", "hashes"]):
                columns = [batch.column(c).flatten().cast(pa.string()) for c in ("ids", "hashes")]
                tables.append(pa.table(columns, schema=_hashes_schema()))
        return pa.concat_tables(tables)

    @cached_property
    def _sorted_keys(self) -> tuple[Any, Any, list[str]]:
        """Keys of all tasks in order, the number of the project of each, and the names of the projects."""
        import numpy as np

        names, keys, owners = list(self.entries), [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for number, name in enumerate(names):
            if name in self._manifest.repos:
                found = np.array([task_key(i) for i in self._manifest.repos[name].tasks], np.int64)
            else:
                found = self._keys[number]
            keys.append(found)
            owners.append(np.full(len(found), number, np.int32))
        joined, owner = np.concatenate(keys), np.concatenate(owners)
        order = np.argsort(joined, kind="stable")
        return joined[order], owner[order], names

    def _read_manifest(self) -> None:
        for name, old in self._manifest.repos.items():
            tables = {}
            for table, file in old.files.items():
                rows = self._manifest.files[f"{table}/{file}"].rows
                digest = file.removesuffix(".parquet").rpartition("-")[2]
                tables[table] = RowRange(file=file, start=0, count=rows, digest=digest)
            self.entries[name] = Entry(spec=old.spec, tables=tables, num_tasks=len(old.tasks))

    def _read_file(self, path: str) -> None:
        table = _read(self._root / path, columns=_LIGHT)
        keys = table.column("keys").combine_chunks()
        offsets, values = keys.offsets.to_numpy(), keys.values.to_numpy(zero_copy_only=False)
        names = table.column("name").to_pylist()
        specs, tables = table.column("spec").to_pylist(), table.column("tables").to_pylist()
        for row, (name, spec, ranges, count) in enumerate(
            zip(names, specs, tables, table.column("num_tasks").to_pylist(), strict=True)
        ):
            self.entries[name] = Entry(
                spec=from_json(SourceSpec, spec) if spec else None,
                tables={key: RowRange(**found) for key, found in json.loads(ranges).items()},
                num_tasks=count,
            )
            self._places[name] = (path, row)
            self._keys.append(values[offsets[row] : offsets[row + 1]])
        self.files[path] = names


def write_index(folder: Path, entries: Mapping[str, Entry], tasks: Mapping[str, Mapping[str, str]]) -> str:
    """Write an index file of these projects into ``folder`` and return its name; ``tasks`` has each project's hashes.

    The caller must sync it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = sorted(entries)
    rows = [(name, entries[name], tasks[name]) for name in names]
    columns = {
        "name": pa.array(names, pa.string()),
        "spec": pa.array([to_json(e.spec).decode() if e.spec else None for _, e, _ in rows], pa.string()),
        "tables": pa.array([_ranges_json(entry) for _, entry, _ in rows], pa.string()),
        "num_tasks": pa.array([entry.num_tasks for _, entry, _ in rows], pa.int64()),
        "keys": pa.array([[task_key(i) for i in t] for _, _, t in rows], pa.list_(pa.int64())),
        "ids": pa.array([list(t) for _, _, t in rows], pa.list_(pa.string())),
        "hashes": pa.array([list(t.values()) for _, _, t in rows], pa.list_(pa.string())),
    }
    table = pa.table(columns).replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION)})
    digest = content_id(
        "index", SCHEMA_VERSION, *([n, _spec_json(e), _ranges_json(e), sorted(t.items())] for n, e, t in rows)
    )
    name = f"{digest}.parquet"
    with store_errors("write the task set"):
        pq.write_table(table, folder / name, compression="zstd", compression_level=3, row_group_size=_ROW_GROUP)
    return name


def _spec_json(entry: Entry) -> str:
    return to_json(entry.spec).decode() if entry.spec else ""


def _ranges_json(entry: Entry) -> str:
    ranges = {
        table: {"file": r.file, "start": r.start, "count": r.count, "digest": r.digest}
        for table, r in sorted(entry.tables.items())
    }
    return json.dumps(ranges, separators=(",", ":"))


def _read(path: Path, columns: list[str], group: int | None = None) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with store_errors("read the task set"):
        try:
            with pq.ParquetFile(path) as file:
                return file.read(columns=columns) if group is None else file.read_row_group(group, columns=columns)
        except FileNotFoundError:
            raise gone_error(path) from None
        except (pa.ArrowInvalid, pa.ArrowException) as error:
            raise StoreError(f"{path} is damaged: {error}", reason="damaged") from error


def _batches(path: Path, columns: list[str]) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with store_errors("read the task set"):
        try:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(batch_size=1024, columns=columns)
        except FileNotFoundError:
            raise gone_error(path) from None
        except (pa.ArrowInvalid, pa.ArrowException) as error:
            raise StoreError(f"{path} is damaged: {error}", reason="damaged") from error


def _hashes_schema() -> Any:
    import pyarrow as pa

    return pa.schema([("instance_id", pa.string()), ("hash", pa.string())])
