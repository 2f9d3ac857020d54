"""A table in memory that holds the light columns of many Parquet files and is kept up to date file by file.

Files of snapshots never change under their names, and files of rollouts and attempts are replaced as a whole. So a
table only reads files that are new or have another size or time; rows of files that are gone are deleted. Heavy
columns (statements, patches, conversations) stay in the files: ``file`` and ``row`` say where.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from excise.datasets.schema import Table, empty_column

if TYPE_CHECKING:
    import duckdb

logger = logging.getLogger(__name__)

_AT_ONCE = 500
"""Files that one statement reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a table in memory holds of each file."""

    name: str
    """Name of the table in memory."""
    source: Table
    """Table of the files; columns that older files lack are null."""
    select: Mapping[str, str]
    """Column in memory to its SQL expression over the columns of the file."""
    group_by: str = ""
    """Columns by which the rows of a file are added up; empty if each row is kept."""


class FileTable:
    """One table in memory. Not thread-safe: :class:`excise.datasets.viewer.loaded_set.LoadedSet` holds a lock."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, shape: Shape) -> None:
        self._connection, self.shape = connection, shape
        self._loaded: dict[str, tuple[int, int]] = {}
        self._wanted: dict[str, tuple[int, int]] = {}
        self._create()

    def sync(self, files: Iterable[Path], *, tolerant: bool = False) -> bool:
        """Make the table hold exactly the rows of ``files``. Returns whether anything changes.

        Where a file cannot be read, raises ``duckdb.Error``, or leaves it out if ``tolerant``. Call :meth:`confirm`
        when the transaction has succeeded.
        """
        self._wanted = wanted = dict(_marks(files))
        gone = [name for name, mark in self._loaded.items() if wanted.get(name) != mark]
        new = [name for name, mark in wanted.items() if self._loaded.get(name) != mark]
        for start in range(0, len(gone), _AT_ONCE):
            self._connection.execute(
                f"DELETE FROM {self.shape.name} WHERE list_contains(?, file)", [gone[start : start + _AT_ONCE]]
            )
        for start in range(0, len(new), _AT_ONCE):
            (self._load if tolerant else self._insert)(new[start : start + _AT_ONCE])
        return bool(gone or new)

    def confirm(self) -> None:
        """The last :meth:`sync` is in the database."""
        self._loaded = self._wanted

    def _load(self, files: list[str]) -> None:
        import duckdb

        try:
            self._insert(files)
        except duckdb.Error:
            if len(files) == 1:  # damaged, or removed meanwhile by a newer snapshot
                logger.warning("file not shown", extra={"path": files[0]}, exc_info=True)
                return
            for name in files:
                self._load([name])

    def _insert(self, files: list[str]) -> None:
        columns = {c.name: c for c in self.shape.source.columns}
        read = "read_parquet(?, union_by_name = true, filename = true, file_row_number = true)"
        found = self._connection.execute(f"DESCRIBE SELECT * FROM {read}", [files]).fetchall()
        known = {str(row[0]) for row in found}
        missing = "".join(f", {empty_column(c)}" for name, c in columns.items() if name not in known)
        self._connection.execute(
            f"INSERT INTO {self.shape.name} BY NAME {self._select(f'(SELECT *{missing} FROM {read})')}", [files]
        )

    def _create(self) -> None:
        columns = ", ".join(map(empty_column, self.shape.source.columns))
        nothing = f"(SELECT {columns}, ''::VARCHAR AS filename, 0::BIGINT AS file_row_number WHERE false)"
        self._connection.execute(f"CREATE TABLE {self.shape.name} AS {self._select(nothing)}")

    def _select(self, source: str) -> str:
        place = "filename AS file" if self.shape.group_by else "filename AS file, file_row_number AS row"
        columns = ", ".join(f'{sql} AS "{name}"' for name, sql in self.shape.select.items())
        group = f" GROUP BY filename, {self.shape.group_by}" if self.shape.group_by else ""
        return f"SELECT {place}, {columns} FROM {source}{group}"


def _marks(files: Iterable[Path]) -> Iterable[tuple[str, tuple[int, int]]]:
    """Path to size and time of change, without files that vanish meanwhile."""
    for path in files:
        try:
            status = path.stat()
        except OSError:
            continue
        yield str(path), (status.st_size, status.st_mtime_ns)
