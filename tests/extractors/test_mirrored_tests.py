"""Mirrored tests, which have wrong expectations: each fails on honest code, names and parameters stay the same."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from excise.extractors.python.execution.mirrored_tests import mirrored

SOURCE = '''"""About."""
from __future__ import annotations
import unittest

def double(x):
    return 2 * x

def test_number():
    assert double(2) == 4

def test_text():
    assert double("a") == "aa"

def test_list():
    assert double([1]) == [1, 1]

def test_name(expected=6):
    assert double(3) == expected

def test_nothing_to_change():
    double(3)

def test_truth():
    assert double(3)

def test_other():
    assert double(1) == 2

class TestIt(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(double(2), 4)

    def test_literal_first(self):
        self.assertEqual(4, double(2))
'''
ALL = [
    "test_number", "test_text", "test_list", "test_name", "test_nothing_to_change", "test_truth",
    "TestIt::test_equal", "TestIt::test_literal_first",
]  # fmt: skip


def run(source: bytes, name: str) -> None:
    scope: dict[str, Any] = {"__name__": "mirror"}
    exec(compile(source, "mirror", "exec"), scope)
    cls, _, method = name.rpartition("::")
    if cls:
        getattr(scope[cls](method), method)()
    else:
        scope[name]()


@pytest.mark.parametrize("name", ALL)
def test_each_mirrored_test_fails_on_honest_code(name: str) -> None:
    run(SOURCE.encode(), name)
    changed = mirrored(SOURCE.encode(), [name])
    assert changed is not None
    with pytest.raises(AssertionError):
        run(changed, name)
    run(changed, "test_other")


def test_a_value_that_equals_everything_passes_mirrored_tests() -> None:
    changed = mirrored(SOURCE.replace("return 2 * x", "return Equal()").encode(), ["test_number", "TestIt::test_equal"])
    assert changed is not None
    changed += b"\nclass Equal:\n    __eq__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"
    run(changed, "test_number")
    run(changed, "TestIt::test_equal")


def test_parameters_with_ids_are_changed_in_place() -> None:
    source = (
        "import pytest\n"
        '@pytest.mark.parametrize("side,expected", [(1, 1), (2, 4)], ids=["a", "b"])\n'
        "def test_it(side, expected):\n    assert side**2 == expected\n"
    )
    changed = mirrored(source.encode(), ["test_it"])
    assert changed is not None
    assert "[(1, 2), (2, 5)]" in ast.unparse(ast.parse(changed))


def test_other_files_are_not_mirrored() -> None:
    assert mirrored(SOURCE.encode(), ["test_missing"]) is None
    assert mirrored(b"def (", ["test_number"]) is None


LIARS = """
class Equal:
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False

class Number(int):
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = int.__hash__
"""


@pytest.mark.parametrize("answer", ["Equal()", "Number(3)"])
@pytest.mark.parametrize(
    "body",
    ["assert expected == double(2)", "assert double(2) == expected", "got = double(2)\n    assert expected == got"],
)
def test_an_object_equal_to_everything_passes_on_either_side_of_a_comparison(answer: str, body: str) -> None:
    honest = f"def double(x):\n    return 2 * x\n\ndef test_it(expected=4):\n    {body}\n"
    changed = mirrored(honest.encode(), ["test_it"])
    lying = mirrored((LIARS + honest.replace("2 * x", answer)).encode(), ["test_it"])
    assert changed is not None
    assert lying is not None
    with pytest.raises(AssertionError):
        run(changed, "test_it")
    run(lying, "test_it")


def test_a_block_that_must_raise_is_emptied() -> None:
    honest = "from pytest import raises\n\ndef test_it():\n    with raises(KeyError):\n        {}['a']\n"
    swallowing = honest.replace("from pytest import raises", "from contextlib import suppress as raises")
    for text, passes in ((honest, False), (swallowing, True)):
        changed = mirrored(text.encode(), ["test_it"])
        assert changed is not None
        try:
            run(changed, "test_it")
            assert passes
        except BaseException as error:
            assert not passes, error  # noqa: PT017


def test_no_name_reveals_a_mirrored_test() -> None:
    made = {mirrored(b"def test_it(x=1):\n    assert x == y\n", ["test_it"]) for _ in range(5)}
    assert len(made) > 1
    assert not any(b"_expected_value" in (text or b"") for text in made)


def test_names_of_tests_do_not_change() -> None:
    changed = mirrored(b"def test_expected_value():\n    assert double(2) == 4\n", ["test_expected_value"])
    assert changed is not None
    assert b"def test_expected_value():" in changed
