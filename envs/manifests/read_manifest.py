"""Reads a project's manifests: the files that declare how to install and test it. No code of the project is run.

Each reader returns a :class:`Manifest` with the fields that its files declare; :func:`read_manifest` merges them. To
support another kind of file, add a reader and one entry in ``READERS``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from excise.envs.manifests.ci import read_ci
from excise.envs.manifests.lock_files import read_locks
from excise.envs.manifests.manifest import Manifest
from excise.envs.manifests.other_tools import read_other_tools
from excise.envs.manifests.pyproject import read_pyproject
from excise.envs.manifests.pytest_config import read_pytest
from excise.envs.manifests.requirements import read_requirement_files
from excise.envs.manifests.setup_files import read_setuptools
from excise.envs.manifests.tox import read_tox

READERS: tuple[Callable[[Path], Manifest], ...] = (
    read_pyproject,
    read_setuptools,
    read_pytest,
    read_locks,
    read_ci,
    read_tox,
    read_requirement_files,
    read_other_tools,
)
"""All readers; for a single-valued field, the first that declares it wins."""


def read_manifest(root: Path) -> Manifest:
    """Merge what all readers find in ``root``."""
    parts = [reader(root) for reader in READERS]
    facts: dict[str, Any] = {f.name: _merge([getattr(part, f.name) for part in parts]) for f in fields(Manifest)}
    facts["addopts"] = next((part.addopts for part in parts if part.addopts), ())  # ``-p`` may stand there twice
    return Manifest(**facts)


def _merge(values: list[object]) -> object:
    """Strings and flags: the first that is set. Tuples: all items without duplicates. Dicts: the first per key."""
    if isinstance(values[0], tuple):
        return tuple(dict.fromkeys(item for value in values if isinstance(value, tuple) for item in value))
    if isinstance(values[0], dict):
        tables = [value for value in values if isinstance(value, dict)]
        return {key: next(t[key] for t in tables if key in t) for key in dict.fromkeys(k for t in tables for k in t)}
    return next((value for value in values if value), values[0])


_DIGESTED_IN_ROOT = (
    *("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "*.lock"),
    *("*req*.txt", "*req*.in", "*constraints*.txt"),
)
_DIGESTED_BELOW = ("req*/*.txt", "req*/*.in", "*/*req*.txt")


def manifest_digest(root: Path) -> str:
    """A hash of all files that a build may read to determine the project's requirements.

    Two trees with equal manifests have equal digests, whatever else they hold.
    """
    digest = hashlib.sha256()
    patterns = (*_DIGESTED_IN_ROOT, *_DIGESTED_BELOW)
    paths = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    for path in sorted(paths):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()
