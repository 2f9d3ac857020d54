"""Tells from its files whether a project is written in JavaScript, and where its tests are."""

from __future__ import annotations

from pathlib import Path

from excise.extractors.fetch.trees import list_files
from excise.extractors.javascript.analysis.codebase import MANIFEST, SUFFIXES

_MANIFEST_FIT = 0.9
"""How well a project with a ``package.json`` fits: projects of other languages have one, too, for their tools."""


def detect(root: Path) -> float:
    """:data:`_MANIFEST_FIT` with a manifest and JavaScript files, else the share of files that are JavaScript."""
    files = list_files(root)
    sources = sum(path.endswith(SUFFIXES) for path in files)
    if sources and (root / MANIFEST).is_file():
        return _MANIFEST_FIT
    return _MANIFEST_FIT * sources / len(files) if files else 0.0
