"""A task set in an object store, and its working copy on this machine.

::

    s3://bucket/set/current.json             the kept snapshots, oldest first; replaced by one conditional write
    s3://bucket/set/manifests/<sha256>.json  their manifests
    s3://bucket/set/data/ab/<sha256>.parquet files of snapshots, by content
    s3://bucket/set/blobs/ab/<sha256>.json   sources and grading kits, by content
    s3://bucket/set/near-duplicates/…        the index of near-duplicates

The working copy is the folder of an ordinary set, with ``remote.json`` in it. What it lacks is fetched when it is
opened, and verified by its hash. A snapshot is published when ``current.json`` names it: all that it needs was written
before, and the write succeeds only if nobody else published since this machine looked. Only then does ``current`` of
the working copy change; what a killed process left in it is removed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from excise.datasets.storage import near_duplicates
from excise.datasets.storage.manifest import Manifest, read_manifest
from excise.datasets.storage.retention import KEEP_RUNS, KEEP_SNAPSHOTS, kept_numbers
from excise.datasets.storage.s3_objects import S3Objects, data_key
from excise.datasets.storage.snapshot import STAGING
from excise.datasets.storage.views import write_views
from excise.errors import StoreError
from excise.system.files import file_sha256, link_or_copy, replace_file, replace_link, store_errors, sync
from excise.types import from_json, to_json

CURRENT = "current.json"
"""Key of the list of kept snapshots."""
MARK = "remote.json"
"""Name of the file that makes a folder a working copy."""
PARALLEL = 8
"""Objects that are read or written at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One kept snapshot in ``current.json``."""

    number: int
    """Its number."""
    manifest: str
    """sha256 of its manifest."""
    created_at: str
    """Time of publication, UTC."""
    run: str
    """The run that published it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """``current.json``."""

    snapshots: tuple[Published, ...] = ()
    """Kept snapshots in order; the last one is current."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """``remote.json`` in a working copy."""

    url: str
    """The set."""


class RemoteSet:
    """A set in an object store with its working copy in the folder ``root``; the caller holds the folder's lock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mark = from_json(Mark, (root / MARK).read_bytes())
        self._tag = ""
        self._pointer = Pointer()
        self._indexed: set[str] = set()
        """Files of the index of near-duplicates that the store has."""

    @classmethod
    def of(cls, root: Path) -> RemoteSet | None:
        """The remote set of a working copy; ``None`` for an ordinary folder."""
        return cls(root) if (root / MARK).exists() else None

    @cached_property
    def objects(self) -> S3Objects:
        """The object store."""
        return S3Objects(self.mark.url)

    def pull(self) -> None:
        """Make the published snapshot the working copy's current one. Raises :class:`StoreError`."""
        with store_errors("fetch the task set"):
            found = self.objects.read(CURRENT)
            self._pointer, self._tag = (from_json(Pointer, found[0]), found[1]) if found else (Pointer(), "")
            if self._pointer.snapshots:
                latest = self._pointer.snapshots[-1]
                if _manifest_hash(self.root / "current") != latest.manifest:
                    self.fetch(latest)
                    replace_link(self.root / "current", f"snapshots/{latest.number}")
            self._pull_index()

    def fetch_as_of(self, as_of: str) -> None:
        """Fetch the earlier snapshots that a number or a time may mean."""
        for published in self._pointer.snapshots:
            if as_of and (not as_of.isdigit() or str(published.number) == as_of):
                self.fetch(published)

    def fetch(self, published: Published) -> None:
        """Assemble a snapshot in the working copy from local files and fetched ones, unless it is there."""
        snapshots = self.root / "snapshots"
        target = snapshots / str(published.number)
        if _manifest_hash(target) == published.manifest:
            return
        folder = Path(tempfile.mkdtemp(prefix=STAGING, dir=snapshots))
        try:
            folder.chmod(0o755)
            self._fetch_object(f"manifests/{published.manifest}.json", folder / "manifest.json", published.manifest)
            write_views(folder)
            self._fetch_files(folder, read_manifest(folder))
            for path in (*(path for path in folder.iterdir() if path.is_dir()), folder):
                sync(path)
            if target.exists():  # of a publication of this machine that did not succeed
                shutil.rmtree(target)
            folder.rename(target)
            sync(snapshots)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _fetch_files(self, folder: Path, manifest: Manifest) -> None:
        known, missing = self._known_files(), []
        for name, entry in manifest.files.items():
            target = folder / name
            target.parent.mkdir(exist_ok=True)
            if entry.sha256 in known:
                link_or_copy(known[entry.sha256], target)
            else:
                missing.append((data_key(entry.sha256), target, entry.sha256))
        _in_parallel(self._fetch_object, missing)

    def push(self, number: int) -> None:
        """Publish a snapshot of the working copy.

        Raises :class:`StoreError` (``conflict``) if another machine published since :meth:`pull`.
        """
        folder = self.root / "snapshots" / str(number)
        manifest, sha = read_manifest(folder), file_sha256(folder / "manifest.json")
        _in_parallel(self.objects.upload, [(folder / path, data_key(sha)) for path, sha in self._new_files(manifest)])
        self._push_blobs()
        self.objects.upload(folder / "manifest.json", f"manifests/{sha}.json")
        entry = Published(number=number, manifest=sha, created_at=manifest.created_at, run=manifest.run)
        self._switch(Pointer(snapshots=_kept([*self._pointer.snapshots, entry], KEEP_SNAPSHOTS, KEEP_RUNS)))

    def push_index(self) -> None:
        """Store the files of the index of near-duplicates that were added, and remove those that were joined."""
        local = {path.name: path for path in (self.root / near_duplicates.FOLDER).glob("*.parquet")}
        for name in sorted(local.keys() - self._indexed):
            self.objects.upload(local[name], f"{near_duplicates.FOLDER}/{name}")
        self.objects.delete([f"{near_duplicates.FOLDER}/{name}" for name in sorted(self._indexed - local.keys())])
        self._indexed = set(local)

    def fetch_blob(self, target: Path) -> None:
        """Fetch an archive or a kit to its path in the working copy, if the store has it."""
        key = str(target.relative_to(self.root))
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.objects.read(key) is not None:
            self._fetch_object(key, target, target.name.partition(".")[0])

    def collect(self, snapshots: int, runs: int, grace_hours: float) -> tuple[int, int]:
        """Keep only some snapshots; remove objects that these do not need. Returns the objects and their bytes."""
        self._switch(Pointer(snapshots=_kept(list(self._pointer.snapshots), snapshots, runs)))
        needed = {f"manifests/{entry.manifest}.json" for entry in self._pointer.snapshots}
        for entry in self._pointer.snapshots:
            found = self.objects.read(f"manifests/{entry.manifest}.json")
            manifest = from_json(Manifest, found[0]) if found else None
            needed |= {data_key(file.sha256) for file in manifest.files.values()} if manifest else set()
        until = datetime.now(UTC) - timedelta(hours=grace_hours)
        gone = [
            facts
            for folder in ("data", "manifests")
            for facts in self.objects.listing(folder)
            if facts.key not in needed and facts.modified < until
        ]
        self.objects.delete([facts.key for facts in gone])
        return len(gone), sum(facts.bytes for facts in gone)

    def _switch(self, pointer: Pointer) -> None:
        if pointer == self._pointer:
            return
        data = to_json(pointer, indent=1)
        tag = self.objects.write_if(CURRENT, data, self._tag)
        if tag is None:  # perhaps only the answer was lost, and the write was repeated
            found = self.objects.read(CURRENT)
            if found is None or found[0] != data:
                raise StoreError(
                    f"{self.mark.url} was published by another machine meanwhile. Run the same command again; "
                    "what was finished comes from the cache.",
                    reason="conflict",
                )
            tag = found[1]
        self._pointer, self._tag = pointer, tag

    def _new_files(self, manifest: Manifest) -> Iterator[tuple[str, str]]:
        """Files that no kept snapshot of this working copy that was published has: path and sha256."""
        known: set[str] = set()
        if self._pointer.snapshots:
            base = self.root / "snapshots" / str(self._pointer.snapshots[-1].number)
            if base.exists():
                known = {entry.sha256 for entry in read_manifest(base).files.values()}
        for path, entry in manifest.files.items():
            if entry.sha256 not in known:
                yield path, entry.sha256

    def _push_blobs(self) -> None:
        local = {str(path.relative_to(self.root)): path for path in (self.root / "blobs").glob("*/[!.]*")}
        new = sorted(local.keys() - self._stored_blobs)
        _in_parallel(self.objects.upload, [(local[key], key) for key in new])
        self._stored_blobs.update(new)

    @cached_property
    def _stored_blobs(self) -> set[str]:
        return {facts.key for facts in self.objects.listing("blobs")}

    def _pull_index(self) -> None:
        self._indexed = {Path(facts.key).name for facts in self.objects.listing(near_duplicates.FOLDER)}
        folder = self.root / near_duplicates.FOLDER
        local = {path.name for path in folder.glob("*.parquet")}
        for name in sorted(self._indexed - local):
            found = self.objects.read(f"{near_duplicates.FOLDER}/{name}")
            if found is not None:
                replace_file(folder / name, found[0])

    def _known_files(self) -> dict[str, Path]:
        """sha256 to path of the files of local snapshots."""
        known: dict[str, Path] = {}
        for folder in (self.root / "snapshots").iterdir():
            if folder.name.isdigit() and (folder / "manifest.json").exists():
                for name, entry in read_manifest(folder).files.items():
                    known[entry.sha256] = folder / name
        return known

    def _fetch_object(self, key: str, target: Path, sha: str) -> None:
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as folder:
            temporary = Path(folder) / target.name
            self.objects.download(key, temporary)
            if file_sha256(temporary) != sha:
                message = f"{self.mark.url}/{key} is damaged: it is not what was published. Restore it from a copy."
                raise StoreError(message, reason="damaged")
            sync(temporary)
            temporary.replace(target)


def _manifest_hash(folder: Path) -> str:
    """sha256 of the manifest of a local snapshot; empty if there is none."""
    path = folder / "manifest.json"
    return file_sha256(path) if path.exists() else ""


def _in_parallel(action: Callable[..., None], arguments: Sequence[tuple[Any, ...]]) -> None:
    """Call ``action`` with each of the arguments, a few at a time. Raises the first error."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        for result in [pool.submit(action, *each) for each in arguments]:
            result.result()


def _kept(snapshots: list[Published], newest: int, runs: int) -> tuple[Published, ...]:
    numbers = kept_numbers(snapshots, newest, runs)
    return tuple(entry for entry in snapshots if entry.number in numbers)
