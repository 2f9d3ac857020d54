"""Reads manifests of projects, which may be hostile: devices, pipes, and files that take a parser long."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

MAX_BYTES = 1 << 20
"""Size of a manifest above which it is not read."""
MAX_LINE = 5000
"""Length of a line of TOML above which it is not read: of a key with many dots, the time grows with the square."""


def manifest_text(path: Path) -> str:
    """The text of a manifest; empty if there is none, it is no plain file, or it is too large."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return ""
    return data.decode("utf-8-sig", "replace") if len(data) <= MAX_BYTES else ""


def manifest_table(path: Path) -> dict[str, Any]:
    """The content of a manifest in TOML; empty if it cannot be read."""
    text = manifest_text(path)
    try:
        return tomllib.loads(text) if max(map(len, text.splitlines()), default=0) <= MAX_LINE else {}
    except (ValueError, RecursionError):
        return {}
