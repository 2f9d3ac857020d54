"""What is gone from an edited copy of the sources."""

from __future__ import annotations

import pytest

from excise.deleters.edits.removed_parts import (
    lines_of_parts,
    places_of_parts,
    removed_parts,
    symbol_of_part,
    texts_of_parts,
)
from excise.errors import DeletionRefused
from excise.extractors.features.proposed_features import removed_symbols, shortened_functions
from excise.extractors.python.analysis.codebase import PythonCodebase

BEFORE = '''
LIMIT = 3


def show(x, form):
    """Shows it."""
    if form == "json":
        return repr(x)
    return str(x)


class Box:
    size = 1

    def open(self):
        for number in range(3):
            print(number)

    def close(self):
        def inner():
            return 1
        return inner()


class Empty:
    pass
'''


def gone(after: str | None, before: str = BEFORE) -> tuple[list[str], dict[str, str]]:
    """Ids of what is gone from ``m.py``, and the functions that lost a part."""
    old = PythonCodebase.from_texts({"m.py": before, "test_m.py": "def test_m():\n    pass\n"})
    new = PythonCodebase.from_texts({} if after is None else {"m.py": after})
    removed = removed_symbols(old, new, ["m.py", "test_m.py", "README"])
    return [s.symbol_id for s in removed], shortened_functions(old, new, ["m.py", "test_m.py"], removed)


@pytest.mark.parametrize(
    ("old", "new", "removed"),
    [
        ("LIMIT = 3", "", []),
        ("class Empty:\n    pass\n", "", ["m.py::Empty"]),
        ("    def open(self):\n        for number in range(3):\n            print(number)\n", "", ["m.py::Box.open"]),
        ("        for number in range(3):\n            print(number)\n", "        pass\n", ["m.py::Box.open"]),
        (
            "        for number in range(3):\n            print(number)\n",
            "        raise NotImplementedError('open')\n",
            ["m.py::Box.open"],
        ),
        ("def show(", "def display(", ["m.py::show"]),
    ],
)
def test_definitions_without_a_successor_or_with_an_empty_one_are_gone(old: str, new: str, removed: list[str]) -> None:
    assert old in BEFORE
    assert gone(BEFORE.replace(old, new)) == (removed, {})


def test_members_of_what_is_gone_and_empty_bodies_that_were_empty_do_not_count() -> None:
    start, end = BEFORE.index("class Box"), BEFORE.index("class Empty")
    assert gone(BEFORE[:start] + BEFORE[end:]) == (["m.py::Box"], {})
    assert gone("def f():\n    ...\n", "def f():\n    pass\n") == ([], {})
    assert gone(None) == (["m.py"], {})


def test_functions_with_fewer_lines_of_code_lost_a_part() -> None:
    branch = '    if form == "json":\n        return repr(x)\n'
    removed, shortened = gone(BEFORE.replace(branch, "").replace("return inner()", "return 2"))
    assert removed == []
    assert shortened == {"m.py::show": 'def show(x, form):\n    """Shows it."""\n    return str(x)'}
    before = BEFORE[BEFORE.index("def show") : BEFORE.index("class Box")].rstrip()
    texts = texts_of_parts("m.py::show", before, shortened["m.py::show"])
    assert texts == [("m.py::show#part1", branch)]
    assert removed_parts(before, before.removesuffix("    return str(x)").rstrip()) == ["    return str(x)"]
    assert symbol_of_part("m.py::show#part1") == "m.py::show"
    comments = ("m.py::show#part2", '    # case "json":\n\n    #     return repr(x)\n')
    assert lines_of_parts([*texts, comments, ("m.py::Box", "class Box: ...")]) == {"m.py::show": 2}


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        ("    if x == 2:\n        return 1\n", {6}),
        ("    if x == 2:\n", {5}),
        (
            "    elif (\n        x == 3\n        or x == 4\n    ):  # so\n        y = {0: 1}\n        return y\n",
            {11, 12},
        ),
        ("        return y\n    if x == 2:\n", {4, 5}),
        ("    # six\n\n    if x == 6:\n        return 6\n", {16}),
        ("    if x == 5: ...\n", set()),
    ],
)
def test_lines_of_a_part_are_those_below_its_condition(part: str, lines: set[int]) -> None:
    source = (
        "def f(x):\n    y = x\n    if x == 1:\n        return y\n    if x == 2:\n        return 1\n"
        "    elif (\n        x == 3\n        or x == 4\n    ):  # so\n        y = {0: 1}\n        return y\n"
        "    # six\n\n    if x == 6:\n        return 6\n    return x\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source})
    found = places_of_parts([("m.py::f#part1", part), ("m.py::f", source)], codebase)
    assert found.get("m.py::f", frozenset()) == {f"m.py:{line}" for line in lines}


def test_a_nested_function_is_a_part_of_the_one_around_it() -> None:
    nested = "        def inner():\n            return 1\n        return inner()\n"
    removed, shortened = gone(BEFORE.replace(nested, "        return 1\n"))
    assert (removed, list(shortened)) == ([], ["m.py::Box.close"])


def test_a_file_that_no_longer_parses_is_refused() -> None:
    with pytest.raises(DeletionRefused, match="no longer parses"):
        gone(BEFORE.replace("def show(x, form):", "def show(x, form:"))
