"""Tells from its files whether a project is written in JavaScript, and what its manifest says."""

from __future__ import annotations

import json
from pathlib import Path

from excise.extractors.fetch.trees import share_of_files
from excise.extractors.javascript.analysis.codebase import MANIFEST, SUFFIXES
from excise.system.manifest_texts import manifest_text
from excise.types import ProjectInfo

_MANIFEST_FIT = 0.9
"""How well a project with a ``package.json`` fits: projects of other languages have one, too, for their tools."""


def detect(root: Path) -> float:
    """:data:`_MANIFEST_FIT` with a manifest and JavaScript files, else the share of files that are JavaScript."""
    share = share_of_files(root, SUFFIXES)
    return _MANIFEST_FIT if share and (root / MANIFEST).is_file() else _MANIFEST_FIT * share


def read_manifest(root: Path) -> ProjectInfo:
    """Name, version and licence of a ``package.json``, in which each may have any type."""
    try:
        data = json.loads(manifest_text(root / MANIFEST))
    except (ValueError, RecursionError):
        return ProjectInfo()
    fields = data if isinstance(data, dict) else {}
    licence = fields.get("license")
    name, version, licence = (
        value if isinstance(value, str) else ""
        for value in (
            fields.get("name"),
            fields.get("version"),
            licence.get("type") if isinstance(licence, dict) else licence,
        )
    )
    return ProjectInfo(name=name, version=version, license=licence)
