"""Tests with wrong expectations: each fails on honest code, and names and parameters stay."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from excise.extractors.python.mirror import mirrored

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
def test_each_fails_once_turned_around(name: str) -> None:
    run(SOURCE.encode(), name)
    changed = mirrored(SOURCE.encode(), [name])
    assert changed is not None
    with pytest.raises(AssertionError):
        run(changed, name)
    run(changed, "test_other")


def test_a_value_that_equals_everything_passes_when_turned_around() -> None:
    changed = mirrored(SOURCE.replace("return 2 * x", "return Equal()").encode(), ["test_number", "TestIt::test_equal"])
    assert changed is not None
    changed += b"\nclass Equal:\n    __eq__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"
    run(changed, "test_number")
    run(changed, "TestIt::test_equal")


def test_parameters_with_ids_are_changed_where_they_stand() -> None:
    source = (
        "import pytest\n"
        '@pytest.mark.parametrize("side,expected", [(1, 1), (2, 4)], ids=["a", "b"])\n'
        "def test_it(side, expected):\n    assert side**2 == expected\n"
    )
    changed = mirrored(source.encode(), ["test_it"])
    assert changed is not None
    assert "[(1, 2), (2, 5)]" in ast.unparse(ast.parse(changed))


def test_nothing_is_made_of_other_files() -> None:
    assert mirrored(SOURCE.encode(), ["test_missing"]) is None
    assert mirrored(b"def (", ["test_number"]) is None
