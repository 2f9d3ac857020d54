"""Tells from its files whether a project is written in Python."""

from __future__ import annotations

from pathlib import Path

from excise.extractors.fetch.trees import list_files

MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg")
"""Files that only Python projects have in their main folder."""


def detect(root: Path) -> float:
    """1 with a manifest, else the share of files that are Python."""
    if any((root / name).is_file() for name in MANIFESTS):
        return 1.0
    files = list_files(root)
    return sum(path.endswith(".py") for path in files) / len(files) if files else 0.0
