"""Attacks on a real run: each gets reward 0 from the grader and beats a weak grader. `excise attack` runs them all."""

from __future__ import annotations

from typing import Any

import pytest

from excise.pipeline.services.attack_suite import HONEST, AttackResult, attack_tasks, stub_of, summary
from excise.types import Task
from excise.verifiers.attacks.all_attacks import attacks_of
from excise.verifiers.attacks.attack import AttackTarget, attack_target
from excise.verifiers.workbench import Workbench

from . import weak_graders

ATTACKS = attacks_of("python")
CHOSEN = (
    "conftest-in-tests-pyfunc-call", "pyproject-plugin", "tests-always-true", "shadow-pytest", "pyc-unchecked-hash",
    "import-os-exit", "import-makereport-registered", "import-rewrite-asserts", "import-forge-messages-request",
    "answer-message-on-call", "answer-always-equal", "answer-peek-source", "answer-skip", "import-reward-file",
    "answer-steal-memory", "answer-forge-any-by-state",
)  # fmt: skip
"""One or two attacks of each vector, so that the test stays short."""


@pytest.fixture(scope="module")
def task(shapes: Any) -> Task:
    return next(t for t in shapes.taskset.tasks() if "src/shapes/walk.py" in t.removed)


@pytest.fixture(scope="module")
def target(bench: Workbench, task: Task) -> AttackTarget:
    return attack_target(bench, task)


@pytest.fixture(scope="module")
def results(shapes: Any, task: Task) -> list[AttackResult]:
    settings = shapes.settings
    return attack_tasks(settings, shapes.taskset, [task.instance_id], CHOSEN, lambda line: None)


def test_there_are_many_attacks_of_every_kind() -> None:
    assert len(ATTACKS) >= 150
    assert len({attack.vector for attack in ATTACKS.values()}) >= 15


def test_no_attack_succeeds_and_honest_solutions_pass(results: list[AttackResult]) -> None:
    total = summary(results)
    assert total["ok"], [r for r in results if (r.reward == 1 and r.vector != HONEST) or not r.decided]
    assert (total["attacks"], total["honest_passed"], total["noop_passed"], total["stub_passed"]) == (
        len(CHOSEN),
        1,
        0,
        0,
    )


@pytest.mark.parametrize("name", CHOSEN)
def test_recorded_calls_alone_stop_the_attack(results: list[AttackResult], name: str) -> None:
    (found,) = [r for r in results if r.name == name]
    assert found.reward_calls == 0


@pytest.mark.parametrize("name", CHOSEN)
def test_each_attack_beats_a_weak_grader(
    shapes: Any, bench: Workbench, task: Task, target: AttackTarget, name: str
) -> None:
    if ATTACKS[name].vector in {"equality", "peek", "lifted tests"}:  # for values that are compared, not iterated over
        task = next(t for t in shapes.taskset.tasks() if "src/shapes/tables.py::Ruler.marks" in t.removed)
        target = attack_target(bench, task)
    assert weak_graders.beaten(bench, task, ATTACKS[name].diff(target))


@pytest.mark.parametrize("name", weak_graders.WEAK)
def test_weak_graders_distinguish_honest_from_empty_solutions(bench: Workbench, task: Task, name: str) -> None:
    assert weak_graders.beaten(bench, task, task.patch, [name]) == name
    assert weak_graders.beaten(bench, task, "", [name]) == ""
    assert weak_graders.beaten(bench, task, stub_of(bench, task), [name]) == ""
