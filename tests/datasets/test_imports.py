"""Reading other tools' sets: each format, and what is wrong with a row."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from excise.datasets.imports.harbor import TESTS as HARBOR_TESTS
from excise.datasets.imports.r2e_gym import TESTS as R2E_TESTS
from excise.datasets.imports.registry import IMPORTERS, importer
from excise.deleters.patches.git_patches import touched
from excise.errors import ConfigError
from excise.types import BadRow, ForeignTask
from excise.verifiers.imported_task import match_tests

from ..foreign_sets import (
    PROJECT,
    RING,
    History,
    git,
    harbor_task,
    make_history,
    r2e_row,
    swe_smith_row,
    swebench_row,
    write_jsonl,
)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return make_history(tmp_path_factory.mktemp("repos"))


def read(name: str, path: Path) -> list[ForeignTask | BadRow]:
    return list(importer(name).read(path))


def only_task(name: str, path: Path) -> ForeignTask:
    (task,) = read(name, path)
    assert isinstance(task, ForeignTask), task
    return task


def test_every_registered_importer_can_be_made() -> None:
    assert {importer(name).name for name in IMPORTERS} == set(IMPORTERS)
    with pytest.raises(ConfigError, match=r"choose from harbor, .*swebench"):
        importer("xml")


def test_lists_of_tests_may_be_texts(history: History, tmp_path: Path) -> None:
    rows = [swebench_row(history), swebench_row(history, instance_id="other", FAIL_TO_PASS=[RING], PASS_TO_PASS=[])]
    first, second = read("swebench", write_jsonl(tmp_path / "set.jsonl", rows))
    assert isinstance(first, ForeignTask)
    assert isinstance(second, ForeignTask)
    assert (first.place, second.place) == ("set.jsonl line 1", "set.jsonl line 2")
    assert first.fail_to_pass == second.fail_to_pass == (RING,)
    assert (first.urls, first.commit) == ((f"https://github.com/{PROJECT}",), history.commits[0])
    assert json.loads(first.row) == rows[0], "the row is kept for the report"


def test_parquet_files_and_folders(history: History, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    folder = tmp_path / "data"
    folder.mkdir()
    rows = [swebench_row(history), swebench_row(history, instance_id="other")]
    parquet.write_table(pa.Table.from_pylist(rows), folder / "train-00000-of-00001.parquet")
    (tmp_path / "dataset_info.json").write_text("{}")
    found = read("swebench", tmp_path)
    assert [task.place for task in found] == [f"data/train-00000-of-00001.parquet row {n}" for n in (1, 2)]
    (tmp_path / "broken.parquet").write_text("no Parquet")
    with pytest.raises(ConfigError, match="cannot be read as Parquet"):
        read("swebench", tmp_path / "broken.parquet")


@pytest.mark.parametrize(
    ("changes", "field", "advice"),
    [
        ({"patch": None}, "patch", "is missing"),
        ({"patch": " "}, "patch", "is empty"),
        ({"base_commit": "main"}, "base_commit", "7 to 40 hexadecimal digits"),
        ({"repo": "../../etc"}, "repo", "not owner/name"),
        ({"instance_id": "../x"}, "instance_id", "use letters, digits"),
        ({"FAIL_TO_PASS": "[1"}, "FAIL_TO_PASS", "not a JSON list"),
        ({"FAIL_TO_PASS": 3}, "FAIL_TO_PASS", "is a number, not a list"),
        ({"problem_statement": ["x"]}, "problem_statement", "is a list, not a text"),
    ],
)
def test_a_bad_row_names_its_line_and_its_field(
    history: History, tmp_path: Path, changes: dict[str, object], field: str, advice: str
) -> None:
    rows = [swebench_row(history, instance_id="good"), swebench_row(history) | changes]
    good, bad = read("swebench", write_jsonl(tmp_path / "set.jsonl", rows))
    assert isinstance(good, ForeignTask)
    assert isinstance(bad, BadRow)
    assert (bad.place, bad.field) == ("set.jsonl line 2", field)
    assert advice in bad.problem


def test_lines_that_are_no_rows(history: History, tmp_path: Path) -> None:
    found = read("swebench", write_jsonl(tmp_path / "set.jsonl", ["{", swebench_row(history), swebench_row(history)]))
    assert [type(row) for row in found] == [BadRow, ForeignTask, BadRow]
    assert "was at set.jsonl line 2 already" in found[2].problem  # type: ignore[union-attr]
    for path, message in ((tmp_path / "missing.jsonl", "does not exist"), (tmp_path / "a.csv", "only .parquet")):
        if path.suffix == ".csv":
            path.touch()
        with pytest.raises(ConfigError, match=message):
            read("swebench", path)


def test_swe_smith_patches_make_the_bug(history: History, tmp_path: Path) -> None:
    row = swe_smith_row(history)
    task = only_task("swe-smith", write_jsonl(tmp_path / "smith.jsonl", [row]))
    assert (task.patch, task.bug_patch) == ("", row["patch"])
    assert (task.repo, task.commit) == (PROJECT, history.commits[2][:8])
    assert task.urls[1].endswith(f"swesmith/planes__shapes.{history.commits[2][:8]}"), "the mirror, if all else fails"
    (bad,) = read("swe-smith", write_jsonl(tmp_path / "bench.jsonl", [swebench_row(history)]))
    assert isinstance(bad, BadRow)
    assert bad.field == "repo"


def test_r2e_gym_patches_are_put_together_again(history: History, tmp_path: Path) -> None:
    task = only_task("r2e-gym", write_jsonl(tmp_path / "r2e.jsonl", [r2e_row(history)]))
    assert touched(task.patch) == ("src/shapes/round.py",), "tests of the commit are no part of the gold patch"
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "--quiet", str(history.folder / PROJECT), str(checkout))
    git(checkout, "checkout", "--quiet", task.commit)
    subprocess.run(["git", "apply", "-"], cwd=checkout, input=task.patch, text=True, check=True)
    assert git(checkout, "diff", history.commits[1], "--", "src") == ""
    assert [path for path, _ in task.test_files] == [f"{R2E_TESTS}/test_1.py"]
    assert (task.fail_to_pass, dict(task.expected)) == (None, {"test_order": "PASSED", "test_equal": "PASSED"})
    (bad,) = read("r2e-gym", write_jsonl(tmp_path / "bad.jsonl", [r2e_row(history, parsed_commit_content='{"a": 1}')]))
    assert isinstance(bad, BadRow)
    assert bad.field == "parsed_commit_content"


def test_swe_rebench_says_how_it_installs(history: History, tmp_path: Path) -> None:
    config = {"python": "3.9", "pip_packages": ["pytest", "-e .[dev]"], "test_cmd": ["pytest -rA"]}
    row = swebench_row(history, install_config=config, created_at=1609298073000, meta={"llm_metadata": []})
    task = only_task("swe-rebench", write_jsonl(tmp_path / "set.jsonl", [row]))
    assert (task.python, task.requirements) == ("3.9", ("pytest",))


def test_harbor_tasks_of_adapters(history: History, tmp_path: Path) -> None:
    harbor_task(tmp_path / "set" / "planes__shapes-1", history)
    task = only_task("harbor", tmp_path / "set")
    assert (task.instance_id, task.place, task.repo) == ("planes__shapes-1", "planes__shapes-1", PROJECT)
    assert task.patch == swebench_row(history)["patch"]
    assert task.fail_to_pass == (RING,)


def test_harbor_tasks_without_a_row(history: History, tmp_path: Path) -> None:
    folder = harbor_task(tmp_path / "set" / "mend", history)
    (folder / "tests/config.json").unlink()
    (folder / "tests/test_ring.py").write_text("def test_ring():\n    assert True\n")
    only_image = only_task("harbor", tmp_path / "set")
    assert (only_image.urls, only_image.commit) == ((), ""), "only an image has the sources"
    (folder / "environment/Dockerfile").write_text(
        f"FROM python:3.12\nRUN git clone --depth 1 https://example.org/{PROJECT}.git /testbed && \\\n"
        f"    cd /testbed && git checkout {history.commits[0]}\n"
    )
    task = only_task("harbor", tmp_path / "set")
    assert (task.urls, task.commit) == ((f"https://example.org/{PROJECT}",), history.commits[0])
    assert task.patch == swebench_row(history)["patch"], "from the script that solves it"
    assert [path for path, _ in task.test_files] == [f"{HARBOR_TESTS}/test_ring.py"]
    (folder / "instruction.md").write_text("\n")
    (bad,) = read("harbor", tmp_path / "set")
    assert isinstance(bad, BadRow)
    assert bad.field == "instruction.md"
    with pytest.raises(ConfigError, match=r"holds no task\.toml"):
        read("harbor", tmp_path / "set" / "mend" / "tests")


def test_ids_of_tests_in_other_spellings() -> None:
    known = ["tests/test_a.py::test_b[x y]", "tests/test_a.py::test_b[x z]", "tests/test_c.py::C::test_d"]
    found, unknown = match_tests(
        ["tests/test_a.py::test_b[x%20y]", "test_d (tests.test_c.C)", "tests/test_c.py::gone"], known
    )
    assert (found, unknown) == ((known[0], known[2]), ["tests/test_c.py::gone"])
    assert match_tests(["tests/test_a.py::test_b[x"], known) == ((known[0], known[1]), [])
