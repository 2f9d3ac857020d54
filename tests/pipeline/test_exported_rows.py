"""Exports in formats of rows, read back as another tool's set: the mirrors hold the trees, and patches lead right."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from excise.config import Settings
from excise.datasets.exports.registry import export
from excise.datasets.imports.registry import importer
from excise.deleters.patches.git_patches import touched
from excise.extractors.fetch.trees import git_tree_hash
from excise.pipeline.services.export_materials import SetMaterials
from excise.pipeline.services.foreign_sources import fetch_solved
from excise.types import ForeignTask, Task


@pytest.fixture(scope="module")
def tasks(stored: Any) -> dict[str, Task]:
    return {task.instance_id: task for task in stored.taskset.tasks()}


@pytest.fixture(scope="module", params=["swe-smith", "swe-rebench", "r2e-gym"])
def written(request: pytest.FixtureRequest, stored: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The stored set in a format, with its repositories."""
    folder = tmp_path_factory.mktemp("rows") / request.param
    with SetMaterials(stored.taskset) as materials:
        assert export(stored.taskset, request.param, folder, materials).num_tasks == 8
    subprocess.run(["sh", "mirrors/build.sh"], cwd=folder, check=True, env={"PATH": os.environ["PATH"]})
    return request.param, folder


def test_rows_read_back_lead_to_the_same_trees(
    written: tuple[str, Path], tasks: dict[str, Task], shapes_run: Any
) -> None:
    name, folder = written
    found = list(importer(name).read(folder / "tasks.jsonl"))
    assert {task.instance_id for task in found} == tasks.keys()
    settings: Settings = shapes_run.settings
    for read in found[:3]:
        assert isinstance(read, ForeignTask)
        task = tasks[read.instance_id]
        assert read.fail_to_pass in (None, task.fail_to_pass)
        solved = fetch_solved(settings, read, folder / "mirrors")
        layer = Path(solved.sources.layer)
        sources = {path: data for path, data in solved.shipped.items() if path not in solved.test_paths}
        if name == "swe-smith":
            assert (read.patch, set(sources)) == ("", set(touched(task.patch)))
            assert git_tree_hash(layer) == task.tree, "the sources before the bug"
        else:
            assert git_tree_hash(layer, edits=solved.shipped) == task.shipped_tree, "what the agent gets"
        if name == "swe-rebench":
            assert git_tree_hash(layer) == task.tree
            assert solved.test_paths == set(touched(task.test_patch))
        if name == "r2e-gym":
            assert set(sources) == set(touched(task.patch))
            expected = {test.rpartition("::")[2] for test in task.fail_to_pass}
            assert expected <= {test.rpartition(".")[2] for test, _ in read.expected}


def test_rows_have_the_published_columns(written: tuple[str, Path]) -> None:
    name, folder = written
    columns = {
        "swe-smith": {
            "instance_id", "repo", "patch", "FAIL_TO_PASS", "PASS_TO_PASS", "image_name", "problem_statement",
        },
        "swe-rebench": {
            "instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement", "pr_description",
            "created_at", "language", "interface", "FAIL_TO_PASS", "PASS_TO_PASS", "install_config", "image_name",
            "meta",
        },
        "r2e-gym": {
            "repo_name", "docker_image", "commit_hash", "parsed_commit_content", "execution_result_content",
            "modified_files", "modified_entity_summaries", "relevant_files", "num_non_test_files",
            "num_non_test_func_methods", "num_non_test_lines", "prompt", "problem_statement", "expected_output_json",
        },
    }  # fmt: skip
    for line in (folder / "tasks.jsonl").read_text().splitlines():
        row = json.loads(line)
        assert row.keys() >= columns[name]
        assert all(isinstance(row[test], list) for test in ("FAIL_TO_PASS", "PASS_TO_PASS") if test in row)
    if name == "swe-rebench":
        assert isinstance(row["created_at"], int)
        assert row["install_config"].keys() == {
            "base_image_name", "docker_specs", "install", "log_parser", "test_cmd"
        }  # fmt: skip
    images = [path for path in (folder / "images").iterdir() if path.is_dir()]
    assert len(images) == 1, "one image for each environment"
