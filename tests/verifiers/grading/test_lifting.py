"""Lifted tests on real runs: what a solution reports is compared with what the original's tests expect."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from excise.deleters.patches.git_patches import unified
from excise.pipeline.services.task_grader import Grader
from excise.types import Task, WorkerOutcome
from excise.verifiers.attacks.attack import attack_target, diff_of
from excise.verifiers.grading import lifting
from excise.verifiers.grading.graded_runs import mode_of
from excise.verifiers.workbench import Workbench

TESTS = """
import pytest
import unittest
from shapes import spiral


@pytest.mark.parametrize("steps,expected", [(1, [(0, 0)]), (2, [(0, 0), (1, 0)]), (0, [])], ids=["one", "two", "none"])
def test_steps(steps, expected):
    assert list(spiral(steps)) == expected


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("steps,last", [(2, (1, 0)), (3, (1, 1))])
def test_last(steps, last, again):
    fields = list(spiral(steps))
    assert fields[-1] == last and isinstance(fields, list)


def test_what_is_raised():
    with pytest.raises(TypeError, match="str") as caught:
        list(spiral("many"))
    assert "integer" in str(caught.value)
    caught.match("interpreted as")


class TestMore(unittest.TestCase):
    def test_type(self):
        self.assertIsInstance(spiral(2).__next__(), tuple)
        self.assertEqual(next(spiral(1)), (0, 0))
        self.assertIsNotNone(spiral(3))


def naive(steps):
    return [(0, 0), (1, 0), (1, 1), (0, 1)][:steps]


class Place:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)


def test_references():
    wanted = naive(3)
    assert list(spiral(3)) == wanted
    assert [Place(*each) for each in spiral(2)] == [Place(0, 0), Place(1, 0)]


def test_nested():
    def last(steps):
        with pytest.raises(StopIteration):
            fields = iter(spiral(steps))
            assert [next(fields) for _ in range(steps)] == naive(steps)
            next(fields)
        return True

    assert last(2) is True


def test_no_checks():
    list(spiral(4))


def test_no_plain_value():
    assert spiral(3) == [(0, 0)] or spiral
    assert object() != spiral(1)
"""
IDS = [
    *(f"tests/test_more.py::test_steps[{name}]" for name in ("one", "two", "none")),
    *(f"tests/test_more.py::test_last[{row}-{again}]" for row in ("2-last0", "3-last1") for again in (True, False)),
    "tests/test_more.py::test_what_is_raised",
    "tests/test_more.py::TestMore::test_type",
    *(f"tests/test_more.py::test_{name}" for name in ("references", "nested", "no_checks")),
]
MODULE = "src/shapes/walk.py"


ADDRESS = """
import sys
from shapes import spiral


def test_address():
    name = "at%x" % id(spiral)
    sys.modules[name] = sys
    assert name in sys.modules
"""


BASE = """
import pytest
from shapes import spiral


class Base:
    steps = 0
    last = ()

    @pytest.fixture
    def start(self):
        return self.steps

    def test_last(self, start):
        assert list(spiral(start))[-1] == self.last

    def test_other(self):
        assert spiral(1) is not 987
"""
INHERITING = """
from base_of_more import Base


class TestTwo(Base):
    steps = 2
    last = (1, 0)


class TestThree(TestTwo):
    steps = 3
    last = (1, 1)

    def test_own(self):
        assert list(spiral(self.steps))[0] == (0, 0)
"""
INHERITED = [f"tests/test_inheriting.py::{name}::test_last" for name in ("TestTwo", "TestThree")]


@pytest.fixture
def bench(vary: Any) -> Workbench:
    """``shapes`` with tests of more kinds, which its baseline knows."""
    texts = {"test_more": TESTS, "test_address": ADDRESS, "base_of_more": BASE, "test_inheriting": INHERITING}
    made: Workbench = vary({f"tests/{name}.py": text for name, text in texts.items()}, baseline=True)
    ids = [*IDS, *INHERITED]
    statuses = {**made.baseline.statuses, **dict.fromkeys(ids, made.baseline.statuses[made.baseline.passing()[0]])}
    durations = {**made.baseline.durations, **dict.fromkeys(ids, 0.01)}
    baseline = replace(made.baseline, statuses=statuses, durations=durations)
    made.prepared = replace(made.prepared, baseline=baseline)
    return made


def task_of(bench: Workbench, tests: list[str], code: bytes | None = None) -> Task:
    """A task with these hidden tests, whose deletion leaves ``code`` of the module; all other fields are empty."""
    names = (field.name for field in fields(Task))
    patch = unified(bench.read([MODULE]), {MODULE: code})
    return Task(**dict.fromkeys(names, "") | {
        "fail_to_pass": tuple(tests), "removed": (MODULE,), "deletion_patch": patch,
    })  # fmt: skip


def test_tests_of_all_kinds_are_lifted(bench: Workbench) -> None:
    found = lifting.find_lifted(bench, task_of(bench, [*IDS, "tests/test_more.py::test_no_plain_value"]), {})
    by_test = {each.test: each.numbered for each in found.tests}
    assert set(by_test) == set(IDS), found.refused
    assert by_test["tests/test_more.py::test_steps[two]"] == "tests/test_more.py::test_steps[1]"
    assert len(set(by_test.values())) == len(IDS)
    assert sum(found.refused.values()) == 1
    names = {each.test: each.names for each in found.tests}
    assert names.pop("tests/test_more.py::test_references") == ("test_more:Place",)
    assert not any(names.values())


def test_values_that_hold_an_address_cannot_be_compared(bench: Workbench) -> None:
    """Though observing and judging runs are forked, from two processes."""
    found = lifting.find_lifted(bench, task_of(bench, [IDS[0], "tests/test_address.py::test_address"]), {})
    assert [each.test for each in found.tests] == IDS[:1]
    assert found.refused == {"values that cannot be compared": 1}


def test_tests_that_the_code_without_the_feature_passes_are_not_lifted(bench: Workbench) -> None:
    empty = b"def spiral(steps):\n    return iter(())\n"
    found = lifting.find_lifted(bench, task_of(bench, IDS, empty), {})
    passed = {f"tests/test_more.py::test_{name}" for name in ("steps[none]", "no_checks", "nested")}
    assert {each.test for each in found.tests} == set(IDS) - passed
    assert found.refused == {"values that the code without the feature reports, too": 3}


def test_tests_that_check_nothing_are_lifted_beside_others_only(bench: Workbench) -> None:
    assert lifting.find_lifted(bench, task_of(bench, IDS[-1:]), {}).tests == ()


def test_a_wrong_solution_fails_just_the_tests_that_show_it(bench: Workbench) -> None:
    task = task_of(bench, IDS)
    tests = lifting.find_lifted(bench, task, {}).tests
    source = bench.read(["src/shapes/walk.py"])["src/shapes/walk.py"].decode()
    same = lifting.judge_solution(bench, task, {}, tests, mode_of(bench), ["spiral"])
    assert (same.failed, len(same.runs)) == ((), 1), "equal values need no second run"
    late = source.replace("x, y = x + dx, y + dy", "x, y = x + dx, y + dy * (walked < 1)")
    wrong = source.replace("yield x, y", "yield x + (steps == 3), y")
    assert late != source != wrong
    judged = lifting.judge_solution(
        bench, task, {"src/shapes/walk.py": wrong.encode()}, tests, mode_of(bench), ["spiral"]
    )
    assert set(judged.failed) == {test for test in IDS if "[3-" in test or "references" in test}
    other = source.replace("for _ in range(steps)", "for _ in range(steps if steps != 'many' else None)")
    judged = lifting.judge_solution(
        bench, task, {"src/shapes/walk.py": other.encode()}, tests, mode_of(bench), ["spiral"]
    )
    assert judged.failed == ("tests/test_more.py::test_what_is_raised",), (
        "the type of an error is right, its text is not"
    )


def test_other_values_that_the_tests_accept_pass(bench: Workbench) -> None:
    task = task_of(bench, IDS)
    tests = lifting.find_lifted(bench, task, {}).tests
    source = bench.read(["src/shapes/walk.py"])["src/shapes/walk.py"].decode()
    other = source.replace("range(steps)", "range(check(steps))") + (
        "\n\ndef check(steps):\n    if isinstance(steps, str):\n"
        "        raise TypeError('a str is not interpreted as an integer')\n    return steps\n"
    )
    judged = lifting.judge_solution(
        bench, task, {"src/shapes/walk.py": other.encode()}, tests, mode_of(bench), ["spiral"]
    )
    assert (judged.failed, len(judged.runs)) == ((), 2), "the original's text is another one, so it is judged"


REPORTED = {
    "nothing": "lambda place, value: None",
    "truth": "lambda place, value: see(place, True)",
    "an object that cannot be compared": "lambda place, value: see(place, object())",
    "a call": "lambda place, value: report('see', place=place, value=['n', 'os:system', 'true'])",
    "an object that is equal to everything": (
        "lambda place, value: report('see', place=place, value=['ref', 'unittest.mock:ANY'])"
    ),
    "a state": "lambda place, value: report('see', place=place, value=['obj', 'unittest.mock:_ANY', None, []])",
    "an enumeration": "lambda place, value: report('see', place=place, value=['e', 'os:environ', 'PATH'])",
    "no message": "lambda place, value: report('see', place='0', value=7)",
    "a broken message": "lambda place, value: report('see', place=place, value=['l', 3])",
}


@pytest.mark.parametrize("how", REPORTED)
def test_forged_values_win_nothing(shapes: Any, how: str) -> None:
    """The solution takes over what reports values, and its results are equal to everything."""
    graders = Grader(shapes.taskset, shapes.settings)
    task: Task = next(t for t in shapes.taskset.tasks() if "src/shapes/walk.py" in t.removed)
    environment = graders.environment_of(task)
    assert isinstance(environment, tuple)
    target = attack_target(environment.bench, task)
    code = (
        "import builtins, gc, sys\n\nsee = getattr(builtins, '__excise_see__', None)\n"
        "if see is not None:\n    report = see.__self__.channel.write\n"
        f"    builtins.__excise_see__ = {REPORTED[how]}\n\n\n"
        "class Anything:\n    __hash__ = object.__hash__\n    __eq__ = lambda self, other: True\n"
        "    __ne__ = lambda self, other: False\n\n\ndef spiral(steps):\n"
        "    return iter([Anything() for _ in range(steps)])\n"
    )
    written = {path: text if isinstance(text, bytes) else text.encode() for path, text in target.stubbed.items()}
    files = {**written, target.module: code.encode()}
    kit = replace(graders.kit(environment.bench, task), calls=())
    tests = tuple(each for each in kit.lifted if not each.test.endswith("test_no_field_twice"))
    assert tests
    judged = lifting.judge_solution(
        environment.bench,
        task,
        {**environment.bench.edits_of(task.deletion_patch), **files},
        tests,
        environment.conditions.mode,
        kit.depending,
    )
    assert {run.run.worker for run in judged.runs} == {WorkerOutcome.OK}
    assert set(judged.failed) == {each.test for each in tests}
    found = graders.grade(task.instance_id, diff_of(target.shipped, files))
    assert (found.reward, found.partial) == (0, 0)


def test_a_run_that_expects_nothing_contains_nothing_expected(bench: Workbench) -> None:
    files = lifting.lifted_files(bench, IDS, ["spiral"])
    text = files.observing["tests/test_more.py"]
    for expected in ("(1, 1)", "TypeError", "integer", "interpreted as", "(0, 0)", "'two'", '"two"', "tuple"):
        assert expected not in text, text
    assert "(0, 0)" in files.judging["tests/test_more.py"]


def test_tests_that_classes_inherit_from_another_file_are_lifted(bench: Workbench) -> None:
    found = lifting.find_lifted(bench, task_of(bench, INHERITED, code=b"def spiral(steps):\n    return [None]\n"), {})
    assert [each.test for each in found.tests] == sorted(INHERITED), found.refused
    files = lifting.lifted_files(bench, INHERITED, ["spiral"])
    assert sorted(files.observing) == ["tests/base_of_more.py", "tests/test_inheriting.py"]
    for text in files.observing.values():
        assert not any(expected in text for expected in ("(1, 0)", "(1, 1)", "987", "test_other", "test_own"))
    assert "steps = 3" in files.observing["tests/test_inheriting.py"]
    assert "last = (1, 1)" in files.judging["tests/test_inheriting.py"]


def test_reports_are_read_as_json(bench: Workbench) -> None:
    files = lifting.lifted_files(bench, IDS, ["spiral"])
    done = lifting.observe(bench, {}, files, [IDS[-1]], mode_of(bench), removed=(), trusted=True)
    assert all(isinstance(place, int) for place, _ in json.loads(done.seen[IDS[-1]]))
    assert done.seen.keys() == {IDS[-1]}
