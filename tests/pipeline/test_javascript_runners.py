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
    "tap": (
        "node-tap-fail", "node-tap-results", "node-weak-map", "node-blocks-kept", "node-failure-inherited",
        "node-load-replaced",
    ),
    "mocha-esm": ("node-mocha-events", "node-mocha-runnable", "node-mocharc", "node-load-replaced"),
    "jest": ("node-expect-passes", "node-circus-errors", "node-jest-config"),
    "vitest": ("node-expect-passes", "node-vitest-results", "node-vitest-config", "node-tsconfig"),
}  # fmt: skip
"""Kinds of projects to attacks on their test runners; ``excise attack`` runs all on any."""


def written(kind: str, folder: Path) -> Path:
    """The folder of a project of a kind, with its settings beside it."""
    root = folder / "ferries"
    for path, text in project(kind).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (folder / "excise.toml").write_text(SETTINGS)
    return root


@pytest.fixture
def cache(shared: Path) -> Path:
    """One cache for all kinds: packages that several have are installed and read once."""
    return shared / "javascript-runners"


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(RUNNERS.keys() - OWN.keys()))
def test_the_tests_of_each_kind_of_project_run(
    kind: str, excise: Callable[..., Any], cache: Path, tmp_path: Path
) -> None:
    options = ("--cache", cache, "--config", tmp_path / "excise.toml", "--json")
    done = excise("env", written(kind, tmp_path), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads(done.stdout)
    assert (made["tests"]["passed"], made["pass_rate"]) == (len(made["baseline"]["statuses"]), 1.0)
    assert len(made["baseline"]["statuses"]) >= 5
    assert len({test.rpartition("::")[0] for test in made["baseline"]["statuses"]}) >= 3, "suites are parts of ids"


TITLES = ("adds", "a # b", "a \\\\# b", "  two  ", "x {", "1 - one", "x\\ny", "")
"""Names of tests that tap writes in another form."""
BY_NAMES = """\
const {{ test }} = require('tap')
for (const [n, title] of {titles}.entries()) {{
  for (const [own, inner] of [[1, 2], [2, 1], [2, 2]]) {{
    test(`${{n}} ${{own}} ${{inner}}`, (t) => {{
      t.test(title, (t) => {{
        t.equal(inner, 1)
        t.end()
      }})
      t.equal(own, 1, title)
      t.end()
    }})
  }}
}}
"""
OUTSIDE = {
    "passes": ("const t = require('tap')\nt.same(1, 1)\nt.test('x', (t) => { t.equal(2, 1); t.end() })\n", "PASSED"),
    "fails": ("const t = require('tap')\nt.same(1, 2)\nt.test('x', (t) => { t.equal(1, 1); t.end() })\n", "FAILED"),
    "skips": ("const t = require('tap')\nt.same(1, 2, { todo: true })\n", "PASSED"),
    "plan": ("const t = require('tap')\nt.plan(2)\nt.same(1, 1)\n", "FAILED"),
    "ends": ("const t = require('tap')\nt.same(1, 1)\nprocess.exit(0)\nt.same(1, 2)\n", None),
    "none": ("const t = require('tap')\nt.test('x', (t) => { t.equal(2, 1); t.end() })\nt.skip('y', () => {})\n", None),
}
"""Files that assert something outside of their tests, and how the test of that ends."""


@pytest.mark.slow
def test_a_test_of_tap_fails_by_its_own_assertions_alone(
    excise: Callable[..., Any], cache: Path, tmp_path: Path
) -> None:
    """Whatever the tests inside it, or its assertions, are called."""
    root = written("tap", tmp_path)
    titles = "[" + ", ".join(f"'{title}'" for title in TITLES) + "]"
    (root / "test/names.test.js").write_text(BY_NAMES.format(titles=titles))
    for name, (text, _) in OUTSIDE.items():
        (root / f"test/{name}.test.js").write_text(text)
    (tmp_path / "excise.toml").write_text(f"{SETTINGS}min_pass_rate = 0\n")
    done = excise("env", root, "--cache", cache, "--config", tmp_path / "excise.toml", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    statuses = json.loads(done.stdout)["baseline"]["statuses"]
    found = {test.partition("::")[2]: status for test, status in statuses.items() if "names.test.js" in test}
    outer = {title: status for title, status in found.items() if "::" not in title}
    assert outer == {
        f"{n} {own} {inner}": "PASSED" if own == 1 else "FAILED"
        for n in range(len(TITLES))
        for own, inner in ((1, 2), (2, 1), (2, 2))
    }
    files = {test.partition(".")[0]: status for test, status in statuses.items() if test.endswith("::(file)")}
    assert files == {f"test/{name}": status for name, (_, status) in OUTSIDE.items() if status is not None}


@pytest.mark.slow
def test_a_configuration_of_vitest_may_be_a_module(excise: Callable[..., Any], cache: Path, tmp_path: Path) -> None:
    """vite makes one file of it, which needs a place that is neither an installed package nor read-only."""
    root = written("vitest", tmp_path)
    (root / "vitest.config.mts").write_text(
        "import { defineConfig } from 'vitest/config'\nexport default defineConfig({ test: { globals: true } })\n"
    )
    done = excise("env", root, "--cache", cache, "--config", tmp_path / "excise.toml", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["pass_rate"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(OWN))
def test_each_test_runner_gives_tasks_that_no_attack_solves(
    kind: str, excise: Callable[..., Any], cache: Path, tmp_path: Path
) -> None:
    work, root = tmp_path, written(kind, tmp_path)
    options = ("--cache", cache, "--config", work / "excise.toml", "--workers", "1", "--json")
    made = excise("generate", root, "--out", work / "out", "--limit", "1", *options)
    assert made.returncode == 0, made.stderr
    (task,) = TaskSet.open(work / "out").tasks()
    assert all(test.count("::") == 2 for test in task.fail_to_pass)
    only = [word for name in (*GENERAL, *OWN[kind]) for word in ("--only", name)]
    done = excise("attack", "--out", work / "out", task.instance_id, *only, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert (result["ok"], result["honest_passed"]) == (True, 1)
