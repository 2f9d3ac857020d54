"""The task set as the viewer sees it: tables in memory over the current snapshot, rollouts and attempts, kept fresh."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from excise.datasets.queries.attempts import EFFORT, PARTS, PASS_AT_K
from excise.datasets.queries.imports import FOLDER as IMPORTS
from excise.datasets.schema import TABLES
from excise.datasets.storage.snapshot import EMPTY_FILE, Snapshot
from excise.datasets.viewer.file_table import FileTable, Shape
from excise.datasets.viewer.shapes import (
    ATTEMPTS,
    GATES,
    IMPORT_ROWS,
    QUARANTINES,
    REJECTIONS,
    REPOS,
    ROLLOUT_ROWS,
    SCORED,
    TASKS,
    TRIES,
)
from excise.errors import StoreError

CHECK_EVERY_S = 1.0
"""Seconds after which a request looks for new files again; longer where looking takes long."""
PATIENCE_S = 0.1
"""Seconds that a request waits for the files to be read; then it is answered from what is known."""
_OF_SNAPSHOT = {
    "tasks": (TASKS,),
    "rejections": (REJECTIONS,),
    "repos": (REPOS,),
    "quarantines": (QUARANTINES,),
    "verdicts": (GATES,),
}
"""Folder of a snapshot to the tables that are made of it."""
_OUTSIDE: tuple[tuple[Shape, tuple[str, ...]], ...] = (
    (ROLLOUT_ROWS, ("rollouts/*/step-*.parquet",)),
    (ATTEMPTS, ("attempts/*/*.parquet", f"attempts/*/{PARTS}/*.parquet")),
    (IMPORT_ROWS, (f"{IMPORTS}/*/*.parquet",)),
)
"""Tables of files beside the snapshots, and where these are."""

Row = dict[str, Any]
T = TypeVar("T")


class LoadedSet:
    """Answers SQL over a task set's folder, which may still be empty or be written to. Thread-safe, read-only.

    Raises :class:`StoreError` if the folder's snapshot is damaged or of a newer excise. If a later one is, the last
    good one stays in sight (:attr:`problem`).
    """

    def __init__(self, root: Path, *, check_every_s: float = CHECK_EVERY_S) -> None:
        import duckdb

        self.root = root.absolute()
        self.version = 0
        """Raised whenever the rows change."""
        self.snapshot: Path | None = None
        """Folder of the snapshot that is shown; ``None`` before the first."""
        self.problem: StoreError | None = None
        """Why the newest snapshot is not shown; ``None`` if it is."""
        self._connection = duckdb.connect()
        self._writer = self._connection.cursor()
        self._check_every_s = check_every_s
        self._lock = threading.Lock()
        self._checked_at = -1e9
        self._cost_s = 0.0
        self._cache: dict[Hashable, tuple[int, Any]] = {}
        self._kept_ready: dict[Hashable, Callable[[], Any]] = {}
        self._tables = {s.name: FileTable(self._writer, s) for shapes in _OF_SNAPSHOT.values() for s in shapes}
        self._tables |= {shape.name: FileTable(self._writer, shape) for shape, _ in _OUTSIDE}
        self._writer.execute(TRIES)
        self._writer.execute(SCORED + PASS_AT_K + EFFORT)
        self._sync()
        if self.problem is not None:
            raise self.problem

    def refresh(self) -> None:
        """Look for new files, unless that was done a moment ago. Gives up waiting after :data:`PATIENCE_S`."""
        wait = max(self._check_every_s, 20 * self._cost_s)
        if time.monotonic() - self._checked_at > wait and self._lock.acquire(blocking=False):
            done = threading.Event()
            threading.Thread(target=self._sync_in_background, args=(done,), daemon=True).start()
            done.wait(PATIENCE_S)

    def _sync_in_background(self, done: threading.Event) -> None:
        try:
            self._sync()
        finally:
            self._lock.release()
            done.set()

    def _sync(self) -> None:
        """Bring all tables up to date in one step, or file by file where a file cannot be read."""
        import duckdb

        begun = time.monotonic()
        snapshot = self._usable_snapshot()
        files: dict[str, list[Path]] = {
            shape.name: [path for pattern in patterns for path in self.root.glob(pattern)]
            for shape, patterns in _OUTSIDE
        }
        if snapshot != self.snapshot:  # what a snapshot holds never changes
            for folder, shapes in _OF_SNAPSHOT.items():
                files |= {shape.name: list(_parquet_files(snapshot / folder)) if snapshot else [] for shape in shapes}
        try:
            self._writer.begin()
            changed = [self._tables[name].sync(found) for name, found in files.items()]
            self._writer.commit()
        except duckdb.Error:
            self._writer.rollback()
            changed = [self._tables[name].sync(found, tolerant=True) for name, found in files.items()]
        for name in files:
            self._tables[name].confirm()
        self.snapshot = snapshot
        if any(changed):
            ready = {key: compute() for key, compute in self._kept_ready.items()}
            self.version += 1
            self._cache |= {key: (self.version, value) for key, value in ready.items()}
        self._checked_at = time.monotonic()
        self._cost_s = self._checked_at - begun

    def _usable_snapshot(self) -> Path | None:
        """Folder of the published snapshot, or of the one that is shown if that cannot be used."""
        if self.snapshot is not None and current_snapshot(self.root) == self.snapshot:
            self.problem = None
            return self.snapshot
        try:
            current = Snapshot.current(self.root)
            if current is not None:
                current.check_files(check_hashes=False)
        except StoreError as error:
            self.problem = error
            return self.snapshot
        self.problem = None
        return current.root if current is not None else None

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query."""
        with self._connection.cursor() as cursor:
            result = cursor.execute(sql, list(parameters))
            names = [str(column[0]) for column in result.description or ()]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def column(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """The only column of a query as a NumPy array."""
        with self._connection.cursor() as cursor:
            return next(iter(cursor.execute(sql, list(parameters)).fetchnumpy().values()))

    def row(self, sql: str, parameters: Sequence[object] = ()) -> Row | None:
        """The first row of a query, if it has one."""
        return next(iter(self.rows(sql, parameters)), None)

    def whole_row(self, place: Row) -> Row | None:
        """All columns of the row of a file that a row of a table in memory names with ``file`` and ``row``.

        Columns that the file lacks, since it is older, are ``None``.
        """
        sql = "SELECT * FROM read_parquet(?, file_row_number = true) WHERE file_row_number = ?"
        found = self.row(sql, [place["file"], place["row"]])
        table = TABLES.get(Path(str(place["file"])).parent.name)
        return dict.fromkeys((column.name for column in table.columns), None) | found if table and found else found

    def keep_ready(self, key: Hashable, compute: Callable[[], Any]) -> None:
        """Compute a value of :meth:`cached` now, and again after each change, before anyone asks."""
        self._kept_ready[key] = compute
        self.cached(key, compute)

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of ``compute``, computed once for each state of the set."""
        version, value = self._cache.get(key, (-1, None))
        if version != self.version:
            version, value = self.version, compute()
            if len(self._cache) > 100:
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
