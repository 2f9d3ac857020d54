"""The task set as the viewer sees it: tables in memory over the current snapshot, rollouts and attempts, kept fresh."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from excise.datasets.snapshot import EMPTY_FILE
from excise.datasets.viewer.file_table import FileTable, Shape
from excise.datasets.viewer.shapes import (
    ATTEMPTS,
    GATES,
    QUARANTINES,
    REJECTIONS,
    REPOS,
    ROLLOUT_ROWS,
    TASKS,
    TRIES,
)

CHECK_EVERY_S = 1.0
"""Seconds after which a request looks for new files again."""
_OF_SNAPSHOT = {
    "tasks": (TASKS,),
    "rejections": (REJECTIONS,),
    "repos": (REPOS,),
    "quarantines": (QUARANTINES,),
    "verdicts": (GATES,),
}
"""Folder of a snapshot to the tables that are made of it."""
_OUTSIDE: tuple[tuple[Shape, str], ...] = (
    (ROLLOUT_ROWS, "rollouts/*/step-*.parquet"),
    (ATTEMPTS, "attempts/*/*.parquet"),
)
"""Tables of files beside the snapshots, and where these are."""

Row = dict[str, Any]
T = TypeVar("T")


class SetIndex:
    """Answers SQL over a task set's folder, which may still be empty or be written to. Thread-safe, read-only."""

    def __init__(self, root: Path, *, check_every_s: float = CHECK_EVERY_S) -> None:
        import duckdb

        self.root = root.absolute()
        self.version = 0
        """Raised whenever the rows change."""
        self.snapshot: Path | None = None
        """Folder of the snapshot that is shown; ``None`` before the first."""
        self._connection = duckdb.connect()
        self._check_every_s = check_every_s
        self._lock = threading.Lock()
        self._checked_at = -1e9
        self._cache: dict[Hashable, tuple[int, Any]] = {}
        self._tables = {s.name: FileTable(self._connection, s) for shapes in _OF_SNAPSHOT.values() for s in shapes}
        self._tables |= {shape.name: FileTable(self._connection, shape) for shape, _ in _OUTSIDE}
        self._connection.execute(TRIES)
        self._sync()

    def refresh(self) -> None:
        """Look for new files, unless that was done a moment ago.

        Where another request is looking already, this one is answered from what is known.
        """
        if time.monotonic() - self._checked_at > self._check_every_s and self._lock.acquire(blocking=False):
            try:
                self._sync()
            finally:
                self._lock.release()

    def _sync(self) -> None:
        self.snapshot = current_snapshot(self.root)
        changed = []
        for folder, shapes in _OF_SNAPSHOT.items():
            files = list(_parquet_files(self.snapshot / folder)) if self.snapshot else []
            changed += [self._tables[shape.name].sync(files) for shape in shapes]
        for shape, pattern in _OUTSIDE:
            changed.append(self._tables[shape.name].sync(self.root.glob(pattern)))
        self.version += any(changed)
        self._checked_at = time.monotonic()

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query."""
        with self._connection.cursor() as cursor:
            result = cursor.execute(sql, list(parameters))
            names = [str(column[0]) for column in result.description or ()]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def row(self, sql: str, parameters: Sequence[object] = ()) -> Row | None:
        """The first row of a query, if it has one."""
        return next(iter(self.rows(sql, parameters)), None)

    def whole_row(self, place: Row) -> Row | None:
        """All columns of the row of a file that a row of a table in memory names with ``file`` and ``row``."""
        sql = "SELECT * FROM read_parquet(?, file_row_number = true) WHERE file_row_number = ?"
        return self.row(sql, [place["file"], place["row"]])

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of ``compute``, computed once for each state of the set."""
        version, value = self._cache.get(key, (-1, None))
        if version != self.version:
            version, value = self.version, compute()
            if len(self._cache) > 500:
                self._cache.clear()
            self._cache[key] = version, value
        return value  # type: ignore[no-any-return]


def current_snapshot(root: Path) -> Path | None:
    """Folder of the published snapshot; ``None`` before the first."""
    link = root / "current"
    return link.resolve() if (link / "manifest.json").exists() else None


def snapshots(root: Path) -> list[Path]:
    """Folders of the snapshots that are kept, oldest first."""
    found = [path for path in (root / "snapshots").glob("*") if path.name.isdigit()]
    return sorted(found, key=lambda path: int(path.name))


def _parquet_files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob("*.parquet") if path.name != EMPTY_FILE)
