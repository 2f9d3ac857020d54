"""Imports of other tools' task sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from excise.types import BadRow, ForeignTask


class Importer(Protocol):
    """Reads a set of another tool's tasks; runs nothing."""

    name: str

    def read(self, path: Path) -> Iterator[ForeignTask | BadRow]:
        """The tasks of a file or folder, in its order; a row that is no task becomes a :class:`BadRow`.

        Raises :class:`ConfigError` if the path holds nothing of this format.
        """
        ...
