"""Tasks in JavaScript: made, proved again, graded; no forgery earns a reward."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from excise.pipeline.services.attack_suite import HONEST, AttackResult, attack_tasks, summary
from excise.types import SourceSpec
from excise.verifiers.attacks.all_attacks import attacks_of

CHOSEN = (
    "node-exit", "node-printed-tap", "node-assert-nothing", "node-flip-below-fs", "node-flip-where-called",
    "node-report-forged", "node-proxy-answers", "node-node-modules-beside-tests", "node-package-json",
    "node-hidden-tests-replaced",
)  # fmt: skip
"""Some of every kind; `excise attack` runs all."""


@pytest.fixture(scope="session")
def results(parcels: Any) -> list[AttackResult]:
    task = next(t for t in parcels.taskset.tasks() if len(t.fail_to_pass) > 1)
    return attack_tasks(parcels.settings, parcels.taskset, [task.instance_id], CHOSEN, lambda line: None)


def test_tasks_are_made(parcels: Any) -> None:
    tasks = list(parcels.taskset.tasks())
    assert len(tasks) == 3
    assert {task.language for task in tasks} == {"javascript"}
    assert all("```js" in task.problem_statement for task in tasks)


def test_a_task_can_be_proved_again(parcels: Any, excise: Callable[..., Any], tmp_path: Path) -> None:
    task = next(iter(parcels.taskset.tasks()))
    done = excise("verify", "--out", parcels.out, "--work", tmp_path, "--config", parcels.config, task.instance_id)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_attack_succeeds_and_honest_solutions_pass(results: list[AttackResult]) -> None:
    total = summary(results)
    assert total["ok"], [r for r in results if (r.reward == 1 and r.vector != HONEST) or not r.decided]
    assert (total["attacks"], total["honest_passed"], total["noop_passed"], total["stub_passed"]) == (
        len(CHOSEN),
        1,
        0,
        0,
    )


def test_reports_that_are_changed_below_fs_are_told_by_wrong_expectations(results: list[AttackResult]) -> None:
    reasons = {result.name: set(result.reasons) for result in results}
    assert "canary_passed" in reasons["node-flip-below-fs"]
    assert "mirror_passed" in reasons["node-flip-where-called"]


def test_there_are_attacks_of_every_kind() -> None:
    found = attacks_of("javascript")
    assert len(found) >= 25
    assert {attack.vector for attack in found.values()} >= {"exit", "stdout", "runner", "forgery", "answers", "files"}


@pytest.mark.slow
def test_a_real_project_of_the_registry_gives_a_task(excise: Callable[..., Any], tmp_path: Path) -> None:
    settings = tmp_path / "excise.toml"
    settings.write_text("workers = 1\n[verdict]\ngold_runs = 2\nstarved_runs = 0\n")
    done = excise(
        "generate", "npm:secure-json-parse@4.1.1", "--out", tmp_path / "out", "--cache", tmp_path / "cache",
        "--config", settings, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["num_tasks"] == 1
    assert SourceSpec(spec="npm:secure-json-parse@4.1.1").name in done.stdout


def test_copies_of_the_code_are_recovered(parcels: Any, prepared_parcels: Prepared) -> None:
    bench = open_workbench(parcels.settings, prepared_parcels)
    task = next(iter(parcels.taskset.tasks()))
    path = task.removed[0].partition("::")[0]
    text = (bench.root / path).read_text()
    planted = json.dumps({"/tmp/x/node_modules/parcels/index.js": text, "/tmp/b.js.map": source_map(text)})
    code = f"import json, os\nfor path, text in json.loads({planted!r}).items():\n    os.makedirs(os.path.dirname(path), "
    code += "exist_ok=True)\n    open(path, 'w').write(text)"

    def plant(session: Any) -> None:
        assert session.exec(["/opt/env/bin/python", "-c", code], timeout_s=30).rc == 0

    found = recover(candidate_of(bench, task), before=plant)
    assert "script_copies" in found.by_strategy
    assert found.succeeded
    clean = recover(candidate_of(bench, task))
    assert not clean.succeeded


def source_map(text: str) -> str:
    return json.dumps({"version": 3, "sources": ["a.js"], "sourcesContent": [text], "mappings": ""})
