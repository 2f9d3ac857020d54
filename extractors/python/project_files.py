"""Tells from its files whether a project is written in Python."""

from __future__ import annotations

from pathlib import Path

from excise.extractors.fetch.trees import share_of_files

MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg")
"""Files that only Python projects have in their main folder."""


def detect(root: Path) -> float:
    """1 with a manifest, else the share of files that are Python."""
    return 1.0 if any((root / name).is_file() for name in MANIFESTS) else share_of_files(root, ".py")
