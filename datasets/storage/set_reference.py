"""Names of sets and snapshots on the command line: ``7``, ``2026-01-31``, ``other/set`` or ``other/set@7``."""

from __future__ import annotations

from pathlib import Path

from excise.datasets.storage.manifest import no_set_error
from excise.datasets.storage.s3_objects import is_url
from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.storage.working_copy import local_folder
from excise.errors import StoreError


def open_reference(text: str, store: Path, cache: Path | None = None) -> Snapshot:
    """The snapshot that ``text`` names: one of ``store`` by number or time, or of another folder or URL.

    ``cache`` is needed for URLs. Raises :class:`StoreError` if there is none.
    """
    folder, _, as_of = text.rpartition("@")
    if cache is not None and is_url(text):
        url, _, as_of = text.partition("@")
        return _present(local_folder(url, cache, as_of), as_of)
    if not text or text.isdigit():
        return _present(store, text)
    if Path(text).is_dir():
        return _present(Path(text), "")
    if folder and Path(folder).is_dir():
        return _present(Path(folder), as_of)
    if not text[0].isdigit():
        raise StoreError(f"{text} is neither a folder nor a snapshot's number, date or time.", reason="unknown_id")
    return _present(store, text)


def folder_of(snapshot: Snapshot) -> Path:
    """The folder of the set that a snapshot belongs to."""
    return snapshot.root.parent.parent


def _present(store: Path, as_of: str) -> Snapshot:
    snapshot = Snapshot.at(store, as_of)
    if snapshot is None:
        raise no_set_error(store)
    return snapshot
