"""Removal of what no kept snapshot of a set needs: snapshots, source archives, grading kits, unfinished files."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from excise.datasets.storage.remote_set import RemoteSet
from excise.datasets.storage.retention import kept_numbers, remove_snapshot
from excise.datasets.storage.snapshot import Snapshot, numbers, published
from excise.datasets.storage.store import Store
from excise.system.files import store_errors
from excise.system.locks import unleased

GRACE_HOURS = 24.0
"""Age in hours below which blobs that nothing refers to are kept."""
_KIT = re.compile(r'"kit": ?"([0-9a-f]{64})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageReport:
    """What was removed, or would be."""

    kept: tuple[int, ...]
    """Numbers of the snapshots that are kept."""
    in_use: tuple[int, ...]
    """Those of them that are kept only because they are being read."""
    removed: tuple[int, ...]
    """Numbers of the removed snapshots."""
    num_blobs: int
    """Number of removed archives, kits and unfinished files."""
    freed_bytes: int
    """Bytes of the removed files that no other snapshot shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What :func:`collect` keeps."""

    snapshots: int = 3
    """Number of newest snapshots, at least 1."""
    runs: int = 0
    """Number of newest runs whose last snapshot is kept, too."""
    grace_hours: float = GRACE_HOURS
    """See :data:`GRACE_HOURS`."""


def collect(store: Path, retention: Retention, *, dry_run: bool = False) -> GarbageReport:
    """Remove what is not needed; with ``dry_run`` only say so.

    Raises :class:`StoreError` if the set is being written. Snapshots that are being read stay.
    """
    with Store(store).locked(), store_errors("remove old snapshots"):
        wanted = kept_numbers(published(store), retention.snapshots, retention.runs)
        removed: list[int] = []
        in_use: list[int] = []
        freed = 0
        for number in [number for number in numbers(store) if number not in wanted]:
            size = _own_bytes(store / "snapshots" / str(number), {store / "snapshots" / str(n) for n in removed})
            if _is_removable(store, number) if dry_run else remove_snapshot(store, number):
                removed.append(number)
                freed += size
            else:
                in_use.append(number)
        kept = [number for number in sorted({*numbers(store)}) if number not in removed]
        num_blobs, blob_bytes = _sweep(store, kept, retention.grace_hours, dry_run=dry_run)
        if (remote := RemoteSet.of(store)) and not dry_run:
            remote.pull()
            objects, size = remote.collect(retention.snapshots, retention.runs, retention.grace_hours)
            num_blobs, blob_bytes = num_blobs + objects, blob_bytes + size
        return GarbageReport(
            kept=tuple(kept),
            in_use=tuple(in_use),
            removed=tuple(removed),
            num_blobs=num_blobs,
            freed_bytes=freed + blob_bytes,
        )


def referenced_blobs(snapshot: Snapshot) -> Iterator[str]:
    """Hashes of the archives and kits that a snapshot's rows name."""
    for rows in snapshot.batches("repos", ["blob"]):
        yield from (str(row["blob"]) for row in rows if row["blob"])
    for rows in snapshot.batches("tasks", ["certificate"], size=512):
        yield from (sha for row in rows for sha in _KIT.findall(row["certificate"] or ""))


def _is_removable(store: Path, number: int) -> bool:
    with unleased(store / "snapshots" / str(number) / "manifest.json") as is_free:
        return is_free


def _own_bytes(folder: Path, gone: set[Path]) -> int:
    """Bytes of the files of a snapshot that no other snapshot links, besides those in ``gone``."""
    total = 0
    for path in folder.rglob("*"):
        facts = path.lstat()
        others = sum((other / path.relative_to(folder)).exists() for other in gone)
        if path.is_file() and facts.st_nlink - others <= 1:
            total += facts.st_size
    return total


def _sweep(store: Path, kept: list[int], grace_hours: float, *, dry_run: bool) -> tuple[int, int]:
    """Remove old blobs that no snapshot in ``kept`` names; return their number and bytes."""
    needed = {sha for n in kept for sha in referenced_blobs(Snapshot.open(store / "snapshots" / str(n)))}
    until = time.time() - 3600 * grace_hours
    count = size = 0
    for path in sorted((store / "blobs").glob("*/*")):
        facts = path.stat()
        if path.name.partition(".")[0] not in needed and facts.st_mtime < until:
            count, size = count + 1, size + facts.st_size
            if not dry_run:
                path.unlink()
    return count, size
