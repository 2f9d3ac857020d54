"""Content-addressed storage of source archives and grading kits; hashes are verified on every read."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from excise.datasets.storage.remote_set import RemoteSet
from excise.errors import StoreError
from excise.system.files import file_sha256, replace_file, store_errors


class Blobs:
    """``blobs/<first two digits>/<sha256>.tar.xz`` (``.json`` for kits) inside a task set's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root / "blobs"

    def put(self, content: Path | bytes, suffix: str = ".tar.xz") -> str:
        """Store an archive unless it is already stored. Returns its sha256."""
        with store_errors("store a source archive"):
            data = content.read_bytes() if isinstance(content, Path) else content
            sha = hashlib.sha256(data).hexdigest()
            path = self._path(sha, suffix)
            if not path.exists() or path.stat().st_size != len(data):
                replace_file(path, data)
        return sha

    def has(self, sha: str) -> bool:
        """Whether the archive exists (its content is verified when it is read)."""
        return bool(sha) and self._path(sha).exists()

    def path(self, sha: str, suffix: str = ".tar.xz") -> Path:
        """Path of the archive. Raises :class:`StoreError` if it is missing or damaged."""
        if not re.fullmatch(r"[0-9a-f]{64}", sha):
            raise StoreError(f"{sha!r} is not the sha256 of a source archive.", reason="unknown_blob")
        path = self._path(sha, suffix)
        with store_errors("read a source archive"):
            if not path.exists() and (remote := RemoteSet.of(self.root.parent)):
                remote.fetch_blob(path)
            if not path.exists():
                raise StoreError(f"No source archive {sha} in {os.fspath(self.root)}.", reason="unknown_blob")
            if file_sha256(path) != sha:
                raise StoreError(
                    f"The source archive {path} is damaged. Delete it and run `excise generate` again.",
                    reason="damaged",
                )
        return path

    def _path(self, sha: str, suffix: str = ".tar.xz") -> Path:
        return self.root / sha[:2] / f"{sha}{suffix}"
