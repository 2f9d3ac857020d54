"""A hash of everything in a tree that a build may read in order to say what the project requires."""

from __future__ import annotations

import hashlib
from pathlib import Path

_ROOT = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "*.lock", "*req*.txt", "*req*.in", "*constraints*.txt")
_BELOW = ("req*/*.txt", "req*/*.in", "*/*req*.txt")


def manifest_digest(root: Path) -> str:
    """Equal for two trees whose manifests are equal, whatever else is in them."""
    digest = hashlib.sha256()
    paths = {path for pattern in (*_ROOT, *_BELOW) for path in root.glob(pattern) if path.is_file()}
    for path in sorted(paths):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()
