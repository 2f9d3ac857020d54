"""The files of a run, for a worker that cannot see the main process's folders: cached results, and blobs of the set.

A worker of this machine reads and writes them itself. A worker of another machine has folders of its own and sets
:data:`current_run_files`; the cache of stage results and the store's blobs are then those of the main process, so that
a run gives the same whoever works on it, and the next run goes on from there. Layers travel separately: records name
them by their content then (:mod:`excise.pipeline.cluster.layer_names`).
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from excise.config import Settings
from excise.datasets.storage.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLayer:
    """A layer that belongs to a cached result."""

    path: str
    """Its folder."""


class RunFiles(Protocol):
    """What a worker asks of the main process."""

    def read_result(self, stage: str, key: str) -> bytes | None:
        """The cached result of a stage, as :class:`.stage_cache.StageCache` writes it; ``None`` if there is none."""
        ...

    def write_result(self, stage: str, key: str, data: bytes) -> None:
        """Cache the result of a stage."""
        ...

    def leave(self, answer: T) -> T:
        """A record as other machines can use it; its layers are stored where they can be fetched."""
        ...

    def arrive(self, answer: T) -> T | None:
        """A record of another machine with its layers in this machine's cache; ``None`` if one is lost."""
        ...

    def has_blob(self, sha: str) -> bool:
        """Whether the task set has a source archive."""
        ...

    def put_blob(self, content: bytes, suffix: str) -> str:
        """Store a blob in the task set; return its sha256."""
        ...


current_run_files: ContextVar[RunFiles | None] = ContextVar("run_files", default=None)
"""Set while a job of a run on another machine is worked on."""


def has_blob(settings: Settings, sha: str) -> bool:
    """Whether the run's task set has a source archive."""
    files = current_run_files.get()
    return bool(sha) and (files.has_blob(sha) if files else Store(settings.out).blobs.has(sha))


def put_blob(settings: Settings, content: Path | bytes, suffix: str = ".tar.xz") -> str:
    """Store a source archive or a grading kit in the run's task set; return its sha256."""
    files = current_run_files.get()
    if files is None:
        return Store(settings.out).put_blob(content, suffix)
    return files.put_blob(content.read_bytes() if isinstance(content, Path) else content, suffix)
