"""Tasks from projects of three test runners, from ECMAScript modules and from TypeScript; no forgery earns a reward.

A whole chain takes a minute or more; of the other kinds of projects only the environment is made and the tests are run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.taskset import TaskSet

from ..javascript_projects import RUNNERS, project

SETTINGS = "workers = 1\n[verdict]\ngold_runs = 2\nstarved_runs = 0\nmin_passing = 5\n"
GENERAL = ("node-flip-where-called",)
"""Attacks on each; ``test_javascript_tasks.py`` tries more on one of them."""
OWN = {
    "tap": ("node-tap-fail", "node-tap-results", "node-weak-map", "node-load-replaced"),
    "mocha-esm": ("node-mocha-events", "node-mocha-runnable", "node-mocharc", "node-load-replaced"),
    "jest": ("node-expect-passes", "node-circus-errors", "node-jest-config"),
    "vitest": ("node-expect-passes", "node-vitest-results", "node-vitest-config", "node-tsconfig"),
}
"""Kinds of projects to attacks on their test runners; ``excise attack`` runs all on any."""


def written(kind: str, folder: Path) -> Path:
    """The folder of a project of a kind, with its settings beside it."""
    root = folder / "ferries"
    for path, text in project(kind).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (folder / "excise.toml").write_text(SETTINGS)
    return root


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(RUNNERS.keys() - OWN.keys()))
def test_the_tests_of_each_kind_of_project_run(kind: str, excise: Callable[..., Any], tmp_path: Path) -> None:
    options = ("--cache", tmp_path / "cache", "--config", tmp_path / "excise.toml", "--json")
    done = excise("env", written(kind, tmp_path), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads(done.stdout)
    assert (made["tests"]["passed"], made["pass_rate"]) == (len(made["baseline"]["statuses"]), 1.0)
    assert len(made["baseline"]["statuses"]) >= 5
    assert len({test.rpartition("::")[0] for test in made["baseline"]["statuses"]}) >= 3, "suites are parts of ids"


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(OWN))
def test_each_test_runner_gives_tasks_that_no_attack_solves(
    kind: str, excise: Callable[..., Any], tmp_path: Path
) -> None:
    work, root = tmp_path, written(kind, tmp_path)
    options = ("--cache", work / "cache", "--config", work / "excise.toml", "--workers", "1", "--json")
    made = excise("generate", root, "--out", work / "out", "--limit", "1", *options)
    assert made.returncode == 0, made.stderr
    (task,) = TaskSet.open(work / "out").tasks()
    assert all(test.count("::") == 2 for test in task.fail_to_pass)
    only = [word for name in (*GENERAL, *OWN[kind]) for word in ("--only", name)]
    done = excise("attack", "--out", work / "out", task.instance_id, *only, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert (result["ok"], result["honest_passed"]) == (True, 1)
