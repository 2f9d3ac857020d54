"""The folder of a task set: atomically published snapshots, source archives and grading kits.

::

    DIR/current -> snapshots/7             replaced by one rename
    DIR/snapshots/7/manifest.json          files with sha256, rows and bytes; parent; changes
    DIR/snapshots/7/index/<hash>.parquet   the projects, and where their rows are
    DIR/snapshots/7/views.sql              views for `duckdb -init views.sql`
    DIR/snapshots/7/tasks/toolz-<hash>.parquet
    DIR/blobs/ab/ab12….tar.xz              original sources
    DIR/blobs/ab/ab12….json                grading kit of a task
    DIR/.lock                              held by the one writer
    DIR/remote.json                        only in the working copy of a set in an object store

A writer starts from the current snapshot, so that the results of partial runs accumulate. File names contain content
hashes; unchanged files are hard links to those of the previous snapshot.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from excise.datasets.storage.blobs import Blobs
from excise.datasets.storage.remote_set import RemoteSet
from excise.datasets.storage.retention import remove_unfinished
from excise.datasets.storage.snapshot import STAGING, Snapshot
from excise.datasets.storage.writer import Writer
from excise.system.files import store_errors
from excise.system.locks import exclusive


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
        with self.locked():
            remote = RemoteSet.of(self.root)
            if remote:
                remote.pull()
            with store_errors("write the task set"):
                staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=self.root / "snapshots"))
            try:
                yield Writer(self.root, staging, remote.push if remote else None)
                if remote:
                    remote.push_index()
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing; what killed ones left is removed. Raises like :meth:`writer`."""
        with store_errors("write the task set"):
            (self.root / "snapshots").mkdir(parents=True, exist_ok=True)
        with exclusive(self.root / ".lock"):
            remove_unfinished(self.root)
            yield

    def current(self) -> Snapshot | None:
        """The current snapshot, if one was published."""
        return Snapshot.current(self.root)

    def put_blob(self, content: Path | bytes, suffix: str = ".tar.xz") -> str:
        """Store a source archive and return its sha256. No writer is needed, since archives are immutable."""
        return self.blobs.put(content, suffix)
