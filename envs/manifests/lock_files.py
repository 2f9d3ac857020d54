"""Reader of lock files: the versions with which the project's developers run its tests."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from excise.envs.manifests.manifest import Manifest, read_text

FILES = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock")
"""Lock files in order of precedence."""


def read_locks(root: Path) -> Manifest:
    """Read the first lock file that names versions; distributions with several versions (per platform) are left out."""
    for name in FILES:
        if (root / name).is_file():
            versions: dict[str, set[str]] = {}
            for distribution, version in _packages(root / name):
                versions.setdefault(canonicalize_name(distribution), set()).add(version)
            if locked := {d: next(iter(v)) for d, v in sorted(versions.items()) if len(v) == 1}:
                return Manifest(locked=locked, evidence=(f"{name}: versions of {len(locked)} distributions",))
    return Manifest()


def _packages(path: Path) -> Iterator[tuple[str, str]]:
    entries = _pipfile(path) if path.name == "Pipfile.lock" else _toml(path)
    for name, version in entries:
        try:
            yield name, str(Version(version))
        except InvalidVersion:
            continue


def _toml(path: Path) -> Iterator[tuple[str, str]]:
    try:
        data: dict[str, Any] = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError:
        return
    entries = data.get("package") or data.get("packages")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and _from_index(entry):
            yield str(entry.get("name", "")), str(entry.get("version", ""))


def _from_index(entry: dict[str, Any]) -> bool:
    """Whether the entry comes from an index: not from git, a path, or the project itself."""
    source = entry.get("source")
    if isinstance(source, dict):
        elsewhere = {"git", "path", "directory", "editable", "virtual", "url"}
        return not source.keys() & elsewhere and source.get("type") in (None, "legacy")
    return not entry.keys() & {"git", "path", "url", "vcs", "directory"}


def _pipfile(path: Path) -> Iterator[tuple[str, str]]:
    try:
        data: Any = json.loads(read_text(path))
    except ValueError:
        return
    for section in ("default", "develop"):
        entries = data.get(section) if isinstance(data, dict) else None
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            if isinstance(entry, dict) and str(entry.get("version", "")).startswith("=="):
                yield name, entry["version"][2:]
