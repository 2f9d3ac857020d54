"""``manifest.json`` of a snapshot: its files with their hashes, where it comes from and what it changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from excise.errors import StoreError
from excise.system.files import store_errors
from excise.types import SCHEMA_VERSION, SourceSpec, from_json, to_json

MAX_LISTED = 10_000
"""Changed tasks that a manifest lists; of more, it has the numbers, and `excise diff` lists them."""


_REMEDY = (
    "Restore it from a copy, or make the set again in a new folder with the same command; "
    "what was finished comes from the cache."
)


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
    num_came: int = 0
    """Number of added tasks, in manifests."""
    num_changed: int = 0
    """Number of changed tasks, in manifests."""
    num_went: int = 0
    """Number of removed tasks, in manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoFiles:
    """One project in the manifest of a set of schema version 6 or older; newer sets have a ``set_index``."""

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
    """The changes since the parent. Of more than :data:`MAX_LISTED` tasks, only the numbers are here."""
    run: str = ""
    """The run that published it; each run's last snapshot is kept longer than others. Empty in older sets."""
    num_tasks: int = 0
    """Number of tasks; 0 in older sets."""
    repos: dict[str, RepoFiles] = field(default_factory=dict)
    """The projects of sets of schema version 6 and older; later ones have index files."""
    files: dict[str, FileEntry]
    """Path inside the snapshot to the file's entry."""


def listed(report: SnapshotReport) -> SnapshotReport:
    """The report as a manifest has it: numbers, and the tasks unless they are more than :data:`MAX_LISTED`."""
    counts = SnapshotReport(
        num_came=len(report.came), num_changed=len(report.changed), num_went=len(report.went),
        unchanged=report.unchanged,
    )  # fmt: skip
    if counts.num_came + counts.num_changed + counts.num_went > MAX_LISTED:
        return counts
    return replace(counts, came=report.came, changed=report.changed, went=report.went)


def read_manifest(root: Path) -> Manifest:
    """The manifest of the snapshot in ``root``. Raises :class:`StoreError` if it cannot be read."""
    path = root / "manifest.json"
    with store_errors("read the task set"):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise gone_error(path) from None
    try:
        check_version(json.loads(data)["schema_version"], root)
        return from_json(Manifest, data)
    except (ValueError, KeyError, TypeError) as error:
        raise damaged_error(path, f"is damaged: {error}") from error


def manifest_bytes(manifest: Manifest) -> bytes:
    """The bytes of ``manifest.json``, with sorted keys and one key per line."""
    return json.dumps(json.loads(to_json(manifest)), indent=1, sort_keys=True).encode() + b"\n"


def check_version(version: int, path: Path) -> None:
    """Raise :class:`StoreError` if a schema version is newer than :data:`SCHEMA_VERSION`."""
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema version {version}, this excise reads up to {SCHEMA_VERSION}. Upgrade excise.",
            reason="newer_schema",
        )


def damaged_error(path: Path, problem: str = "is damaged: it is not what was published") -> StoreError:
    """The error of a file of a snapshot that cannot be used."""
    return StoreError(f"{path} {problem.rstrip('.')}. {_REMEDY}", reason="damaged")


def no_set_error(store: Path) -> StoreError:
    """The error of a folder without a published snapshot."""
    if store.is_dir() or not store.exists():
        return StoreError(f"{store} holds no task set yet. Make one with `excise generate`.", reason="no_task_set")
    return StoreError(f"{store} is a file: a task set is a folder.", reason="no_task_set")


def gone_error(path: Path) -> StoreError:
    """The error of a file whose snapshot was removed."""
    message = f"{path} is gone: newer snapshots replaced this one. Open the task set again."
    return StoreError(message, reason="snapshot_gone")
