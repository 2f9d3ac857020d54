"""Which files of a tree are artefacts: made by tools from the sources, so that they may contain deleted code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubRules:
    """The artefacts of one language's tools, besides those of all languages (``verifiers/shipped_tree.py``)."""

    caches: frozenset[str] = frozenset()
    """Names of folders that are never part of the sources."""
    folders: frozenset[str] = frozenset()
    """Names of folders of caches and outputs, where these are no packages."""
    package_marks: tuple[str, ...] = ()
    """Names of files that make a folder with a name of ``folders`` part of the sources."""
    source_suffix: str = ""
    """Suffix of source files: a folder with a name of ``folders`` is a part of the sources if one lies directly in it.
    Empty for languages whose packages are told by ``package_marks``."""
    marked_folders: tuple[tuple[str, str], ...] = ()
    """(name of a folder, file in it): folders that are artefacts only with that file in them."""
    suffixes: frozenset[str] = frozenset()
    """Suffixes of files, with the dot."""
    names: frozenset[str] = frozenset()
    """Names of files."""
