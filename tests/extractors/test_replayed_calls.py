"""Processes in which recorded calls are made again."""

from __future__ import annotations

import builtins
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.execution import recorded_calls
from excise.extractors.python.execution.call_examples import example
from excise.protocols import CallRecording, Completed, Session
from excise.types import Recipe, WorkerOutcome

from .inside_programs import INSIDE, load

values = load("excise_values")


def asked(name: str, kind: str, *args: object) -> dict[str, object]:
    return {"name": f"code_under_test:{name}", "kind": kind, "args": list(args), "kwargs": []}


def outcomes_of(folder: Path, source: str, plain: list[tuple[str, int]], **more: object) -> list[dict[str, object]]:
    """The outcome of each call, by name and argument (or ``calls``), of a module."""
    (folder / "code_under_test.py").write_text(source)
    made = [asked(name, "function", values.Encoder().encode(number)) for name, number in plain]
    defaults = {
        "calls": made, "modules": ["code_under_test"], "removed": [], "spans": {}, "path": [str(folder)],
        "folders": [], "new": 0, "alone": len(plain), "call_timeout_s": 30, "new_timeout_s": 1, "timeout_s": 600,
        "later_s": 0, "zone": "",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, INSIDE / "excise_replay.py", "[]"], cwd=folder, input=json.dumps(defaults | more),
        text=True, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return [json.loads(line)["outcome"] for line in done.stdout.splitlines()]


def reasons_without_outcome(folder: Path, source: str, calls: list[tuple[str, int]], **more: object) -> list[object]:
    """Why each call has no outcome; ``None`` for one that has."""
    return [outcome.get("lost") for outcome in outcomes_of(folder, source, calls, **more)]


COUNTING = (
    "import os\n\nmade = []\n\n\ndef count(n):\n    made.append(n)\n    return len(made)\n\n\n"
    "def end(n):\n    os._exit(n)\n\n\ndef wait(n):\n    while n:\n        pass\n"
)


@pytest.mark.parametrize(
    ("alone", "expected"),
    [(8, [1, 1, 1, "ended", 1, 1, "timeout", 1]), (2, [1, 1, 1, "ended", 1, 2, "timeout", 1]),
     (0, [1, 2, 3, "ended", 1, 2, "timeout", 1])],
)  # fmt: skip
def test_calls_share_processes_only_where_they_may(tmp_path: Path, alone: int, expected: list[object]) -> None:
    calls = [
        ("count", 1),
        ("count", 2),
        ("count", 3),
        ("end", 1),
        ("count", 4),
        ("count", 5),
        ("wait", 1),
        ("count", 6),
    ]
    found = outcomes_of(tmp_path, COUNTING, calls, alone=alone, call_timeout_s=3)
    results = [each.get("lost") or each["result"] for each in found]
    assert results == [["i", str(each)] if isinstance(each, int) else each for each in expected]


def test_functions_whose_new_calls_do_not_end_are_not_called_again_and_again(tmp_path: Path) -> None:
    source = "def wait(n):\n    while n > 1:\n        pass\n    return n\n\n\ndef other(n):\n    return n + 1\n"
    calls = [("wait", 1), *(("wait", n) for n in range(2, 50)), ("other", 1), ("wait", 0)]
    assert reasons_without_outcome(tmp_path, source, calls, new=50) == [None, *["timeout"] * 48, None, "timeout"]


def test_a_call_that_draws_random_numbers_has_no_outcome(tmp_path: Path) -> None:
    source = "import random\n\n\ndef pick(n):\n    return random.randrange(n)\n\n\ndef same(n):\n    return n\n"
    spans = {str(tmp_path / "code_under_test.py"): [[1, 9]]}
    assert reasons_without_outcome(tmp_path, source, [("pick", 1000), ("same", 1000)], spans=spans) == ["random", None]


BOX = """\
class Box:
    def __init__(self):
        self.items = []

    def add(self, x):
        if x < 0:
            raise ValueError(x)
        self.items.append(x)


def size(box):
    return len(box.items)
"""


def test_an_object_whose_history_raises_is_told_apart(tmp_path: Path) -> None:
    made = [["made", "code_under_test:Box", [], [], [["add", [["i", number]], []]]] for number in ("-1", "1", "-1")]
    found = outcomes_of(tmp_path, BOX, [], calls=[asked("size", "function", box) for box in made])
    assert [(each["result"], each.get("uneven")) for each in found] == [
        (["i", "0"], True), (["i", "1"], None), (["i", "0"], True),
    ]  # fmt: skip


KEEPING = """
class Box:
    def __init__(self, size):
        self.size = size
        self._seen = 0

    def get(self, n):
        self._seen += 1
        return self.size + n

    def grow(self, n):
        self.size += n


def sort(numbers):
    numbers.sort()
"""


@pytest.mark.parametrize(("name", "argument", "kept"), [("get", 1, True), ("grow", 1, False), ("grow", 0, True)])
def test_whether_a_call_changes_its_object_is_noted_once(tmp_path: Path, name: str, argument: int, kept: bool) -> None:
    node = ["made", "code_under_test:Box", [["i", "2"]], [], []]
    call = asked(f"Box.{name}", "method", node, ["i", str(argument)])
    spans = {str(tmp_path / "code_under_test.py"): [[1, 20]]}
    (traced,) = outcomes_of(tmp_path, KEEPING, [], calls=[call], spans=spans)
    assert traced.pop("kept", False) is kept
    assert ("given" in traced) is not kept, "where it does, what was passed is noted, too"
    (graded,) = outcomes_of(tmp_path, KEEPING, [], calls=[call])
    assert {**traced, "given": None} == {**graded, "given": None}
    assert {"kept", "given"}.isdisjoint(graded)


@pytest.mark.parametrize(("numbers", "kept"), [([1, 2], True), ([2, 1], False)])
def test_whether_a_call_changes_its_argument_is_noted(tmp_path: Path, numbers: list[int], kept: bool) -> None:
    spans = {str(tmp_path / "code_under_test.py"): [[1, 20]]}
    call = asked("sort", "function", values.Encoder().encode(numbers))
    assert outcomes_of(tmp_path, KEEPING, [], calls=[call], spans=spans)[0].get("kept", False) is kept


COUNTED = """
def counted(function):
    calls = 0
    def inner(value):
        nonlocal calls
        calls += 1
        return function(value), calls
    return inner

def same(function):
    return function
"""


def test_calls_of_functions_that_calls_return_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "code_under_test.py"
    file.write_text(COUNTED)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(INSIDE), *sys.path])
    monkeypatch.delitem(sys.modules, "code_under_test", raising=False)
    monkeypatch.setitem(sys.modules, "code_under_test", importlib.import_module("code_under_test"))
    module, inside = sys.modules["code_under_test"], load("excise_recorder")
    recorder = inside.Recorder([(str(file), 1, 20)])
    monkeypatch.setattr(builtins, inside.NAME, recorder.called, raising=False)
    assert recorder.watch("code_under_test:counted") + recorder.watch("code_under_test:same") == 2
    length = module.counted(len)
    assert [length("ab"), length("abc")] == [(2, 1), (3, 2)]
    assert module.same(abs)(-1) == 1
    assert [call["name"].partition(":")[2] for call in recorder.calls] == ["counted", "counted()", "counted()", "same"]
    found = outcomes_of(tmp_path, COUNTED, [], calls=recorder.calls, alone=4)
    assert [each["result"] for each in found[:3]] == [
        ["fn"], ["t", [["i", "2"], ["i", "1"]]], ["t", [["i", "3"], ["i", "2"]]],
    ]  # fmt: skip
    wrong = outcomes_of(tmp_path, COUNTED.replace("calls += 1", "calls = 1"), [], calls=recorder.calls, alone=4)
    assert [each == other for each, other in zip(found, wrong, strict=True)] == [True, True, False, True]
    lines = [example(json.dumps(call), json.dumps(each)) for call, each in zip(recorder.calls, found, strict=True)]
    assert lines[1:3] == ["counted(len)('ab')  # (2, 1)", "x = counted(len); x('ab'); x('abc')  # (3, 2)"]


def test_results_that_nobody_reads_are_left_out(tmp_path: Path) -> None:
    source = "def clear(items):\n    items.clear()\n    return {}\n\ndef fail(items):\n    raise KeyError\n"
    calls = [asked(name, "function", ["l", [["i", "1"]]]) | {"unread": True} for name in ("clear", "fail")]
    one, other = (outcomes_of(tmp_path, source.format(value), [], calls=calls) for value in (True, None))
    assert one == other
    assert (one[0]["result"], one[0]["after"]) == (["unread"], [["l", []]])
    assert "raised" in one[1]


def test_operators_whose_results_are_called_stand_in_parentheses() -> None:
    operator = {
        "name": "m:A.__add__",
        "kind": "method",
        "args": [["made", "m:A", [], [], []], ["i", "2"]],
        "kwargs": [],
    }
    call = {
        "name": "m:A.__add__()",
        "kind": "result",
        "made": operator,
        "before": [],
        "args": [["i", "1"]],
        "kwargs": [],
    }
    found = {"result": ["i", "3"], "printed": "", "after": [["i", "1"]], "kept": True}
    assert example(json.dumps(call), json.dumps(found)) == "(A() + 2)(1)  # 3"


@pytest.mark.parametrize(
    ("removed", "expected"),
    [
        (["C.at#3"], ["m:C.at"]),
        (["C.at", "C.at#2", "C.at#3"], ["m:C.at"]),
        (["C.at"], []),
        (["C.__getitem__#2"], ["m:C.__getitem__"]),
        (["C.size#2"], []),
        (["f#2"], []),
        ([""], ["m:C", "m:f"]),
    ],
)
def test_implementations_of_overloads_are_recorded_by_their_plain_names(
    removed: list[str], expected: list[str]
) -> None:
    source = (
        "from typing import overload\n\n\nclass C:\n"
        "    @overload\n    def at(self, n: int) -> int: ...\n"
        "    @overload\n    def at(self, n: str) -> str: ...\n"
        "    def at(self, n):\n        return n\n"
        "    @overload\n    def __getitem__(self, n: int) -> int: ...\n"
        "    def __getitem__(self, n):\n        return n\n"
        "    @property\n    def size(self):\n        return 1\n"
        "    @size.setter\n    def size(self, n):\n        pass\n\n\n"
        "try:\n    def f():\n        return 1\nexcept ValueError:\n    def f():\n        return 2\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source})
    symbols = [f"m.py::{name}" if name else "m.py" for name in removed]
    assert sorted(recorded_calls.public_names(codebase, symbols, ["."])) == expected


COMPILED_PROGRAM = """
import datetime, sys
from importlib.machinery import ExtensionFileLoader
real, found = datetime.datetime, []
ExtensionFileLoader.exec_module = lambda loader, module: found.append(datetime.datetime)
sys.path.append(sys.argv[1])
import excise_clock
excise_clock.move(500 * 86400)
ExtensionFileLoader("m", "m.so").exec_module(sys)
assert found == [real], found
assert datetime.datetime.now().timestamp() - real.now().timestamp() > 86400
"""


def test_compiled_modules_get_the_real_classes_of_dates() -> None:
    """Those of pandas end the process otherwise."""
    subprocess.run([sys.executable, "-c", COMPILED_PROGRAM, str(INSIDE)], check=True, timeout=60)


def test_a_replay_that_a_signal_ends_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Ended:
        def exec(self, *_: object, **__: object) -> Completed:
            return Completed(worker=WorkerOutcome.OK, rc=-11, stdout=b"", stderr=b"", wall_s=0, cpu_s=0)

    recording = CallRecording(calls=('{"name": "m:f"}',), modules=(), removed=(), watched=1, refused={})
    ended, recipe = cast("Session", Ended()), Recipe(python="3.12.1")
    caplog.set_level("INFO")
    assert recorded_calls.replay(ended, recipe, recording, recorded_calls.AskedReplay(1.0)) == [""]
    assert [(each.msg, each.__dict__["signal"]) for each in caplog.records] == [("replay ended", 11)]


@pytest.mark.parametrize(
    "value", ["sys.argv[n:]", "sys.argv[0]", "os.path.expanduser('~')", "getpass.getuser()", "time.tzname[0]"]
)
@pytest.mark.parametrize("how", ["{}", "str(n)"], ids=["", "independent"])
def test_calls_that_depend_on_where_they_are_made_differ_in_another_zone(tmp_path: Path, value: str, how: str) -> None:
    source = f"import getpass, os, sys, time\n\n\ndef place(n):\n    return {how.format(value)}\n"
    here, there = (outcomes_of(tmp_path, source, [("place", 1)], zone=zone) for zone in ("", "EST5EDT"))
    assert "lost" not in here[0]
    assert (here == there) is (how == "str(n)")
