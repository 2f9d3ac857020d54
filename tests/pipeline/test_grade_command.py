"""``excise grade`` and ``excise attack`` from the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def task(shapes: Any) -> Any:
    return next(t for t in shapes.taskset.tasks() if "src/shapes/walk.py" in t.removed)


def options(shapes: Any) -> list[Any]:
    return ["--out", shapes.out, "--cache", shapes.cache, "--config", shapes.config]


def test_a_diff_is_graded(excise: Run, shapes: Any, task: Any, tmp_path: Path) -> None:
    diff = tmp_path / "solution.diff"
    diff.write_text(task.patch)
    good = excise("grade", task.instance_id, "--diff", diff, "--json", *options(shapes))
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["reward"] == 1.0
    piped = excise("grade", task.instance_id, "--diff", "-", *options(shapes), input="")
    assert piped.returncode == 1, piped.stderr
    assert "reward 0 (tests 0, calls 0)" in piped.stdout


@pytest.mark.parametrize(("name", "code"), [("gold", 0), ("noop", 1)])
def test_known_solutions(excise: Run, shapes: Any, task: Any, name: str, code: int) -> None:
    done = excise("grade", task.instance_id, "--solution", name, *options(shapes))
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("arguments", [["nothing__0", "--solution", "gold"], ["{id}"], ["{id}", "--solution", "best"]])
def test_wrong_usage(excise: Run, shapes: Any, task: Any, arguments: list[str]) -> None:
    given = [argument.format(id=task.instance_id) for argument in arguments]
    assert excise("grade", *given, *options(shapes)).returncode == 2


def test_attacks_are_counted(excise: Run, shapes: Any, task: Any) -> None:
    done = excise("attack", task.instance_id, "--only", "import-os-exit", "--json", *options(shapes))
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert (body["tried"], body["succeeded"], body["honest_passed"], body["noop_passed"]) == (1, 0, 1, 0)
    assert {row["name"] for row in body["results"]} == {"gold", "noop", "stub", "import-os-exit"}


def test_an_unknown_attack_is_wrong_usage(excise: Run, shapes: Any, task: Any) -> None:
    done = excise("attack", task.instance_id, "--only", "import-os-exot", *options(shapes))
    assert done.returncode == 2
    assert "import-os-exit" in done.stderr
