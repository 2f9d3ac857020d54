"""The record of a worked example of a deleter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One deletion in a small codebase and the files that must result."""

    name: str
    """What the example shows; part of the test's id."""
    before: Mapping[str, str]
    """Path of each file to its content before the deletion."""
    delete: tuple[str, ...]
    """Ids of the symbols to delete."""
    after: Mapping[str, str | None]
    """Every changed file to its content after the deletion (``None``: the file is deleted).

    Empty if the deleter must refuse.
    """
    hide: tuple[str, ...] = ()
    """Ids of the tests to hide."""
    changed: tuple[tuple[str, str], ...] = ()
    """(symbol id, text) of those of the symbols that stay and lose a part."""
