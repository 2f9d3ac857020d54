"""Exports in other tools' formats: the registry, JSON lines, and Harbor's folders."""

from __future__ import annotations

import io
import json
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.exports.checkout_script import ARCHIVE
from excise.datasets.exports.registry import EXPORTERS, REPORT, export, exporter, set_name
from excise.datasets.exports.toml_text import toml_text
from excise.datasets.schema import TABLES
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError
from excise.extractors.fetch.trees import git_tree_hash
from excise.pipeline.services.export_materials import SetMaterials
from excise.protocols import ExportReport


def written(taskset: TaskSet, name: str, into: Path, repo: str | None = None) -> ExportReport:
    with SetMaterials(taskset) as materials:
        return export(taskset, name, into, materials, repo=repo)


def test_every_registered_exporter_can_be_made() -> None:
    assert {exporter(name).name for name in EXPORTERS} == set(EXPORTERS)


def test_unknown_format() -> None:
    with pytest.raises(ConfigError, match=r"choose from harbor, .*jsonl"):
        exporter("xml")


def test_a_folder_with_other_files_is_left_alone(store_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="name a new folder"):
        written(TaskSet.open(store_dir), "jsonl", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    written(TaskSet.open(store_dir), "jsonl", tmp_path / "new")
    with pytest.raises(ConfigError, match="no export in the format harbor"):
        written(TaskSet.open(store_dir), "harbor", tmp_path / "new")


def test_names_of_sets() -> None:
    assert set_name(Path("/x/my set..v1-")) == "my-set.v1"
    assert set_name(Path("/")) == "tasks"


def test_jsonl_has_the_rows(store_dir: Path, tmp_path: Path) -> None:
    taskset = TaskSet.open(store_dir)
    assert written(taskset, "jsonl", tmp_path / "new").num_tasks == 9
    rows = [json.loads(line) for line in (tmp_path / "new" / "tasks.jsonl").open(encoding="utf-8")]
    assert rows == taskset.task_rows()
    assert list(rows[0]) == [c.name for c in TABLES["tasks"].columns]
    assert isinstance(rows[0]["FAIL_TO_PASS"], list)
    assert written(taskset, "jsonl", tmp_path / "new", repo="humanize").num_tasks == 4
    assert {p.name for p in (tmp_path / "new").iterdir()} == {REPORT, "tasks.jsonl"}


def test_toml_of_every_kind_of_value() -> None:
    table = {
        "text": 'a "b"\n\\ \x7f \x1b é',
        "none": None,
        "number": 1,
        "share": 0.5,
        "yes": True,
        "list": ["a", 2],
        "empty": [],
        "odd key": {"inner": {"x": 1}},
        "rows": [{"a": 1, "b": {"c": [2]}}, {"a": 3}],
    }
    read = tomllib.loads(toml_text(table))
    assert read == {name: value for name, value in table.items() if value is not None}


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def harbor(stored: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harbor")
    assert written(stored.taskset, "harbor", folder).num_tasks == 8
    return folder


def test_what_the_agent_gets_is_the_shipped_tree(harbor: Path, stored: Any, tmp_path: Path) -> None:
    for task in stored.taskset.tasks():
        folder = harbor / "tasks" / task.instance_id
        into = tmp_path / task.instance_id
        with tarfile.open(folder / "environment" / ARCHIVE) as archive:
            archive.extractall(into)
        assert git_tree_hash(into) == task.shipped_tree
        assert (folder / "instruction.md").read_text() == task.problem_statement
        assert (folder / "solution/gold.patch").read_text() == task.patch


def test_hidden_tests_are_for_the_verifier_alone(harbor: Path, stored: Any) -> None:
    for task in stored.taskset.tasks():
        folder = harbor / "tasks" / task.instance_id
        with tarfile.open(fileobj=io.BytesIO((folder / "tests/kept.tar.gz").read_bytes())) as kept:
            names = set(kept.getnames())
            assert {test.partition("::")[0] for test in task.fail_to_pass} <= names
        request = json.loads((folder / "tests/request.json").read_text())
        assert request["ids"] == [*task.fail_to_pass, *task.pass_to_pass]
        config = tomllib.loads((folder / "task.toml").read_text())
        assert config["verifier"]["environment_mode"] == "separate"
        assert config["environment"]["network_mode"] == "no-network"
        assert not (folder / "environment/Dockerfile").exists(), "no image for a task"


def test_nothing_of_a_row_is_lost(harbor: Path, stored: Any) -> None:
    for row in stored.taskset.task_rows():
        folder = harbor / "tasks" / row["instance_id"]
        read = tomllib.loads((folder / "task.toml").read_text())["metadata"]
        read |= json.loads((folder / "tests/tests.json").read_text())
        read |= {"patch": (folder / "solution/gold.patch").read_text()}
        read |= {name: (folder / f"tests/{file}").read_text() for name, file in (
            ("test_patch", "test.patch"), ("deletion_patch", "deletion.patch"), ("certificate", "certificate.json")
        )}  # fmt: skip
        read["problem_statement"] = (folder / "instruction.md").read_text()
        assert {name: read.get(name) for name in row} == row


@pytest.mark.parametrize("name", EXPORTERS)
def test_equal_sets_give_equal_files(stored: Any, tmp_path: Path, name: str) -> None:
    first, again = tmp_path / "first" / "tasks", tmp_path / "again" / "tasks"
    report = written(stored.taskset, name, first)
    written(stored.taskset, name, again)
    assert report.num_tasks == 8
    assert files_of(again) == files_of(first)
    folders = [path for path in again.rglob("*") if path.is_dir()]
    for number, folder in enumerate(folders):
        (folder / f"stale{number}").write_text("of an earlier export")
    written(stored.taskset, name, again)
    assert files_of(again) == files_of(first)


@pytest.mark.parametrize("name", EXPORTERS)
def test_every_export_says_how_to_use_it_and_what_is_missing(stored: Any, tmp_path: Path, name: str) -> None:
    report = written(stored.taskset, name, tmp_path / "tasks")
    text = (tmp_path / "tasks" / REPORT).read_text()
    assert report.not_carried
    assert all(line in text for line in (*report.not_carried, *report.run))
    written(stored.taskset, name, tmp_path / "tasks", repo="shapes")


@pytest.mark.parametrize("name", ["harbor", "mini-swe-agent", "verifiers"])
def test_where_the_agent_is_there_are_no_hidden_tests(stored: Any, tmp_path: Path, name: str) -> None:
    """Of what an agent's container gets: the image's files that are copied from its first stage, and the checkout."""
    written(stored.taskset, name, tmp_path / "tasks")
    task = stored.taskset.tasks()[0]
    archives = [*(tmp_path / "tasks").rglob(f"*{task.instance_id}*/environment/*.tar.gz")]
    archives += (tmp_path / "tasks").rglob(f"checkouts/{task.instance_id}.tar.gz")
    assert len(archives) == 1
    with tarfile.open(archives[0]) as archive:
        names = archive.getnames()
        texts = [archive.extractfile(name).read().decode() for name in names]  # type: ignore[union-attr]
    assert not set(task.removed) & set(names)
    hidden = {test.rpartition("::")[2] for test in task.fail_to_pass}
    assert not any(f"def {test}(" in text for test in hidden for text in texts)


def test_one_image_for_all_tasks_without_what_they_lack(harbor: Path) -> None:
    (image,) = [path for path in (harbor / "images").iterdir() if path.is_dir()]
    text = (image / "Dockerfile").read_text()
    last = text[text.rindex("\nFROM base\n") :]
    assert "project" not in last, "the sources are in the first stage only"
    assert "--require-hashes" in text
    assert text.count("FROM ") == 3
