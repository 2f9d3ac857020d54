"""Exports that are imported again: the same set, and the same bytes when it is exported again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.exports.registry import EXPORTERS, REPORT, export, is_export
from excise.datasets.exports.set_files import SET
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError, StoreError
from excise.pipeline.services.export_materials import SetMaterials
from excise.pipeline.services.restore_export import restore


def written(taskset: TaskSet, name: str, into: Path) -> Path:
    with SetMaterials(taskset) as materials:
        export(taskset, name, into, materials)
    return into


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", EXPORTERS)
def test_an_export_of_an_imported_export_has_the_same_bytes(stored: Any, tmp_path: Path, name: str) -> None:
    first = written(stored.taskset, name, tmp_path / "one" / "tasks-of-shapes")
    assert is_export(name, first)
    restored = restore(name, first, tmp_path / "set")
    assert restored.task_rows() == stored.taskset.task_rows()
    second = written(restored, name, tmp_path / "two" / "tasks-of-shapes")
    assert files_of(second) == files_of(first)


def test_an_edited_export_is_not_taken_for_its_set(stored: Any, tmp_path: Path, excise: Any) -> None:
    folder = written(stored.taskset, "jsonl", tmp_path / "jsonl")
    done = excise("import", "jsonl", folder, "--out", tmp_path / "set")
    assert (done.returncode, "8 tasks of an export of excise restored" in done.stdout) == (0, True), done.stderr
    with pytest.raises(ConfigError, match="name a new folder"):
        restore("jsonl", folder, tmp_path / "set")
    edited = tmp_path / "edited"
    shutil.copytree(folder, edited)
    (edited / "tasks.jsonl").write_text("{}\n")
    with pytest.raises(StoreError, match=r"tasks\.jsonl differ"):
        restore("jsonl", edited, tmp_path / "other")
    (edited / REPORT).write_text("# Export (jsonl)\n\nNot finished.\n")  # as one that was killed leaves it
    done = excise("import", "jsonl", edited, "--out", tmp_path / "other")
    assert (done.returncode, "was interrupted" in done.stderr) == (2, True), done.stderr
    next((edited / SET).glob("snapshots/*/tasks/*.parquet")).write_bytes(b"")
    with pytest.raises(StoreError, match="missing or damaged"):
        restore("jsonl", edited, tmp_path / "other")
    assert not (tmp_path / "other").exists()
