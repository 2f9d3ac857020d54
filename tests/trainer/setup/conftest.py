"""Fixtures of the tests of the set-up."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..tiny_folder import make_folder, write_demonstrations
from .config_files import MINIMAL


@pytest.fixture(scope="module")
def input_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, demonstrations and the smallest configuration of a run."""
    folder = tmp_path_factory.mktemp("input_folder")
    make_folder(folder / "model")
    write_demonstrations(folder / "shown.jsonl", [("one?", "1"), ("two?", "2"), ("one?", "1")])
    (folder / "train.toml").write_text(MINIMAL)
    return folder
