"""Task sets restored from exports: ``excise import`` of what ``excise export`` wrote, and ``excise pull``.

An export has the files of its set beside what the other tool reads. A restored set must give the same export to the
last byte, which is checked by making it: so an export that was edited is not mistaken for the set that it came from.
"""

from __future__ import annotations

import filecmp
import shutil
import tempfile
from pathlib import Path

from excise.datasets.exports.registry import export
from excise.datasets.exports.set_files import SET
from excise.datasets.schema import TABLES
from excise.datasets.storage.snapshot import EMPTY_FILE, Snapshot, write_table
from excise.datasets.storage.views import views_sql
from excise.datasets.taskset import TaskSet
from excise.envs.packed_image import LAYERS
from excise.errors import ConfigError, StoreError
from excise.pipeline.services.export_materials import SetMaterials
from excise.system.files import file_sha256, replace_file, replace_link, store_errors

SHOWN = 5
"""Number of files that a message names."""


def restore(name: str, path: Path, into: Path) -> TaskSet:
    """Restore the set that was exported in the format ``name`` to ``path``, in the new folder ``into``.

    Raises :class:`ConfigError` if ``into`` exists, :class:`StoreError` if the set is damaged (``damaged``) or the
    export was edited (``edited``).
    """
    if into.exists() and any(into.iterdir()):
        raise ConfigError(f"{into} exists already; name a new folder for the set.")
    into.parent.mkdir(parents=True, exist_ok=True)
    with (
        store_errors(f"import {path}"),
        tempfile.TemporaryDirectory(prefix=".excise-import-", dir=into.parent) as work,
    ):
        found = Path(work) / SET
        shutil.copytree(path / SET, found)
        check_copied_set(found, str(path))
        taskset = TaskSet.open(found)
        again = Path(work) / path.absolute().name
        with SetMaterials(taskset, with_layers=False) as materials:
            export(taskset, name, again, materials)
        if edited := differing(path, again):
            shown = ", ".join(edited[:SHOWN]) + (", …" if len(edited) > SHOWN else "")
            raise StoreError(
                f"{path} is not what its set is exported as: {shown} differ. Restore these files; or, to import what "
                f"is there as another tool's tasks, delete {path / SET}.",
                reason="edited",
            )
        if into.exists():
            into.rmdir()
        shutil.move(found, into)
    return TaskSet.open(into)


def differing(first: Path, second: Path) -> list[str]:
    """Paths of the files that two exports do not have in common.

    Those of their sets are left out, and the installed environments in images, which may have to be built for that.
    """
    names = {
        path.relative_to(root).as_posix()
        for root in (first, second)
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] != SET and path.name != LAYERS
    }
    same = filecmp.cmpfiles(first, second, sorted(names), shallow=False)[0]
    return sorted(names.difference(same))


def check_copied_set(folder: Path, origin: str) -> None:
    """Verify all files of a copied set by their hashes, and make its link ``current``.

    Raises :class:`StoreError` (``no_task_set``, ``damaged``); ``origin`` is named in messages.
    """
    snapshots = [path for path in folder.glob("snapshots/*") if path.name.isdigit()]
    if len(snapshots) != 1:
        raise StoreError(f"{origin} holds no task set that excise wrote.", reason="no_task_set")
    snapshot = Snapshot.open(snapshots[0])
    for name, entry in snapshot.manifest.files.items():
        path = snapshots[0] / name
        if not path.is_file() or file_sha256(path) != entry.sha256:
            raise StoreError(f"{origin}: {name} is missing or damaged.", reason="damaged")
    _remove_unknown(folder, {snapshots[0] / name for name in snapshot.manifest.files})
    replace_file(snapshots[0] / "views.sql", views_sql().encode())
    for table in TABLES:
        (snapshots[0] / table).mkdir(exist_ok=True)
        write_table(snapshots[0] / table / EMPTY_FILE, table, [], comments=True)
    for path in folder.glob("blobs/*/*"):
        if file_sha256(path) != path.name.partition(".")[0]:
            raise StoreError(f"{origin}: {path.name} is damaged.", reason="damaged")
    replace_link(folder / "current", f"snapshots/{snapshots[0].name}")


def _remove_unknown(folder: Path, tables: set[Path]) -> None:
    """Remove what no hash vouches for, such as SQL that someone else wrote: all but tables, manifest and archives."""
    for path in folder.rglob("*"):
        is_archive = path.parent.parent == folder / "blobs"
        is_kept = (
            path in tables or is_archive or (path.name == "manifest.json" and path.parent.parent.name == "snapshots")
        )
        if path.is_symlink() or (path.is_file() and not is_kept):
            path.unlink()
