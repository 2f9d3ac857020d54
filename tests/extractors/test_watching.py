"""What a run shows of the details that tests need: values that come from removed code are followed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.execution.pytest_runner import INSIDE
from excise.extractors.python.language import Python
from excise.extractors.python.needs.test_uses import uses_in
from excise.extractors.python.needs.watching import read_report, watch_request
from excise.types import Need, NeedKind, Watched


def watch(folder: Path, files: dict[str, str], removed: list[str], cases: tuple[str, ...] = ()) -> list[Need]:
    """The details that all tests of a project need, after a run in a process of its own."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    codebase = PythonCodebase.from_texts(files)
    tests = [*(cases or ids_of(codebase))]
    executed = [s for s in codebase.symbols() if not codebase.is_test(s.partition("::")[0])]
    request = watch_request(codebase, uses_in(codebase), removed, tests, executed)
    known = Python().find_needs(codebase, removed, tests)
    request |= {"root": str(folder), "words": [need.word for need in known], "owners": owners_of(removed)}
    return list(Python().find_needs(codebase, removed, tests, run(folder, request, tests)))


def run(folder: Path, request: dict[str, object], tests: list[str]) -> Watched:
    """Watch tests in a process of its own."""
    report = folder / "report.json"
    record = {
        "root": str(folder), "report": str(report), "names": [], "modules": [], "spans": request["spans"],
        "watch": request,
    }  # fmt: skip
    body = {"root": str(folder), "report": str(folder / "run.jsonl"), "ids": tests, "record": record}
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(
        [sys.executable, INSIDE / "excise_run.py"], cwd=folder, input=json.dumps(body), text=True, check=True,
        capture_output=True, env=environment, timeout=60,
    )  # fmt: skip
    return read_report(json.loads(report.read_text())["uses"], tests)


def owners_of(removed: list[str]) -> list[tuple[str, str]]:
    """Module and name of each removed symbol."""
    return [(each.partition(".py::")[0], each.partition("::")[2]) for each in removed]


def ids_of(codebase: PythonCodebase) -> list[str]:
    """Ids of all tests without parameters."""
    symbols = [s for s in codebase.symbols().values() if codebase.is_test(s.path) and s.name.startswith("test_")]
    return ["::".join([s.path, *s.qualname.split(".")]) for s in symbols if s.is_callable]


BANK = """
import argparse
import collections
import dataclasses
import json
import types


class Account:
    def __init__(self, owner, start=0):
        self.owner = owner
        self.total = start

    def book(self, amount, **options):
        if amount > 5000:
            raise Refused("amount is above 5000", code=4711)
        self.total += amount
        return {"booked": amount, "rest": {"left": 5000 - amount}, "options": sorted(options)}


class Refused(Exception):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


Pair = collections.namedtuple("Pair", "low high")


class Range(collections.namedtuple("Range", ["first", "last"])):
    pass


@dataclasses.dataclass
class Point:
    east: int = 0
    north: int = 0


def summary(values):
    return types.SimpleNamespace(count=len(values), largest=max(values))


def report(values):
    return json.dumps({"amounts": list(values), "unit": "EUR"})


def names():
    yield "one more"
    yield "and another"


def order(values):
    if not values:
        raise LookupError("nothing to order")
    return Range(min(values), max(values))
"""
REMOVED = [f"bank.py::{n}" for n in ("Account", "Refused", "Range", "Point", "summary", "report", "names", "order")]
TEST, CASE = "tests/test_bank.py::test_a", "LookupError"
HEAD = "import json, operator, pytest, bank\nfrom bank import *\n"


def added(folder: Path, test: str, **more: str) -> dict[str, bool]:
    """Label of each need of a test file that nothing but the run shows, and whether it is the answer."""
    files = {"bank.py": BANK, "tests/test_bank.py": HEAD + test, **{p.replace("__", "/"): t for p, t in more.items()}}
    files |= {"tests/conftest.py": CONFTEST}
    cases = (f"{TEST}[{CASE}]",) if "parametrize" in test else (TEST,)
    return {need.label: need.is_answer for need in watch(folder, files, REMOVED, cases) if need.is_watched}


CONFTEST = """
import pytest

FIELDS = "own" + "er to" + "tal"

@pytest.fixture(autouse=True)
def read_all():
    def read(thing):
        return [getattr(thing, name) for name in FIELDS.split()]
    return read

@pytest.fixture
def options():
    return {"si" + "lent": 1}
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("def test_a(read_all):\n    assert read_all(Account('me'))", {"attribute owner", "attribute total"}),
        ("def test_a():\n    assert vars(Account('me'))['to' 'tal'] == 0", set()),
        ("def test_a():\n    assert vars(Account('me'))['to' + 'tal'] == 0", {"attribute total"}),
        (
            "def test_a():\n    read = operator.attrgetter('ow' + 'ner')\n    assert read(Account('me')) == 'me'",
            {"attribute owner"},
        ),
        (
            "def test_a():\n    for key in ('boo' + 'ked', 'unknown'):\n        Account('me').book(1).get(key)",
            {"key booked"},
        ),
        ("def test_a():\n    rest = Account('me').book(1)['rest']\n    assert 'le' + 'ft' in rest", {"key left"}),
        (
            "def test_a():\n    key = 'un' + 'it'\n    assert json.loads(report([1]))[key] == 'EU' + 'R'",
            {"key unit", "text EUR"},
        ),
        ("def test_a(options):\n    assert Account('me').book(1, **options)['options'] == ['silent']", set()),
        ("def test_a():\n    assert Point(**{'ea' + 'st': 1}) == Point(1)", {"keyword east"}),
        (
            "def test_a():\n    with pytest.raises(Refused) as caught:\n        Account('me').book(9999)\n"
            "    assert getattr(caught.value, 'co' + 'de') == 4711",
            {"attribute code"},
        ),
        (
            "@pytest.mark.parametrize('kind', [LookupError])\ndef test_a(kind):\n"
            "    with pytest.raises(kind, match='noth' + 'ing to'):\n        order([])",
            {"exception LookupError", "message nothing to"},
        ),
        ("def test_a():\n    low, high = order([2, 1])\n    assert high == 2", {"attribute first", "attribute last"}),
        ("def test_a():\n    assert order([2, 1]) == (1, 2)", {"attribute first", "attribute last"}),
        ("def test_a():\n    assert getattr(summary([3]), 'cou' + 'nt') == 1", {"attribute count"}),
        ("def test_a():\n    assert list(names())[0] == 'one ' + 'more'", {"text one more"}),
        ("def test_a():\n    assert next(names()) == 'one ' + 'more'", {"text one more"}),
        (
            "def test_a():\n    import unittest\n"
            "    unittest.TestCase().assertRegex(next(names()), 'one ' + 'more' + r'\\s*$')",
            {"text one more"},
        ),
        ("def test_a():\n    other = {'boo' + 'ked': 1}\n    assert other['boo' + 'ked'] == 1", set()),
        ("def test_a():\n    class Other:\n        pass\n    one = Other()\n    setattr(one, 'to' + 'tal', 1)\n"
         "    assert getattr(one, 'to' + 'tal') == 1", set()),
    ],
)  # fmt: skip
def test_values_of_removed_code_are_followed(tmp_path: Path, test: str, expected: set[str]) -> None:
    assert set(added(tmp_path, test)) == expected


SHAPES = """
class Box:
    def __init__(self, width):
        self.width = width
        self.hidden = 3

    def grow(self, **options):
        self.width += options["step"]
        return {"width": self.width, "unit": "cm"}


def area(box):
    return box.width * box.hidden


class Frame:
    unit = "mm"

    def measure(self):
        self.edge = 7
        return self
"""


def shapes(folder: Path, test: str) -> dict[str, str]:
    """Label of each need of a class and a method, and how it is known: by its syntax, by the run, or of other code."""
    files = {"shapes.py": SHAPES, "tests/test_shapes.py": f"import shapes, unittest.mock\n{test}"}
    found = watch(folder, files, ["shapes.py::Box", "shapes.py::Frame.measure"], ("tests/test_shapes.py::test_a",))
    return {n.label: str(n.given or ("run" if n.is_watched else "syntax")) for n in found}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("assert shapes.area(shapes.Box(2)) == 6", {"attribute hidden": "run", "attribute width": "run"}),
        (
            "assert shapes.Frame().measure().edge == 7",
            {"attribute edge": "syntax", "number 7": "syntax", "result measure self": "syntax"},
        ),
        (
            "assert getattr(shapes.Frame().measure(), 'ed' + 'ge') == 7",
            {"attribute edge": "run", "number 7": "syntax", "result measure self": "syntax"},
        ),
        ("shapes.Box(1)\n    m = unittest.mock.Mock()\n    assert m.width", {"attribute width": "other"}),
        ("m = unittest.mock.Mock()\n    assert m.width or shapes.Box(1).width", {"attribute width": "syntax"}),
        ("m = unittest.mock.Mock()\n    assert m.width and shapes.Box(1).width", {"attribute width": "syntax"}),
        ("shapes.Box(1)\n    d = {'un' + 'it': 1}\n    assert d['unit']", {"key unit": "other"}),
        ("shapes.Box(1)\n    d = {'unit': 1}\n    assert d['unit']", {"key unit": "syntax"}),
        (
            "b = shapes.Box(1)\n    assert b.grow(**{'step': 1})['unit']",
            {"key step": "syntax", "keyword step": "run", "key unit": "syntax"},
        ),
        ("b = shapes.Box(1)\n    b.grow(**dict([('st' + 'ep', 1)]))", {"keyword step": "run"}),
    ],
)
def test_what_stays_and_what_is_of_other_code(tmp_path: Path, test: str, expected: dict[str, str]) -> None:
    assert shapes(tmp_path, f"def test_a():\n    {test}\n") == expected


SPLIT = """
from collections import UserDict


def split(text):
    return [part for part in text.split()]


def ends(values):
    values = sorted(values)
    return values[0], values[-1]


def same(value):
    return [value][0]


def either(value):
    return [value] if value else ()


def apply(function):
    first = [function]
    return first[0]()


def counts(text):
    return {letter: text.count(letter) for letter in text}


class Table(UserDict):
    pass


def table(text):
    return Table(counts(text))
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("assert split('a b') == ['a', 'b']", {"result split list"}),
        ("assert sorted(split('a b')) == ['a', 'b']", set()),
        ("found = split('a b')\n    assert found == ['a', 'b']", {"result split list"}),
        ("assert len(split('a b')) == 2", set()),
        ("low, high = ends([1, 2])\n    assert low", {"result ends 2"}),
        ("assert ends([1, 2]) == (1, 2)", {"result ends tuple"}),
        ("assert same([1]) == [1]", set()),
        ("assert either(1) == [1]", {"result either list"}),
        ("assert either(1) == [1] and either(0) == ()", set()),
        ("assert apply(lambda: [1]) == [1] and apply(int) == 0", set()),
        ("assert counts('aa') == {'a': 2}", {"result counts dict"}),
        ("assert len(counts('aa')) == 1", set()),
        ("assert sum(table('aa').values()) == 2", {"result table mapping"}),
        ("assert table('aa')", set()),
        ("assert {'a': 2} == table('aa')", {"result table Table"}),
    ],
)
def test_types_of_results_on_which_tests_rely(tmp_path: Path, test: str, expected: set[str]) -> None:
    files = {"parts.py": SPLIT, "tests/test_parts.py": f"from parts import *\n\ndef test_a():\n    {test}\n"}
    removed = [f"parts.py::{name}" for name in ("split", "ends", "same", "either", "apply", "counts", "table")]
    needs = watch(tmp_path, files, removed, ("tests/test_parts.py::test_a",))
    assert {need.label for need in needs if need.is_watched} == expected


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        (["Shelf([3]).rows == [(3, 'x')]"], "rows: list[tuple[int, str]]"),
        (["Shelf([]).rows == []", "Shelf([1]).rows[0] == (1, 'x')"], "rows: list[tuple[int, str]]"),
        (["Shelf([1]).rows", "Shelf([2.5, None]).rows"], ""),
        (["Shelf([1]).named == {'x': [1, None]}"], "named: dict[str, list[None | int]]"),
        (["Shelf([1]).high == 1"], "high: int"),
        (["Shelf([]).last is None"], ""),
        (["Shelf([]).last is None", "Shelf([1]).last == 1"], "last: int | None"),
        (["Shelf([1.5]).last", "Shelf([1]).last == 1"], ""),
        (["Shelf([1j]).last", "Shelf([1]).last == 1"], ""),
    ],
)
def test_what_is_in_attributes_that_tests_read(tmp_path: Path, tests: list[str], expected: str) -> None:
    shelf = (
        "class Shelf:\n    def __init__(self, values):\n        self.rows = [(value, 'x') for value in values]\n"
        "        self.named = {'x': [*values, None]}\n        self.high = len(values)\n"
        "        self.last = values[-1] if values else None\n"
    )
    functions = (f"def test_{n}():\n    assert {test}\n" for n, test in enumerate(tests))
    files = {"shelf.py": shelf, "tests/test_shelf.py": "from shelf import Shelf\n\n" + "\n\n".join(functions)}
    needs = watch(tmp_path, files, ["shelf.py::Shelf"])
    assert [need.template for need in needs if need.kind is NeedKind.ATTRIBUTE] == [expected]


def test_tests_that_a_function_makes_are_watched(tmp_path: Path) -> None:
    test = (
        "import unittest\nimport shapes\n\n\ndef make(name):\n    class TestA(unittest.TestCase):\n"
        "        def test_a(self):\n            assert getattr(shapes.Box(2), name)\n    return TestA\n\n\n"
        "TestB = make('hid' + 'den')\n"
    )
    files = {"shapes.py": SHAPES, "tests/test_shapes.py": test}
    needs = watch(tmp_path, files, ["shapes.py::Box"], ("tests/test_shapes.py::TestB::test_a",))
    assert {need.label: need.is_watched for need in needs} == {"attribute hidden": True}


def test_the_words_of_failing_tests_do_not_count(tmp_path: Path) -> None:
    test = (
        "import sys\nimport shapes\n\n\ndef test_a():\n    shapes.Box(2)\n"
        "    assert 'excise_watch' not in sys.modules\n    m = object()\n    assert hasattr(m, 'width')\n"
    )
    files = {"shapes.py": SHAPES, "tests/test_shapes.py": test}
    (tmp_path / "shapes.py").write_text(SHAPES)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_shapes.py").write_text(test)
    codebase = PythonCodebase.from_texts(files)
    tests, removed = ["tests/test_shapes.py::test_a"], ["shapes.py::Box"]
    request = watch_request(codebase, uses_in(codebase), removed, tests, ())
    request |= {"root": str(tmp_path), "words": ["width"], "owners": owners_of(removed)}
    seen = run(tmp_path, request, tests)
    assert seen == Watched(problem="1 of 1 tests do not pass when they are watched.")
    needs = Python().find_needs(codebase, removed, tests, seen)
    assert {need.label: need.given for need in needs} == {"attribute width": None, "key width": None}


def test_a_test_of_many_steps_is_watched_in_part_and_the_next_one_again(tmp_path: Path) -> None:
    """A loop of tens of thousands of steps took a minute."""
    test = (
        "import m\n\n\ndef test_loop():\n    found = m.tally([1])\n    assert found['fi' + 'rst'] == 1\n"
        "    total = 0\n    for number in range(40_000):\n        total += abs(number)\n"
        "    assert total and m.tally([2])['sec' + 'ond'] == 2\n\n\n"
        "def test_next():\n    assert m.tally([3])['thi' + 'rd'] == 3\n"
    )
    code = "def tally(values):\n    return {name: values[0] for name in ('first', 'second', 'third')}\n"
    needs = watch(tmp_path, {"m.py": code, "test_m.py": test}, ["m.py::tally"])
    found = {need.word: need.tests for need in needs if need.kind is NeedKind.KEY}
    assert found == {"first": ("test_m.py::test_loop",), "third": ("test_m.py::test_next",)}
