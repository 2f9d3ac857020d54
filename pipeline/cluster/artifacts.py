"""Where the layers of a run are kept: files named by their sha256, which is checked after every transfer.

``artifacts = "main"`` (default): in the cache of the main process, which answers its workers through the scheduler.
``artifacts = "s3://bucket/folder"`` or ``"file:///folder"``: in a store or a folder that all machines can reach.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from excise.datasets.storage.s3_objects import S3Objects
from excise.errors import ConfigError, StoreError
from excise.pipeline.cluster.relay import ask
from excise.system.files import file_sha256, replacement

CHUNK_BYTES = 1 << 20
"""Size of the parts in which artifacts pass through the scheduler."""
MAIN, SHARED = "main", "shared"


class Artifacts(Protocol):
    """A place for artifacts."""

    def has(self, digest: str) -> bool:
        """Whether an artifact is there."""
        ...

    def put(self, digest: str, file: Path) -> None:
        """Store a file under its sha256. Raises :class:`StoreError`."""
        ...

    def get(self, digest: str, target: Path) -> None:
        """Write an artifact to a file, and check it. Raises :class:`StoreError` (``unknown_artifact``, ``damaged``)."""
        ...


class FolderArtifacts:
    """Artifacts in a folder: ``ab/ab12….layer``. Several processes may write at the same time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """The file of an artifact."""
        return self.folder / digest[:2] / f"{digest}.layer"

    def has(self, digest: str) -> bool:
        """Whether the file exists."""
        return self.path(digest).is_file()

    def put(self, digest: str, file: Path) -> None:
        """Copy the file, unless the artifact exists."""
        if not self.has(digest):
            with replacement(self.path(digest)) as target, file.open("rb") as source:
                while chunk := source.read(CHUNK_BYTES):
                    target.write(chunk)

    def get(self, digest: str, target: Path) -> None:
        """Copy the artifact."""
        try:
            with self.path(digest).open("rb") as source, target.open("wb") as copy:
                while chunk := source.read(CHUNK_BYTES):
                    copy.write(chunk)
        except FileNotFoundError:
            raise _unknown(digest, str(self.folder)) from None
        require_digest(target, digest)

    # What follows answers workers that have no such folder.
    def read(self, digest: str, start: int) -> bytes:
        """A part of an artifact; empty at its end. Raises :class:`StoreError` (``unknown_artifact``)."""
        try:
            with self.path(digest).open("rb") as file:
                file.seek(start)
                return file.read(CHUNK_BYTES)
        except FileNotFoundError:
            raise _unknown(digest, "the main process") from None

    def write(self, digest: str, upload: str, start: int, data: bytes, *, last: bool) -> None:
        """A part of an artifact that comes in parts, in their order; ``upload`` distinguishes attempts."""
        if not upload.isalnum():
            raise StoreError(f"{upload!r} is no name of an upload.")
        part = self.path(digest).with_name(f".{digest}.{upload}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.write(data)
            if last:
                file.flush()
                os.fsync(file.fileno())
        if last:
            try:
                require_digest(part, digest)
                part.replace(self.path(digest))
            finally:
                part.unlink(missing_ok=True)


class MainArtifacts:
    """Artifacts in the main process, for jobs on workers (:mod:`excise.pipeline.cluster.relay`)."""

    def __init__(self, run: str) -> None:
        self.run = run

    def has(self, digest: str) -> bool:
        """Ask the main process."""
        return bool(ask(self.run, "has artifact", digest=digest))

    def put(self, digest: str, file: Path) -> None:
        """Send the file in parts."""
        size, start, upload = file.stat().st_size, 0, os.urandom(8).hex()
        with file.open("rb") as source:
            while start == 0 or start < size:
                data = source.read(CHUNK_BYTES)
                last = start + len(data) >= size
                ask(self.run, "write artifact", digest=digest, upload=upload, start=start, data=data, last=last)
                start += max(1, len(data))

    def get(self, digest: str, target: Path) -> None:
        """Fetch the file in parts."""
        with target.open("wb") as copy:
            while data := ask(self.run, "read artifact", digest=digest, start=copy.tell()):
                copy.write(data)
        require_digest(target, digest)


class S3Artifacts:
    """Artifacts in an object store that all machines can reach, each with its own credentials."""

    def __init__(self, url: str) -> None:
        self.objects = S3Objects(url)

    def has(self, digest: str) -> bool:
        """List the object."""
        return any(True for _ in self.objects.listing(self._key(digest)))

    def put(self, digest: str, file: Path) -> None:
        """Upload the file, unless the artifact exists."""
        if not self.has(digest):
            self.objects.upload(file, self._key(digest))

    def get(self, digest: str, target: Path) -> None:
        """Download the file."""
        if not self.has(digest):
            raise _unknown(digest, self.objects.url)
        self.objects.download(self._key(digest), target)
        require_digest(target, digest)

    @staticmethod
    def _key(digest: str) -> str:
        return f"layers/{digest[:2]}/{digest}.layer"


def require_digest(file: Path, digest: str) -> None:
    """Raise :class:`StoreError` (``damaged``) if a file does not have this sha256."""
    found = file_sha256(file)
    if found != digest:
        text = (
            f"A layer was damaged on its way: its sha256 is {found}, not {digest}. It is fetched again by the next try."
        )
        raise StoreError(text, reason="damaged")


def _unknown(digest: str, where: str) -> StoreError:
    return StoreError(f"{where} has no layer {digest}; the next run makes it again.", reason="unknown_artifact")


def check_setting(text: str) -> None:
    """Raise :class:`ConfigError` if the setting ``artifacts`` names no place."""
    parts = urlsplit(text)
    if text in (MAIN, SHARED) or parts.scheme == "s3" or (parts.scheme == "file" and parts.path.startswith("/")):
        return
    raise ConfigError(f"artifacts = {text!r}: write main, shared, s3://bucket/folder, or file:///folder.")


def artifacts_of(setting: str, run: str = "", cache: Path | None = None) -> Artifacts:
    """The place that a setting names; with ``cache``, that of the main process itself."""
    parts = urlsplit(setting)
    if parts.scheme == "s3":
        return S3Artifacts(setting)
    if parts.scheme == "file":
        return FolderArtifacts(Path(parts.path))
    return FolderArtifacts(cache / "artifacts") if cache is not None else MainArtifacts(run)


def answer_artifact_request(folder: FolderArtifacts, request: str, arguments: dict[str, Any]) -> Any:
    """Answer the requests of :class:`MainArtifacts`. Raises :class:`StoreError`."""
    match request:
        case "has artifact":
            return folder.has(arguments["digest"])
        case "read artifact":
            return folder.read(arguments["digest"], arguments["start"])
        case _:
            folder.write(**arguments)
            return None
