"""Configuration files for the tests of the set-up."""

from __future__ import annotations

from pathlib import Path

MINIMAL = 'folder = "runs/first"\n[policy]\nmodel = "model"\n'


def write_config(input_folder: Path, text: str) -> Path:
    """Write ``other.toml`` with this text, and return its path."""
    (input_folder / "other.toml").write_text(text)
    return input_folder / "other.toml"
