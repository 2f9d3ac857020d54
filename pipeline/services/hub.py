"""Task sets on HuggingFace's hub: ``excise push`` and ``excise pull``. Needs the extra ``hub``."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from excise.datasets.exports.huggingface import SET
from excise.datasets.exports.registry import export
from excise.datasets.schema import TABLES
from excise.datasets.storage.snapshot import EMPTY_FILE, Snapshot, write_table
from excise.datasets.storage.views import views_sql
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError, StoreError
from excise.pipeline.services.export_materials import SetMaterials
from excise.system.files import file_sha256, replace_file, replace_link, store_errors

INSTALL = "Install it: pip install 'excise[hub]'"


def push(taskset: TaskSet, repo_id: str, *, private: bool, message: str) -> str:
    """Upload a task set as a dataset; return its address. What an earlier push left there and is gone is deleted.

    Raises :class:`ConfigError` without the extra, :class:`StoreError` if the hub refuses or cannot be reached.
    """
    with hub_errors(f"push to {repo_id}"), tempfile.TemporaryDirectory(prefix="excise-push-") as work:
        from huggingface_hub import HfApi

        folder = Path(work) / repo_id.rpartition("/")[2]
        with SetMaterials(taskset) as materials:
            export(taskset, "huggingface", folder, materials)
        api = HfApi()
        url = api.create_repo(repo_id, repo_type="dataset", private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repo_id,
            repo_type="dataset",
            folder_path=folder,
            commit_message=message,
            delete_patterns=["*"],
        )
        return str(url)


def pull(repo_id: str, into: Path, revision: str | None) -> TaskSet:
    """Download a task set that was pushed into the new folder ``into``; every file is verified by its hash.

    Raises :class:`ConfigError` if ``into`` exists or without the extra, :class:`StoreError` if the download fails, is
    damaged, or holds no task set.
    """
    if into.exists() and any(into.iterdir()):
        raise ConfigError(f"{into} exists already; name a new folder.")
    into.parent.mkdir(parents=True, exist_ok=True)
    with hub_errors(f"pull {repo_id}"), tempfile.TemporaryDirectory(prefix=".excise-pull-", dir=into.parent) as work:
        from huggingface_hub import snapshot_download

        snapshot_download(repo_id, repo_type="dataset", revision=revision, local_dir=work, allow_patterns=[f"{SET}/**"])
        found = Path(work) / SET
        _check(found, repo_id)
        with store_errors(f"write {into}"):
            if into.exists():
                into.rmdir()
            shutil.move(found, into)
    return TaskSet.open(into)


def _check(folder: Path, repo_id: str) -> None:
    """Verify all files of a downloaded set, and make its link ``current``."""
    snapshots = [path for path in folder.glob("snapshots/*") if path.name.isdigit()]
    if len(snapshots) != 1:
        raise StoreError(f"{repo_id} holds no task set that excise pushed.", reason="no_task_set")
    snapshot = Snapshot.open(snapshots[0])
    for name, entry in snapshot.manifest.files.items():
        path = snapshots[0] / name
        if not path.is_file() or file_sha256(path) != entry.sha256:
            raise StoreError(f"{repo_id}: {name} is missing or damaged.", reason="damaged")
    _remove_unknown(folder, {snapshots[0] / name for name in snapshot.manifest.files})
    replace_file(snapshots[0] / "views.sql", views_sql().encode())
    for table in TABLES:
        (snapshots[0] / table).mkdir(exist_ok=True)
        write_table(snapshots[0] / table / EMPTY_FILE, table, [], comments=True)
    for path in folder.glob("blobs/*/*"):
        if file_sha256(path) != path.name.partition(".")[0]:
            raise StoreError(f"{repo_id}: {path.name} is damaged.", reason="damaged")
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


@contextmanager
def hub_errors(action: str) -> Iterator[None]:
    """Turn errors of the hub's client into :class:`StoreError`; a missing extra into :class:`ConfigError`."""
    try:
        import httpx2
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError
    except ImportError:
        raise ConfigError(f"This needs huggingface_hub. {INSTALL}") from None
    try:
        yield
    except HFValidationError as error:
        raise ConfigError(f"Cannot {action}: {error}") from error
    except (HfHubHTTPError, LocalTokenNotFoundError, httpx2.TransportError, OSError) as error:
        if isinstance(error, StoreError | ConfigError):
            raise
        advice = "Is HF_TOKEN set, and may it do this? HF_ENDPOINT names another hub."
        raise StoreError(f"Cannot {action}: {error} {advice}", reason="hub") from error
