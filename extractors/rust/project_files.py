"""Tells from its files whether a project is written in Rust, and what its manifest says."""

from __future__ import annotations

from pathlib import Path

from excise.extractors.fetch.trees import share_of_files
from excise.extractors.manifest_texts import manifest_table
from excise.extractors.rust.analysis.codebase import SUFFIX
from excise.types import ProjectInfo

MANIFEST = "Cargo.toml"


def detect(root: Path) -> float:
    """1 with a manifest in the main folder, else the share of files that are Rust."""
    return 1.0 if (root / MANIFEST).is_file() else share_of_files(root, SUFFIX)


def read_manifest(root: Path) -> ProjectInfo:
    """Name, version and licence of the package in the main folder; those that it inherits from its workspace, too."""
    data = manifest_table(root / MANIFEST)
    package, workspace = data.get("package"), data.get("workspace")
    own = package if isinstance(package, dict) else {}
    shared = workspace.get("package") if isinstance(workspace, dict) else None
    inherited = shared if isinstance(shared, dict) else {}

    def field(name: str) -> str:
        value = inherited.get(name) if isinstance(own.get(name), dict) else own.get(name)
        return value if isinstance(value, str) else ""

    return ProjectInfo(name=field("name"), version=field("version"), license=field("license"))
