"""Reading a file that may not be there."""

from __future__ import annotations

from pathlib import Path


def read_text(path: Path) -> str:
    """The text of a file, whatever its bytes; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
