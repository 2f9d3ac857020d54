"""Which snapshots are kept, and the removal of the others. A snapshot that a reader holds is never removed."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from excise.datasets.storage.snapshot import STAGING, numbers, published
from excise.system.locks import unleased

KEEP_SNAPSHOTS = 3
"""Number of newest snapshots that are kept, the current one included."""
KEEP_RUNS = 30
"""Number of runs (nights) whose last snapshot is kept, too."""


def remove_expired(root: Path, snapshots: int = KEEP_SNAPSHOTS, runs: int = KEEP_RUNS) -> list[int]:
    """Remove snapshots that are no longer kept and that no reader holds; return their numbers.

    The caller must hold the set's lock.
    """
    found = numbers(root)
    if len(found) <= snapshots:
        return []
    kept = kept_numbers(published(root), snapshots, runs)
    return [number for number in found if number not in kept and remove_snapshot(root, number)]


class Publication(Protocol):
    """What is known of a published snapshot."""

    @property
    def number(self) -> int:
        """Its number."""

    @property
    def run(self) -> str:
        """The run that published it."""


def kept_numbers(manifests: Sequence[Publication], snapshots: int, runs: int) -> set[int]:
    """Numbers of the newest snapshots and of the last snapshot of each of the newest runs; manifests in order."""
    last_of_run = {manifest.run or str(manifest.number): manifest.number for manifest in manifests}
    newest = [manifest.number for manifest in manifests][-max(1, snapshots) :]
    return {*newest, *(sorted(last_of_run.values())[-runs:] if runs else ())}


def remove_snapshot(root: Path, number: int) -> bool:
    """Remove a snapshot unless a reader holds it; return whether it is gone."""
    folder = root / "snapshots" / str(number)
    with unleased(folder / "manifest.json") as is_free:
        if is_free:
            aside = folder.with_name(f"{STAGING}{number}-{secrets.token_hex(4)}")
            try:
                folder.rename(aside)
            except OSError:
                return not folder.exists()
            shutil.rmtree(aside, ignore_errors=True)
    return is_free


def remove_unfinished(root: Path) -> None:
    """Remove temporary folders of killed writers, and snapshots that were never published."""
    known = set(numbers(root))
    for folder in (root / "snapshots").iterdir():
        unpublished = folder.name.isdigit() and int(folder.name) not in known
        if folder.name.startswith(STAGING) or unpublished:
            shutil.rmtree(folder, ignore_errors=True)
