"""Details that no test needs, but a solution whose recorded calls are compared."""

from __future__ import annotations

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.language import Python
from excise.types import NeedKind, Watched


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if x:\n        return True\n    return False", {"result find bool"}),
        ("if x:\n        return 1", set()),
        ("return x", set()),
    ],
)
def test_what_graders_compare_is_a_need(body: str, expected: set[str]) -> None:
    files = {
        "bank.py": f"def find(x):\n    {body}\n\n\ndef other():\n    return True\n",
        "tests/test_bank.py": "import bank\n\n\ndef test_a():\n    bank.find(bank.other())\n",
    }
    watched = Watched(compared=frozenset({"find"}))
    removed, tests = ("bank.py::find", "bank.py::other"), ("tests/test_bank.py::test_a",)
    needs = Python().find_needs(PythonCodebase.from_texts(files), removed, tests, watched)
    assert {need.label for need in needs if need.kind is NeedKind.RESULT} == expected


def test_a_text_that_only_recorded_calls_give_is_told_and_no_test_needs_it() -> None:
    source = (
        "def check(x):\n    if x:\n        yield 1, f'found forbidden end \"{x}\"'\n    else:\n"
        "        yield 2, 'missing the start'\n    yield 3, 'nothing is said of this'\n"
    )
    test = "def test_a():\n    assert list(bank.check(1))[0][0] == 1\n    assert 'missing the start' in bank.all()\n"
    codebase = PythonCodebase.from_texts({"bank.py": source, "tests/test_bank.py": f"import bank\n\n\n{test}"})
    given = frozenset({'found forbidden end "..."', "missing the start"})
    watched = Watched(compared=frozenset({"check"}), given=given)
    needs = Python().find_needs(codebase, ("bank.py::check",), ("tests/test_bank.py::test_a",), watched)
    assert {(need.word, need.template, need.tests) for need in needs if need.kind is NeedKind.TEXT} == {
        ('found forbidden end "', 'found forbidden end "{x}"', ()),
        ("missing the start", "", ("tests/test_bank.py::test_a",)),
    }
