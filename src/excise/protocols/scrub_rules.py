"""Which files of a tree are artefacts: made by tools from the sources, so that they may contain deleted code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


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
    made_anew: frozenset[str] = frozenset()
    """Paths of files of the sources that an installation replaces by its own, such as a manifest without what cannot be
    had: agents get these, and their diffs do not show it."""
    separate_tests: Callable[[Path], None] | None = None
    """Moves tests that the files of sources below a folder hold into files of their own, where a language has such:
    solutions may change the former, graders restore the latter. ``None`` for languages that have none."""
    compiled: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(suffix of sources, suffixes of what a compiler makes of them): such a file is an artefact if the source is in
    the tree, beside it or below another of the main folders (``src/a/b.ts`` for ``a/b.js`` and ``lib/a/b.js``)."""
    not_compiled: frozenset[str] = frozenset()
    """Names of main folders in which no such file is an artefact: those of tests."""
