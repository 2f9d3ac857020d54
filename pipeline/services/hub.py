"""Task sets on HuggingFace's hub: ``excise push`` and ``excise pull``. Needs the extra ``hub``."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from excise.datasets.exports.registry import export
from excise.datasets.exports.set_files import SET
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError, StoreError
from excise.pipeline.services.export_materials import SetMaterials
from excise.pipeline.services.restore_export import check_copied_set
from excise.system.files import store_errors

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
        check_copied_set(found, repo_id)
        with store_errors(f"write {into}"):
            if into.exists():
                into.rmdir()
            shutil.move(found, into)
    return TaskSet.open(into)


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
