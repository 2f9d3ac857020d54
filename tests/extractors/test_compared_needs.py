"""Details that no test needs, but a solution whose recorded calls are compared."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.language import Python
from excise.types import Need, NeedKind, Watched


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if x:\n        return True\n    return False", {"result find bool"}),
        ("if x:\n        return 1", set()),
        ("return x", set()),
    ],
)
def test_what_graders_compare_is_a_need(body: str, expected: set[str]) -> None:
    source = f"def find(x):\n    {body}\n\n\ndef other():\n    return True\n"
    test = "def test_a():\n    bank.find(bank.other())\n"
    needs = needs_of(source, test, ("bank.py::find", "bank.py::other"), Watched(compared=frozenset({"find"})))
    assert {need.label for need in needs if need.kind is NeedKind.RESULT} == expected


def test_a_text_that_only_recorded_calls_give_is_told_and_no_test_needs_it() -> None:
    source = (
        "def check(x):\n    if x:\n        yield 1, f'found forbidden end \"{x}\"'\n    else:\n"
        "        yield 2, 'missing the start'\n    yield 3, 'nothing is said of this'\n"
    )
    test = "def test_a():\n    assert list(bank.check(1))[0][0] == 1\n    assert 'missing the start' in bank.all()\n"
    given = frozenset({'found forbidden end "..."', "missing the start"})
    watched = Watched(compared=frozenset({"check"}), given=given)
    needs = needs_of(source, test, ("bank.py::check",), watched)
    assert {(need.word, need.template, need.tests) for need in needs if need.kind is NeedKind.TEXT} == {
        ('found forbidden end "', 'found forbidden end "{x}"', ()),
        ("missing the start", "", ("tests/test_bank.py::test_a",)),
    }


def needs_of(source: str, test: str, removed: Sequence[str], watched: Watched) -> Sequence[Need]:
    """The details of ``bank.py`` that one test needs, or a solution whose calls are compared."""
    codebase = PythonCodebase.from_texts({"bank.py": source, "tests/test_bank.py": f"import bank\n\n\n{test}"})
    return Python().find_needs(codebase, removed, ("tests/test_bank.py::test_a",), watched)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("self.wanted(self.path[:-1], key)", ["wanted(self.path[:-1], key)"]),
        ("self.wanted(key)", []),
        ("self.other(key, 1)", []),
        ("self.wanted(key, *self.path)", ["wanted(key, *self.path)"]),
    ],
)
def test_how_code_calls_what_a_test_passes_by_keyword_is_a_need(call: str, told: list[str]) -> None:
    source = (
        "class Reader:\n    def __init__(self, wanted=None):\n        self.wanted = wanted\n        self.path = [1]\n"
        f"\n    def push(self, key):\n        return {call}\n"
    )
    test = "def test_a():\n    assert bank.Reader(wanted=lambda *given: given == ((), 'a')).push('a')\n"
    needs = needs_of(source, test, ("bank.py::Reader.push",), Watched())
    assert [need.word for need in needs if need.kind is NeedKind.CALLED] == told


@pytest.mark.parametrize("head", ["", "from m import max\n\n\n", "def other(x, max):\n    return max(x, 1)\n\n\n"])
def test_other_functions_are_not_what_a_test_passes_by_keyword(head: str) -> None:
    source = f"{head}def limit(x, lo, hi):\n    return max(lo, min(x, hi))\n"
    test = "def test_a():\n    assert bank.limit(3, lo=1, hi=2) == dict(max=2)['max']\n"
    needs = needs_of(source, test, ("bank.py::limit",), Watched())
    assert not [need.word for need in needs if need.kind is NeedKind.CALLED]


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("assert bank.trace([1]) == '/a!b'", ["!", "/"]),
        ("self.assertEqual(bank.trace([1]), '/a')", ["/"]),
        ("assert bank.trace([1]) in {'/a!b'}", []),
        ("assert len(bank.trace([1], '/a!b')) == 4", []),
        ("assert bank.trace([1]) == 'a<b>c'", ["<{x}>"]),
    ],
)
def test_signs_in_what_results_are_compared_with_are_needs(test: str, told: list[str]) -> None:
    source = (
        "def trace(parts):\n    found = []\n    for x in parts:\n        found += ['/', ', ', '!', 'a', f'<{x}>']\n"
        "    return ''.join(found)\n"
    )
    needs = needs_of(source, f"def test_a():\n    {test}\n", ("bank.py::trace",), Watched())
    assert sorted(need.template or need.word for need in needs if need.kind is NeedKind.TEXT) == told


TEST = "tests/test_bank.py::test_a"
RETURNS, RAISES = ({TEST: frozenset({("bank.py", line)})} for line in (5, 4))


@pytest.mark.parametrize(
    ("watched", "docstring", "is_told"),
    [
        (Watched(lines=RETURNS), "Reads.", False),
        (Watched(lines=RAISES), "Reads.", True),
        (Watched(lines=RETURNS), "May raise ValueError.", True),
        (Watched(lines=RETURNS, compared=frozenset({"read"})), "Reads.", True),
        (Watched(lines={TEST: frozenset({("other.py", 5)})}), "Reads.", True),
        (Watched(), "Reads.", True),
    ],
)
def test_an_exception_that_no_test_makes_code_raise_is_no_detail(
    watched: Watched, docstring: str, *, is_told: bool
) -> None:
    source = (
        f'def read(x):\n    """{docstring}"""\n    if not x:\n        raise ValueError("too short")\n    return x\n'
    )
    test = "def test_a():\n    with raises(ValueError):\n        bank.other()\n    assert bank.read(3) == 'too short'\n"
    told = {"exception ValueError", "message too short"} if is_told else set()
    assert {need.label for need in needs_of(source, test, ("bank.py::read",), watched)} == told


@pytest.mark.parametrize(("last", "is_told"), [("int(x)", True), ("str(x)", False)])
def test_an_exception_that_other_code_of_the_function_may_raise_is_a_detail(last: str, *, is_told: bool) -> None:
    source = (
        f'def read(x):\n    """Reads."""\n    if not x:\n        raise ValueError("too short")\n    return {last}\n'
    )
    test = "def test_a():\n    with raises(ValueError):\n        bank.read('a')\n"
    needs = needs_of(source, test, ("bank.py::read",), Watched(lines=RETURNS))
    assert ("exception ValueError" in {need.label for need in needs}) is is_told


def test_attributes_that_code_does_not_read_are_no_needs_of_keywords() -> None:
    source = "def helper(loud, path):\n    name = path\n    return name if loud else path\n"
    test = "def test_a():\n    assert bank.run(Namespace(loud=True, name='x')) == bank.helper(True, 'x')\n"
    assert not needs_of(source, test, ("bank.py::helper",), Watched())


def test_texts_that_are_joined_may_be_many() -> None:
    source = "def trace(x):\n    found = ['/', x]\n    return ''.join(found)\n"
    test = f"def test_a():\n    assert bank.trace(1) == {' + '.join(['x'] * 700)} + '/1'\n"
    needs = needs_of(source, test, ("bank.py::trace",), Watched())
    assert "/" in {need.word for need in needs}
