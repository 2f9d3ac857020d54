"""Tasks in JavaScript: made, proved again, graded; no forgery earns a reward."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.taskset import TaskSet
from excise.pipeline.services.attack_suite import HONEST, AttackResult, attack_tasks, summary
from excise.pipeline.services.task_grader import Grader
from excise.pipeline.stages.environment_stage import open_workbench
from excise.types import Visibility, path_of
from excise.verifiers.agent_workspace import workspace
from excise.verifiers.attacks.all_attacks import attacks_of
from excise.verifiers.recovery.recover import scored
from excise.verifiers.recovery.recovery_attempt import StrategyOptions, run_strategies
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Prepared

CHOSEN = (
    "node-exit", "node-printed-tap", "node-assert-nothing", "node-flip-below-fs", "node-flip-where-called",
    "node-report-forged", "node-proxy-answers", "node-node-modules-beside-tests", "node-package-json",
    "node-hidden-tests-replaced", "node-invert-where-called", "node-assert-restored", "node-assert-replaced-once",
    "node-operand-beside-the-call", "node-literals-of-the-test", "node-reporter-replaced", "node-primordials-replaced",
)  # fmt: skip
"""Some of every kind; `excise attack` runs all."""


@pytest.fixture(scope="module")
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


def test_tests_are_lifted_and_another_implementation_wins(parcels: Any) -> None:
    tasks = list(parcels.taskset.tasks())
    assert {parcels.taskset.lifted_share(task.instance_id) for task in tasks} == {1.0}
    assert parcels.taskset.tamper_proof() == {task.instance_id for task in tasks}
    task = next(each for each in tasks if each.removed == ("lib/postage.js::postage",))
    other = task.patch.replace("Math.round(base * factor)", "Math.round(factor * base)")
    other = other.replace("unknown zone: ${zone}`", "unknown zone: ${zone} (there is none)`")
    assert other != task.patch
    grade = Grader(parcels.taskset, parcels.settings).grade(task.instance_id, other)
    assert (grade.reward, grade.num_lifted, grade.num_mirrored) == (1.0, len(task.fail_to_pass), 0), grade.reasons


def test_reports_that_are_changed_below_fs_are_told_by_values(results: list[AttackResult]) -> None:
    reasons = {result.name: set(result.reasons) for result in results}
    assert "canary_passed" in reasons["node-flip-below-fs"]
    assert "lifted_differ" in reasons["node-flip-where-called"]
    assert "lifted_differ" in reasons["node-operand-beside-the-call"]
    assert "canary_passed" in reasons["node-invert-where-called"]
    assert "runner_changed" in reasons["node-assert-restored"]
    assert "runner_changed" in reasons["node-assert-replaced-once"]


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
        "--config", settings, "--limit", "1", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (task,) = TaskSet.open(tmp_path / "out").tasks()
    assert (task.repo, task.language) == ("secure-json-parse", "javascript")
    assert (task.deleter, task.visibility) == ("stub", Visibility.SAMPLE_TESTS), (
        "one example would stand for all its tests"
    )


def test_copies_of_the_code_are_recovered(parcels: Any, prepared_parcels: Prepared) -> None:
    bench = open_workbench(parcels.settings, prepared_parcels)
    task = next(iter(parcels.taskset.tasks()))
    candidate = candidate_of(bench, task)
    text = (bench.root / path_of(task.removed[0])).read_text()
    source_map = json.dumps({"version": 3, "sources": ["a.js"], "sourcesContent": [text], "mappings": ""})
    for name, planted in (("node_modules/parcels/index.js", text), ("b.js.map", source_map)):
        encoded = base64.b64encode(planted.encode()).decode()
        file = f"/home/agent/{name}"
        prefix = f"mkdir -p $(dirname {file}); echo {encoded} | base64 -d > {file}"
        options = StrategyOptions(distribution="parcels", only=["script_copies"], shell_prefix=prefix)
        with workspace(bench, candidate.edits("shipped")) as place, place.open() as session:
            found = scored(candidate, run_strategies(session, task.removed, options))
        assert found.succeeded, found
        assert found.total.level == "L4"
