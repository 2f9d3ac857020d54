"""``excise import``: other tools' tasks become tasks of a set, and what cannot be run says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.config import Settings
from excise.datasets.imports.registry import importer
from excise.datasets.queries.catalogue import query
from excise.datasets.queries.imports import ImportRow
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError
from excise.pipeline.services.foreign_attacks import attack_graders
from excise.pipeline.services.foreign_sources import fetch_solved
from excise.pipeline.services.import_run import ImportOptions, import_set
from excise.pipeline.services.task_grader import Grader, GradingEnvironment
from excise.pipeline.services.verify import verify_tasks
from excise.types import IMPORTED, ForeignTask
from excise.verifiers.attacks.all_attacks import attacks_of

from ..foreign_sets import (
    KEPT,
    RING,
    History,
    harbor_task,
    make_history,
    r2e_row,
    swe_smith_row,
    swebench_row,
    write_jsonl,
)

OUTSIDE = (
    "diff --git a/../evil.py b/../evil.py\nnew file mode 100644\n--- /dev/null\n+++ b/../evil.py\n@@ -0,0 +1 @@\n+x\n"
)
LINK = "diff --git a/src/l b/src/l\nnew file mode 120000\n--- /dev/null\n+++ b/src/l\n@@ -0,0 +1 @@\n+/etc/passwd\n"
ELSEWHERE = (
    "diff --git a/src/shapes/round.py b/src/shapes/round.py\n--- a/src/shapes/round.py\n+++ b/src/shapes/round.py\n"
    "@@ -1,2 +1,2 @@\n-no such line\n+x = 1\n no such line\n"
)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return make_history(tmp_path_factory.mktemp("repos"))


@pytest.fixture(scope="module")
def settings(shapes_run: Any, prepared: Any, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with a new set, and the cache in which the environment of ``shapes`` is."""
    changes = {"out": tmp_path_factory.mktemp("imported") / "set", "workers": 1}
    found: Settings = shapes_run.settings.model_copy(update=changes)
    return found


@pytest.fixture(scope="module")
def imported(settings: Settings, history: History, tmp_path_factory: pytest.TempPathFactory) -> dict[str, ImportRow]:
    """The report on one good task and on bad ones, by id."""
    gone = "tests/test_round.py::test_gone"
    rows = [
        swebench_row(history),
        swebench_row(history, instance_id="unknown-test", FAIL_TO_PASS=[RING, gone]),
        swebench_row(history, instance_id="passes-anyway", FAIL_TO_PASS=[RING, KEPT[0]], PASS_TO_PASS=[]),
        swebench_row(history, instance_id="wrong-commit", base_commit="0" * 40),
        swebench_row(history, instance_id="outside", patch=OUTSIDE),
        swebench_row(history, instance_id="other-language", language="Go"),
        swebench_row(history, instance_id="elsewhere", repo="planes/cubes"),
        "{no row",
    ]
    path = write_jsonl(tmp_path_factory.mktemp("foreign") / "bench.jsonl", rows)
    seen: list[ImportRow] = []
    options = ImportOptions(format="swebench", path=path, repos=history.folder, attacks=0)
    result = import_set(settings, options, seen.append)
    assert result.counts == {"imported": 1, "refused": 2, "not_run": 4, "bad_row": 1}
    assert "| planes__shapes-1 | imported | 1 of 1 | 2 of 3 | history |" in result.report.read_text()
    return {row.instance_id: row for row in seen}


@pytest.mark.slow
def test_a_task_is_imported_with_its_claims_checked(settings: Settings, imported: dict[str, ImportRow]) -> None:
    row = imported["planes__shapes-1"]
    assert (row.num_f2p, row.num_f2p_confirmed, row.num_p2p, row.num_p2p_confirmed) == (1, 1, 3, 2)
    assert (row.unconfirmed, row.unconfirmed_examples) == ({"not_collected": 1}, (KEPT[2],))
    assert "after the task's commit" in row.history, "images with the whole history hold the solution"
    assert {row.checks[gate] for gate in ("g5_f2p_fail", "g7_gold", "g8_empty", "g9_leaks", "g11_recovery")} == {
        "passed"
    }
    taskset = TaskSet.open(settings.out)
    task = taskset.task("planes__shapes-1")
    assert (task.deleter, task.removed) == (IMPORTED, ("src/shapes/round.py::ring_area",))
    assert (task.fail_to_pass, task.pass_to_pass) == ((RING,), KEPT[:2])
    assert taskset.kit(task.instance_id) is not None
    found = json.loads(query(settings.out, "SELECT status, count(*) n FROM imports GROUP BY ALL ORDER BY ALL", "json"))
    assert found == [
        {"status": s, "n": n} for s, n in (("bad_row", 1), ("imported", 1), ("not_run", 4), ("refused", 2))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instance_id", "reason", "named"),
    [
        ("unknown-test", "tests_not_found", "test_gone"),
        ("passes-anyway", "passes_without_feature", "test_area"),
        ("wrong-commit", "no_such_revision", "000000"),
        ("outside", "unsafe_path", "../evil.py"),
        ("other-language", "unsupported_language", "go"),
        ("elsewhere", "no_local_repository", "planes/cubes"),
        ("", "bad_row", "{no row"),
    ],
)
def test_what_cannot_be_a_task_says_why(
    imported: dict[str, ImportRow], instance_id: str, reason: str, named: str
) -> None:
    row = imported[instance_id]
    assert row.reason == reason
    assert named in row.detail


@pytest.mark.slow
def test_an_imported_task_is_proven_again_and_graded(settings: Settings, imported: dict[str, ImportRow]) -> None:
    taskset = TaskSet.open(settings.out)
    (result,) = verify_tasks(settings, taskset, ["planes__shapes-1"], lambda _: None)
    assert result.ok, result
    grader = Grader(taskset, settings)
    task = taskset.task("planes__shapes-1")
    assert grader.grade(task.instance_id, task.patch).reward == 1.0
    assert grader.grade(task.instance_id, "").reward == 0.0
    environment = grader.environment_of(task)
    assert isinstance(environment, GradingEnvironment)
    chosen = [attacks_of("python")["import-rewrite-asserts"]]
    attacked = attack_graders(environment.bench, task, taskset.kit(task.instance_id), 1, chosen)
    assert (attacked.num_tried, attacked.wrong, attacked.by_excise) == (1, (), ())
    assert attacked.by_log == (chosen[0].name,), "a grader that reads the log is deceived"


@pytest.mark.slow
def test_what_is_done_is_not_done_again(
    settings: Settings, history: History, tmp_path: Path, imported: dict[str, ImportRow]
) -> None:
    second = swebench_row(history, instance_id="again")
    path = write_jsonl(tmp_path / "kept.jsonl", [swebench_row(history, instance_id="first"), second])
    options = ImportOptions(format="swebench", path=path, repos=history.folder, attacks=0)
    seen: list[str] = []

    def stop_after_one(row: ImportRow) -> None:
        seen.append(row.instance_id)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_set(settings, options, stop_after_one)
    assert "first" in TaskSet.open(settings.out).ids()
    result = import_set(settings, options, lambda row: seen.append(row.instance_id))
    assert (result.counts, seen) == ({"done_before": 1, "imported": 1}, ["first", "again"])
    assert {"first", "again", "planes__shapes-1"} <= set(TaskSet.open(settings.out).ids())


Rows = Callable[[History, Path], Path]


def smith(history: History, folder: Path) -> Path:
    return write_jsonl(folder / "smith.jsonl", [swe_smith_row(history)])


def r2e(history: History, folder: Path) -> Path:
    return write_jsonl(folder / "r2e.jsonl", [r2e_row(history)])


def harbor(history: History, folder: Path) -> Path:
    return harbor_task(folder / "set" / "mend", history, instance_id="mend").parent


@pytest.mark.parametrize(
    ("name", "write", "shown", "changed"),
    [
        ("swe-smith", smith, "turns = 3", {"src/shapes/round.py"}),
        ("r2e-gym", r2e, "_disc(outer)", {"src/shapes/round.py", "r2e_tests/test_1.py"}),
        ("harbor", harbor, "_disc(outer)", {"src/shapes/round.py", "tests/test_round.py"}),
    ],
)
def test_the_agent_gets_the_unsolved_tree(
    settings: Settings, history: History, tmp_path: Path, name: str, write: Rows, shown: str, changed: set[str]
) -> None:
    (task,) = importer(name).read(write(history, tmp_path))
    assert isinstance(task, ForeignTask)
    solved = fetch_solved(settings, task, history.folder)
    path = "src/shapes/round.py"
    assert set(solved.shipped) == changed
    assert shown in (solved.shipped[path] or b"").decode()
    assert shown not in (Path(solved.sources.layer) / path).read_text(), "the layer is the solved tree"
    assert solved.test_paths == changed - {path}


@pytest.mark.slow
def test_the_sets_of_other_formats_are_run(settings: Settings, history: History, tmp_path: Path) -> None:
    for name, write, instance_id in (("swe-smith", smith, ""), ("r2e-gym", r2e, "planes__shapes-")):
        seen: list[ImportRow] = []
        path = write(history, tmp_path)
        import_set(settings, ImportOptions(format=name, path=path, repos=history.folder, attacks=0), seen.append)
        (row,) = seen
        assert (row.status, row.num_f2p_confirmed) == ("imported", 1), row
        assert row.instance_id.startswith(instance_id)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"patch": OUTSIDE}, "unsafe_path"),
        ({"test_patch": OUTSIDE.replace("../", ".git/hooks/")}, "unsafe_path"),
        ({"patch": LINK}, "not_a_regular_file"),
        ({"patch": ELSEWHERE}, "patch_does_not_apply"),
        ({"patch": "@@ no diff\n"}, "patch_does_not_apply"),
        ({"commit": "f" * 40}, "no_such_revision"),
        ({"urls": ()}, "no_repository"),
        ({"patch": ""}, "no_gold_patch"),
        ({"test_files": (("../x.py", ""),)}, "unsafe_path"),
    ],
)
def test_hostile_and_wrong_patches(
    settings: Settings, history: History, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    (task,) = importer("swebench").read(write_jsonl(tmp_path / "set.jsonl", [swebench_row(history)]))
    assert isinstance(task, ForeignTask)
    with pytest.raises(ExciseError) as caught:
        fetch_solved(settings, replace(task, **changes), history.folder)
    assert caught.value.reason == reason
    assert not list(settings.cache.rglob("evil.py"))


def test_the_command(excise: Any, history: History, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "set.jsonl", [swebench_row(history, patch=LINK), "{"])
    options = ["--repos", history.folder, "--out", tmp_path / "out", "--attacks", "0"]
    done = excise("import", "swebench", path, *options)
    assert done.returncode == 1, done.stderr
    assert "planes__shapes-1 (set.jsonl line 1): not run, not_a_regular_file" in done.stdout
    assert "set.jsonl line 2: bad row" in done.stdout
    assert excise("import", "xml", path, *options).returncode == 2
    assert excise("import", "swebench", tmp_path / "none.jsonl", *options).returncode == 2
