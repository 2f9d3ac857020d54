"""Tasks from projects of every test runner, from ECMAScript modules and from TypeScript; no forgery earns a reward."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.taskset import TaskSet

from ..javascript_projects import RUNNERS, project

SETTINGS = "workers = 1\n[verdict]\ngold_runs = 2\nstarved_runs = 0\nmin_passing = 5\n"
GENERAL = ("node-exit", "node-assert-nothing", "node-flip-below-fs", "node-flip-where-called", "node-report-forged",
           "node-package-json")  # fmt: skip
OWN = {
    "node-esm": ("node-load-replaced",),
    "node-ts": ("node-tsconfig",),
    "tape": ("node-tape-assert",),
    "mocha": ("node-mocha-runnable", "node-chai-passes", "node-mocharc"),
    "mocha-esm": ("node-mocha-events",),
    "jest": ("node-expect-passes", "node-circus-errors", "node-jest-config"),
    "jest-ts": ("node-expect-passes-where-called", "node-tsconfig"),
    "vitest": ("node-expect-passes", "node-vitest-results", "node-vitest-config"),
}
"""Attacks on each test runner; ``excise attack`` runs all on any."""


@pytest.fixture(scope="module", params=sorted(RUNNERS))
def ferries(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A kind of project, and the folder with its files."""
    root = tmp_path_factory.mktemp(request.param) / "ferries"
    for path, text in project(request.param).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return request.param, root


@pytest.mark.slow
def test_each_test_runner_gives_tasks_that_no_attack_solves(
    ferries: tuple[str, Path], excise: Callable[..., Any]
) -> None:
    kind, root = ferries
    work = root.parent
    (work / "excise.toml").write_text(SETTINGS)
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
