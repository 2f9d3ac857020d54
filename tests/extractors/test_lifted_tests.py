"""Lifted tests: which tests can be divided, what each form contains, and which reports a judging run accepts."""

from __future__ import annotations

import collections
import decimal
import enum
from typing import Any

import pytest

from excise.extractors.python.lifting.lifted_tests import lifted

from .inside_programs import decoding, load, values

assert values is not decoding  # both are loaded before the module that imports them
inside = load("excise_lifted")

HEAD = """\"\"\"About.\"\"\"
import datetime
import json
import unittest
import pytest
from project import Kind, code, other

LIMIT = 17
TABLE = [("abc", 41), ("d", 42)]
UNUSED = {"answer": 43}


def check_all(value):
    assert value == 44


def prepared():
    return [45]


@pytest.fixture
def given():
    return 46


"""

DIVIDED = {
    "a literal": ("def test_it():\n    assert code(1) == 990", ["code(1)"], ["990"]),
    "a literal on the left": ("def test_it():\n    assert 990 <= code(1) < 991", ["code(1)"], ["990", "991"]),
    "membership": ("def test_it():\n    assert 'ninety' in code(1)", ["code(1)"], ["ninety"]),
    "identity": ("def test_it():\n    assert code(1) is None", ["code(1)"], ["None"]),
    "a truth": ("def test_it():\n    assert not code(1).ready, 'message'", ["code(1).ready"], ["message"]),
    "several": ("def test_it():\n    assert code(1) and code(2) == 992", ["code(1)", "code(2)"], ["992"]),
    "a type": ("def test_it():\n    assert isinstance(code(1), Kind)", ["type(code(1))"], ["Kind"]),
    "a constant of the file": ("def test_it():\n    assert code(1) == LIMIT", ["code(1)"], ["LIMIT", "17"]),
    "the standard library": (
        "def test_it():\n    assert code(1) == datetime.date(1990, 1, 2)", ["code(1)"], ["1990"]),
    "a local value": (
        "def test_it():\n    wanted = [993]\n    assert code(1) == wanted", ["code(1)"], ["993", "wanted"]),
    "an exception": (
        "def test_it():\n    with pytest.raises(KeyError, match='ninety') as caught:\n        code(1)\n"
        "    assert caught.value.args == (994,)\n    caught.match('four')",
        ["code(1)", "caught.value.args"], ["KeyError", "ninety", "994", "four"]),
    "a method": (
        "class TestIt(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(code(1), 995, 'why')\n"
        "        with self.assertRaises(KeyError):\n            code(2)\n"
        "        self.assertRaises(LookupError, code, 3, named=4)\n        self.assertNotIsInstance(code(5), str)",
        ["code(1)", "code(2)", "code(3, named=4)", "type(code(5))"], ["995", "why", "KeyError", "LookupError", "str"]),
    "a table": (
        "@pytest.mark.parametrize('text, wanted', [('a', 996), pytest.param('b', 997, id='ninety')])\n"
        "def test_it(text, wanted):\n    assert code(text) == wanted",
        ["code(text)", "'a'", "'b'"], ["996", "997", "ninety"]),
    "a table of the file": (
        "@pytest.mark.parametrize('text, wanted', TABLE)\ndef test_it(text, wanted):\n    assert code(text) == wanted",
        ["code(text)", "'abc'"], ["41", "42"]),
    "a loop": (
        "def test_it():\n    for text, wanted in [('a', 998), ('b', 999)]:\n        assert code(text) == wanted",
        ["code(text)", "'a'", "'b'"], ["998", "999"]),
    "a docstring": ("def test_it():\n    '''It is 990.'''\n    assert code(1) == 990", ["code(1)"], ["990"]),
    "a local input": (
        "def test_it():\n    x = 5\n    assert code(x) == 990", ["code(x)", "x = 5"], ["990"]),
}  # fmt: skip

REFUSED = {
    "two values of the code": ("def test_it():\n    assert code(1) == other(1)", "nothing is expected"),
    "a fixture": ("def test_it(given):\n    assert code(1) == given", "nothing is expected"),
    "mostly values of the code": (
        "def test_it():\n    assert code(1) == 2\n    assert code(2) == other(1)\n    assert code(3) == other(3)",
        "too little is expected"),
    "nothing": ("def test_it():\n    code(1)", "nothing is expected"),
    "a helper that checks": ("def test_it():\n    assert code(1) == 2\n    check_all(code(2))", "checks by check_all"),
    "a helper that is passed on": (
        "def test_it():\n    assert code(1) == 2\n    code(check_all)", "checks by a helper"),
    "a mock": (
        "def test_it(mocker):\n    assert code(1) == 2\n    mocker.it.assert_called_with(3)",
        "checks by assert_called_with"),
    "a failure": (
        "def test_it():\n    assert code(1) == 2\n    if code(3):\n        pytest.fail('4')", "checks by fail"),
    "a nested function": (
        "def test_it():\n    assert code(1) == 2\n    def inner():\n        assert code(3) == 4\n    inner()",
        "assertion within an expression or function"),
    "a loop over other values": (
        "def test_it():\n    for text, wanted in zip(['a'], [5]):\n        assert code(text) == wanted",
        "loop over expected values"),
    "an error of its own": (
        "def test_it():\n    assert code(1) == 2\n    if code(3) != 4:\n        raise AssertionError",
        "raises AssertionError"),
    "a test elsewhere": ("def test_other():\n    pass", "not written in this file"),
}  # fmt: skip


@pytest.mark.parametrize("name", DIVIDED)
def test_what_is_expected_is_in_the_judging_form_only(name: str) -> None:
    text, kept, dropped = DIVIDED[name]
    function = "TestIt::test_it" if "class TestIt" in text else "test_it"
    found = lifted((HEAD + text).encode(), [function])
    assert found is not None
    assert (found.functions, found.refused) == ((function,), {})
    observing, judging = found.observing.decode(), found.judging.decode()
    assert [part for part in kept if part not in observing] == [], observing
    assert [part for part in dropped if part in observing] == [], observing
    assert not {"44", "UNUSED", "About"} & set(observing.split())
    compile(observing, "observing", "exec")
    compile(judging, "judging", "exec")
    constants = [part for part in dropped if part.isdigit() or part in {"KeyError", "Kind", "LookupError"}]
    assert [part for part in constants if part not in judging] == [], judging


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_divided_is_refused_with_a_reason(name: str) -> None:
    text, reason = REFUSED[name]
    found = lifted((HEAD + text).encode(), ["test_it"])
    assert found is not None
    assert (found.functions, found.refused) == ((), {"test_it": reason})


def test_a_file_that_cannot_be_parsed_has_no_forms() -> None:
    assert lifted(b"def test_it(:\n", ["test_it"]) is None


def test_other_tests_and_what_only_they_use_are_left_out() -> None:
    text = "def test_it():\n    assert code(prepared()) == 1\n\ndef test_more():\n    assert code(UNUSED) == 990\n"
    found = lifted((HEAD + text).encode(), ["test_it"])
    assert found is not None
    observing = found.observing.decode()
    assert "prepared" in observing
    assert not any(part in observing for part in ("test_more", "UNUSED", "990", "check_all", "given"))


class Colour(enum.Enum):
    RED = 1


class Text(str):
    pass


Pair = collections.namedtuple("Pair", "one two")


class Channel:
    """Keeps what an observer writes."""

    def __init__(self) -> None:
        self.written: list[list[Any]] = []

    def write(self, kind: str, place: int, value: object) -> None:
        assert kind == "see"
        self.written.append([place, value])


def judged(value: object) -> Any:
    """A value after it was reported and read."""
    channel = Channel()
    inside.Observer(channel).see(7, value)
    judge = inside.Judge({"test": channel.written})
    judge.begin("test")
    return judge.value(7)


@pytest.mark.parametrize(
    "value",
    [1, True, None, 2.5, "text", b"bytes", [1, (2, {"a": {3}})], decimal.Decimal("1.5"), int, Colour.RED, Colour,
     range(3), collections.Counter("aab")],
    ids=str,
)  # fmt: skip
def test_plain_values_are_read_as_they_were(value: object) -> None:
    found = judged(value)
    assert (found, type(found)) == (value, type(value))


def test_objects_of_derived_classes_are_read_as_the_builtin_value() -> None:
    assert (judged(Text("a")), judged(Pair(1, 2))) == ("a", (1, 2))
    assert type(judged(Text("a"))) is str


def test_what_cannot_be_reported_can_only_be_compared_by_identity() -> None:
    found = judged(object())
    assert found is not None
    with pytest.raises(AssertionError):
        assert found != 1
    inner = judged({"key": [object(), 2]})
    assert ("key" in inner, len(inner["key"]), inner["key"][1]) == (True, 2, 2)
    with pytest.raises(AssertionError):
        assert inner == {"key": [1, 2]}
    endless: list[object] = []
    endless += [endless, endless]
    assert judged(endless) is not None
    assert judged("x" * (inside.MAX_VALUE + 1)) is not None
    with pytest.raises(AssertionError):
        assert judged("x" * (inside.MAX_VALUE + 1)) == "x"


def test_errors_are_raised_again_with_their_class_and_text() -> None:
    class Own(KeyError):
        def __init__(self, number: int) -> None:
            super().__init__(number)

        def __str__(self) -> str:
            return "text of its own"

    channel = Channel()
    with inside.Observer(channel).raising(3) as caught:
        raise Own(5)
    assert caught.value.args == (5,)
    with inside.Observer(channel).raising(4):
        pass
    with inside.Observer(channel).raising(5):
        raise SystemExit(3)
    judge = inside.Judge({"test": channel.written})
    judge.begin("test")
    with pytest.raises(SystemExit):
        judge.raise_again(5)
    with pytest.raises(KeyError, match="text of its own"):
        judge.raise_again(3)
    judge.raise_again(4)
    with pytest.raises(AssertionError, match="nothing was reported"):
        judge.raise_again(3)


@pytest.mark.parametrize(
    "node",
    [
        ["n", "os:system", "true"], ["new", "os:system", [["s", "true"]]], ["ref", "unittest.mock:ANY"],
        ["obj", "unittest.mock:_ANY", None, []], ["m", "this"], ["fn", "os", "", []], ["e", "os:environ", "PATH"],
        ["l", [["n", "os:system", "true"]]], ["d", [[["s", "a"], ["made", "os:system", [], [], []]]]],
        ["dd", ["ref", "os:getpid"], []], ["pa", [["ref", "os:getpid"], ["t", []], ["d", []]]],
        ["type", ["no_such_module:name", "os:environ"]],
    ],
    ids=str,
)  # fmt: skip
def test_reports_that_would_import_or_call_something_are_refused(node: list[Any]) -> None:
    judge = inside.Judge({"test": [[0, node]]})
    judge.begin("test")
    with pytest.raises(AssertionError):
        judge.value(0)
