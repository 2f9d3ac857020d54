"""Tells from its files whether a project is written in Go, and what its manifest says."""

from __future__ import annotations

import re
from pathlib import Path

from excise.extractors.fetch.trees import share_of_files
from excise.extractors.go.analysis.codebase import SUFFIX
from excise.system.manifest_texts import manifest_text
from excise.types import ProjectInfo

MANIFEST = "go.mod"
_MODULE = re.compile(r'^module[ \t]+"?([\w.~/-]+)"?[ \t]*(?://.*)?$', re.MULTILINE)
_VERSION = re.compile(r"v\d+")
"""Last part of the path of a module from its second major version on."""
_OF_FORGE = 3
"""Number of parts of a path on a forge: host, owner, name."""


def detect(root: Path) -> float:
    """1 with a manifest in the main folder, else the share of files that are Go."""
    return 1.0 if (root / MANIFEST).is_file() else share_of_files(root, SUFFIX)


def read_manifest(root: Path) -> ProjectInfo:
    """The name of the main folder's module: ``owner/name`` on a forge, else the last part of its path."""
    found = _MODULE.search(manifest_text(root / MANIFEST))
    parts = found[1].strip("/").split("/") if found else []
    if len(parts) > 1 and _VERSION.fullmatch(parts[-1]):
        parts.pop()
    return ProjectInfo(name="/".join(parts[1:] if len(parts) == _OF_FORGE else parts[-1:]))
