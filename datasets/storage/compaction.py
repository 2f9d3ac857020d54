"""Compaction: the rows of many small Parquet files in few, and files without the rows that nothing refers to.

Every project begins with a file of its own in each table. When a table has more than :data:`MAX_SMALL` small files,
they are joined; a file that has lost rows (their project has newer ones elsewhere) is written again without them. So
every file of a snapshot consists of live rows alone, and a million tasks are a few hundred files. Rows are copied
unchanged, a bounded number at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from excise.datasets.storage.set_index import RowRange
from excise.datasets.storage.snapshot import arrow_batches
from excise.types import content_id

MAX_SMALL = 64
"""Small files of a table that a snapshot may have."""
TARGET_BYTES = 64_000_000
"""Size that joined files have at most, unless a single one is larger."""
TARGET_ROWS = 200_000
"""Rows that joined files have at most, unless a single one has more."""
ROW_GROUP_BYTES = 16_000_000
"""Uncompressed size from which a row group ends. It is the unit of reading: what one task costs to read."""
ROW_GROUP_ROWS = 65_536
"""Rows from which a row group ends."""
READ_ROWS = 1024
"""Rows that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A file of one table with the projects that have rows in it."""

    path: Path
    """The file."""
    rows: int
    """Number of rows, live or not."""
    bytes: int
    """Size in bytes."""
    live: tuple[tuple[str, RowRange], ...]
    """Project and its rows, ordered by the first row."""

    @property
    def is_small(self) -> bool:
        """Whether it may be joined with others."""
        return self.bytes < TARGET_BYTES // 2 and self.rows < TARGET_ROWS // 2

    @property
    def has_dead_rows(self) -> bool:
        """Whether rows are left that no project refers to."""
        return sum(place.count for _, place in self.live) < self.rows


def plan(files: Sequence[TableFile], max_small: int = MAX_SMALL) -> list[list[TableFile]]:
    """Groups of files to be replaced by one file each."""
    small = sorted((file for file in files if file.is_small), key=lambda file: file.path.name)
    if len(small) <= max_small:
        return [[file] for file in files if file.has_dead_rows]
    groups = [[file] for file in files if file.has_dead_rows and not file.is_small]
    by_schema: dict[Any, list[TableFile]] = {}
    for file in small:  # files of different versions are not joined: rows keep the columns that they were written with
        by_schema.setdefault(_schema_key(file.path), []).append(file)
    for alike in by_schema.values():
        groups += [group for group in _bins(alike) if len(group) > 1 or group[0].has_dead_rows]
    return groups


def _bins(files: Sequence[TableFile]) -> Iterator[list[TableFile]]:
    group: list[TableFile] = []
    for file in files:
        size, rows = sum(f.bytes for f in group) + file.bytes, sum(f.rows for f in group) + file.rows
        if group and (size > TARGET_BYTES or rows > TARGET_ROWS):
            yield group
            group = []
        group.append(file)
    if group:
        yield group


def join(table: str, group: Sequence[TableFile], folder: Path) -> dict[str, RowRange]:
    """Write the live rows of some files into one file in ``folder``; return where each project's rows are now.

    The caller must sync the file.
    """
    order = [(name, place) for file in group for name, place in file.live]
    name = f"part-{content_id('part', table, [(owner, place.digest) for owner, place in order])}.parquet"
    _write(folder / name, group)
    moved, start = {}, 0
    for owner, place in order:
        moved[owner] = RowRange(file=name, start=start, count=place.count, digest=place.digest)
        start += place.count
    return moved


def _write(target: Path, group: Sequence[TableFile]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(group[0].path)
    waiting: list[Any] = []
    rows = size = 0
    with pq.ParquetWriter(target, schema, compression="zstd", compression_level=3) as writer:
        for batch in (batch for file in group for batch in _live_batches(file)):
            waiting.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(waiting, schema=schema), row_group_size=rows)
                waiting, rows, size = [], 0, 0
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, schema=schema), row_group_size=rows)


def _live_batches(file: TableFile) -> Iterator[Any]:
    """The live rows in order, in batches that end with those of the file."""
    begin = 0
    for batch in arrow_batches(file.path, None, READ_ROWS):
        end = begin + batch.num_rows
        if not file.has_dead_rows:
            yield batch
        else:
            for _, place in file.live:
                first, last = max(begin, place.start), min(end, place.start + place.count)
                if first < last:
                    yield batch.slice(first - begin, last - first)
        begin = end


def _schema_key(path: Path) -> str:
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    return f"{schema.to_string(show_schema_metadata=True)}"
