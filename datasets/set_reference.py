"""Names of sets and snapshots on the command line: ``7``, ``2026-01-31``, ``other/set`` or ``other/set@7``."""

from __future__ import annotations

from pathlib import Path

from excise.datasets.snapshot import Snapshot
from excise.errors import StoreError


def open_reference(text: str, store: Path) -> Snapshot:
    """The snapshot that ``text`` names: one of ``store`` by number or time, or of another folder.

    Raises :class:`StoreError` if there is none.
    """
    folder, _, as_of = text.rpartition("@")
    if not text or text.isdigit():
        return _present(store, text)
    if Path(text).is_dir():
        return _present(Path(text), "")
    if folder and Path(folder).is_dir():
        return _present(Path(folder), as_of)
    return _present(store, text)


def folder_of(snapshot: Snapshot) -> Path:
    """The folder of the set that a snapshot belongs to."""
    return snapshot.root.parent.parent


def _present(store: Path, as_of: str) -> Snapshot:
    snapshot = Snapshot.at(store, as_of)
    if snapshot is None:
        raise StoreError(f"{store} holds no task set yet. Make one with `excise generate`.", reason="no_task_set")
    return snapshot
