"""Sources: where repositories come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from excise.types import (
    Repo,
    SourceSpec,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A source on disk: pristine files, no version control, nothing of it run."""

    repo: Repo
    """The snapshot's record (``tree`` and ``blob`` are filled in by the stage)."""
    root: Path
    """Folder with the files."""


class Source(Protocol):
    """Where repositories come from: git, a PyPI sdist, a directory, an archive, a Debian source."""

    name: str

    def matches(self, spec: SourceSpec) -> bool:
        """Whether this source understands ``spec.spec``."""
        ...

    def resolve(self, spec: SourceSpec, cache: Path) -> str:
        """The pinned form of ``spec.spec`` as of now (cheap; may ask the network).

        Equal answers mean equal content, so a refresh does nothing. Raises :class:`SourceError`.
        """
        ...

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:
        """Put the files of a pinned source into the empty folder ``into``.

        Never runs code of the project. Raises :class:`SourceError`.
        """
        ...
