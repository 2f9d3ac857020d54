"""Tests that want the very numbers that the original draws are not graded."""

from __future__ import annotations

import pytest

from excise.deleters.statement.details import locate
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.language import Python
from excise.types import GivenBy, NeedKind

PICK = "from random import randrange\n\n\ndef pick(items):\n    return items[randrange(len(items))]\n"
FIRST = "def pick(items):\n    return items[0]\n"


@pytest.mark.parametrize(
    ("code", "body", "is_answer"),
    [
        (PICK, "random.seed(1)\n    assert pick('abc') == 'b'", True),
        (PICK, "seed(1)\n    found = pick('abc')\n    wanted = 'b'\n    case.assertEqual(found, wanted)", True),
        (PICK, "numpy.random.seed(1)\n    assert 'b' == pick('abc')", True),
        (PICK, "seed(1)\n    found = pick('abc')\n    seed(1)\n    assert pick('abc') == found", False),
        (PICK, "seed(1)\n    assert len(pick('abc')) == 1", False),
        (PICK, "seed(1)\n    number = len(pick('abc'))\n    assert number == 1", False),
        (PICK, "assert pick('a') == 'a'", False),
        (PICK, "plant.seed(1)\n    assert pick('a') == 'a'", False),
        (FIRST, "seed(1)\n    assert pick('abc') == 'a'", False),
    ],
)
def test_numbers_that_a_test_seeds_and_compares_are_the_answer(code: str, body: str, *, is_answer: bool) -> None:
    head = "import random\nfrom random import seed\nfrom m import pick\n\n\nclass TestPick:\n  def test_a(case):\n"
    test = f"{head}    {body}\n"
    codebase = PythonCodebase.from_texts({"m.py": code, "test_m.py": test})
    needs = Python().find_needs(codebase, ("m.py::pick",), ["test_m.py::TestPick::test_a"])
    found = locate([need for need in needs if need.kind is NeedKind.DRAWN], "`pick` is random", code, codebase)
    assert [(need.given, need.tests) for need in found] == (
        [(GivenBy.ANSWER, ("test_m.py::TestPick::test_a",))] if is_answer else []
    )
