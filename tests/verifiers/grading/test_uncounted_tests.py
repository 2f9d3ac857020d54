"""FAIL_TO_PASS tests that do not count: those that only the solution's process could decide, where others suffice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from excise.pipeline.services.task_grader import Grader
from excise.types import Status, Task
from excise.verifiers.attacks.attack import attack_target, diff_of
from excise.verifiers.gates.empty_solutions_fail import EmptySolutionsFail
from excise.verifiers.grading import grader as grading
from excise.verifiers.grading import kit as kit_module
from excise.verifiers.grading.kit import make_kit, record_behaviour, uncounted_tests
from excise.verifiers.grading.lifting import find_lifted
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

START = "tests/test_walk.py::test_start"


@pytest.mark.parametrize(
    ("outside", "lines", "expected"),
    [
        ("ab", {"a": [1, 2], "b": [3], "c": [1, 3]}, "c"),
        ("abc", {"a": [1], "b": [1], "c": [1]}, ""),
        ("ab", {"a": [1, 2], "b": [3], "c": [1, 4]}, ""),
        ("a", {"a": [1, 2], "b": [1], "c": [2]}, ""),
        ("ab", {"a": [1, 2], "b": [3]}, ""),
        ("ab", {"a": [1, 2], "b": [3], "c": []}, ""),
        ("", {}, ""),
    ],
    ids=["covered", "all-outside", "another-line", "most-inside", "unknown", "no-line", "none-outside"],
)
def test_the_others_suffice(outside: str, lines: dict[str, list[int]], expected: str) -> None:
    executed = {test: [("m.py", line) for line in found] for test, found in lines.items()}
    assert uncounted_tests("abc", set(outside), executed) == tuple(expected)


def test_the_lines_of_removed_code_are_those_that_each_test_executes(ready: Workbench, task: Task) -> None:
    source = ready.read(["src/shapes/walk.py"])["src/shapes/walk.py"].decode().splitlines()
    turn = next(number for number, text in enumerate(source, 1) if "dx, dy = -dy, dx" in text)
    last = next(number for number, text in enumerate(source, 1) if "leg += 1" in text)
    lines = record_behaviour(ready, task.removed, task.fail_to_pass).recording.uses.lines
    executed = {test.partition("::")[2]: {number for _, number in found} for test, found in lines.items()}
    assert executed["test_start"] < executed["test_no_field_twice"]
    assert {turn, last} <= executed["test_no_field_twice"]
    assert last in executed["test_first_turn"]
    assert {path for found in lines.values() for path, _ in found} == {"src/shapes/walk.py"}


def test_a_test_that_is_not_lifted_does_not_count_if_stand_ins_fail_without_it(
    ready: Workbench, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_start(*given: Any) -> Any:
        found = find_lifted(*given)
        return found._replace(tests=tuple(each for each in found.tests if each.test != START))

    monkeypatch.setattr(kit_module, "find_lifted", without_start)
    monkeypatch.setattr(kit_module, "_decided_by_calls", lambda *given: ())
    candidate = candidate_of(ready, task)
    empty = candidate.edits("none")
    asked: list[list[str]] = []

    def refutes(tests: Any) -> bool:
        asked.append(list(tests))
        return EmptySolutionsFail().refutes(candidate, tests)

    kit = make_kit(ready, task, empty, is_enough=refutes)
    assert (kit.uncounted, kit.mirrored) == ((START,), ())
    assert asked == [[test for test in task.fail_to_pass if test != START]]
    every = make_kit(ready, task, empty, is_enough=lambda tests: False)
    assert (every.uncounted, every.mirrored) == ((), (START,))


def test_stand_ins_must_fail_the_tests_that_count(ready: Workbench, task: Task, shapes: Any) -> None:
    gate = EmptySolutionsFail()
    assert gate.refutes(candidate_of(ready, task), task.fail_to_pass)
    assert not gate.refutes(candidate_of(ready, task), task.pass_to_pass[:1])


def test_what_earns_nothing_must_pass(graders: Grader, ready: Workbench, task: Task) -> None:
    kit = replace(graders.kit(ready, task), calls=())
    target = attack_target(ready, task)
    gold = ready.read([target.module])[target.module].decode()
    wrong = gold.replace("    for _ in range(steps):", "    for _ in range(steps + (steps == 1)):")
    assert wrong != gold
    diff = diff_of(target.shipped, {**{p: ready.read([p])[p] for p in target.stubbed}, target.module: wrong})
    environment = graders.environment_of(task)
    assert isinstance(environment, tuple)

    def grade(uncounted: tuple[str, ...], diff: str) -> Any:
        lifted = tuple(each for each in kit.lifted if each.test not in uncounted)
        given = replace(kit, uncounted=uncounted, lifted=lifted)
        request = grading.GradeRequest(task=task, kit=given, diff=diff, conditions=environment[1])
        return grading.grade(ready, request)

    found = grade((START,), diff)
    assert (found.reward, found.partial, found.reward_uncounted) == (0, 1, 0), found
    assert (found.reasons, found.statuses[START]) == (("fail_to_pass",), Status.FAILED)
    assert found.num_passed + 1 == found.num_tests == len(task.fail_to_pass) + len(task.pass_to_pass)
    gold = grade((START,), task.patch)
    assert (gold.reward, gold.reward_uncounted) == (1, 1)
    every = grade((), diff)
    assert (every.reward, every.reward_uncounted) == (0, None)
