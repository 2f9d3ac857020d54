"""Tells from its files whether a project is written in Rust, and what its manifest says."""

from __future__ import annotations

import re
from pathlib import Path

from excise.extractors.fetch.trees import share_of_files
from excise.extractors.rust.analysis.codebase import SUFFIX
from excise.system.manifest_texts import manifest_table, manifest_text
from excise.system.toml_text import toml_text
from excise.types import ProjectInfo

MANIFEST = "Cargo.toml"
_INHERITS = re.compile(r"\bworkspace\s*=\s*true\b")
"""What a member writes where its workspace has a value."""


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


def add_workspace_tables(copy: Path, folder: Path, whole: Path) -> None:
    """Write what a member takes from its workspace, in a folder above ``folder``, into the manifest in ``copy``.

    The crate is then a workspace of its own, with the same metadata and versions of dependencies, as it is when it is
    published; tables of the workspace that it takes nothing from are left out.
    """
    own = manifest_table(copy / MANIFEST)
    if not own.get("package") or "workspace" in own:
        return
    above = (manifest_table(each / MANIFEST).get("workspace") for each in folder.parents if each.is_relative_to(whole))
    workspace = next((found for found in above if isinstance(found, dict)), {})
    tables = {f"workspace.{name}": workspace.get(name) for name in ("package", "dependencies")}
    known = {name: table for name, table in tables.items() if isinstance(table, dict) and table}
    text = manifest_text(copy / MANIFEST)
    if known and _INHERITS.search(text):
        (copy / MANIFEST).write_text(f"{text.rstrip()}\n\n{toml_text(known)}")
