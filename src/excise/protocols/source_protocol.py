"""Sources of repositories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from excise.types import Repo, SourceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The files of a source on disk, without version control. No code of the project was run."""

    repo: Repo
    """The record of the snapshot (the fetch stage adds the hash of the packed archive)."""
    root: Path
    """Folder with the files."""


class Source(Protocol):
    """A kind of source, such as git repositories, source distributions, folders or archives."""

    name: str

    def matches(self, spec: SourceSpec) -> bool:
        """Whether ``spec.spec`` has the form of this kind of source."""
        ...

    def resolve(self, spec: SourceSpec, cache: Path) -> str:
        """Return ``spec.spec`` pinned to the current commit, version or hash; cheap, but may use the network.

        Equal pinned forms mean equal content. Raises :class:`SourceError`.
        """
        ...

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:
        """Write the files of a pinned source to the empty folder ``into``.

        Never runs code of the project. Raises :class:`SourceError`.
        """
        ...
