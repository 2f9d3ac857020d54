"""Rows of parametrised tests, compared with the ids that pytest itself gives before and after they are gone."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.python.edits.list_elements import remove_elements
from excise.extractors.python.analysis.grammar import parse_tree
from excise.extractors.python.analysis.parameter_rows import RowsApart, rows_apart
from excise.extractors.python.analysis.parsed_file import PythonModule
from excise.extractors.python.analysis.parser import parse_module

PATH = "test_rows.py"
SOURCE = """
import enum
import os
import pytest

class Color(enum.Enum):
    RED = 1
    BLUE = 2

CASES = [("a", 1), ("b", 2), ("c", 3)]
PAIRS = [("a", 1), ("b", 2), ("c", 3)]
SHARED = ["a", "b"]
LONG = "x" * 200

@pytest.mark.parametrize("value", ["a", "b\\n", "\\u00e9", b"\\xff", 1, 2.5, None, True, -3, ""])
def test_values(value): pass

@pytest.mark.parametrize("value", [[1], [2], {3}])
def test_numbered(value): pass

@pytest.mark.parametrize(("text", "value"), [
    ("a", [1]),
    ("b", [2]),  # the second one
    ("c", [3]),
])
def test_half_numbered(text, value): pass

@pytest.mark.parametrize("x", ["a", "b"])
@pytest.mark.parametrize("y, z", [(1, 2), (3, 4), (5, 6)])
def test_stacked(x, y, z): pass

@pytest.mark.parametrize("x", ["a", "b", "c"], ids=["one", "two", "three"])
def test_named(x): pass

@pytest.mark.parametrize("x", [
    pytest.param([1], id="one"), pytest.param([2], id="two", marks=pytest.mark.skip), pytest.param("c"),
])
def test_param(x): pass

@pytest.mark.parametrize("text, number", PAIRS)
def test_constant(text, number): pass

@pytest.mark.parametrize("x", ["a", "b", "a", "c1", "c1"])
def test_repeated(x): pass

@pytest.mark.parametrize("x", ["a", "LONGTEXT", "b", "LONGTEXTS"])
def test_long(x): pass

@pytest.mark.parametrize("x, y", [
    ("a"
     "b", 1),
    ("c", 2),
])
def test_joined(x, y): pass

@pytest.mark.parametrize("x", [os.path.join, Color.BLUE, int, len])
def test_objects(x): pass

class TestGroup:
    @pytest.mark.parametrize(argnames=["x"], argvalues=("a", "b"))
    def test_method(self, x): pass

@pytest.mark.parametrize("x", SHARED)
def test_shared(x): assert x in SHARED

@pytest.mark.parametrize("x", ["a", *SHARED])
def test_unpacked(x): pass

@pytest.mark.parametrize("x", ["a", "b"], ids=str.upper)
def test_called(x): pass

@pytest.mark.parametrize("x", ["a", "b"])
@pytest.mark.parametrize("y", range(2))
def test_range(x, y): pass

class TestConstant:
    CASES = ["b", "c"]

    @pytest.mark.parametrize("text", CASES)
    def test_own(self, text): pass

@pytest.fixture(params=["p", "q"], autouse=True)
def around(request): pass
""".replace("LONGTEXTS", "s" * 120).replace("LONGTEXT", "l" * 120)
FIXTURES = SOURCE.index("@pytest.fixture")
"""Where the fixture begins that gives all tests further ids: most checks leave it out."""


def collected(folder: Path, source: str) -> list[str]:
    """The ids of the tests of a file, as pytest gives them."""
    (folder / PATH).write_text(source)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", PATH]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return [line for line in run.stdout.splitlines() if line.startswith(PATH)]


def module_of(source: str) -> PythonModule:
    return parse_module(PATH, source.encode())


def apart(source: str, function: str, parameters: set[str]) -> RowsApart | None:
    module = module_of(source)
    symbol = next(each for each in module.symbols if each.qualname == function)
    return rows_apart(module, symbol, parameters)


def without(source: str, found: RowsApart) -> str:
    """The source without the elements."""
    data = source.encode()
    root = parse_tree(data).root_node
    edits = []
    for container in {each.container for each in found.elements}:
        node = root.descendant_for_byte_range(*container)
        assert node is not None
        edits += remove_elements(data, node, {e.element for e in found.elements if e.container == container})
    return apply_edits(data, edits).decode()


GONE = {
    "test_values": {"a", "b\\n", "\\xe9", "\\xff", "1", "None", "-3", ""},
    "test_numbered": {"value2"},
    "test_half_numbered": {"b-value1"},
    "test_stacked": {"3-4-a", "3-4-b"},
    "test_named": {"one", "three"},
    "test_param": {"two", "c"},
    "test_constant": {"b-2"},
    "test_repeated": {"b", "c1_0", "c1_1"},
    "test_long": {"a"},
    "test_joined": {"ab-1"},
    "test_objects": {"len"},
    "TestGroup.test_method": {"b"},
}
"""Functions to the parameter ids that go."""


def test_pytest_collects_what_is_told(tmp_path: Path) -> None:
    source = SOURCE[:FIXTURES]
    before, after = collected(tmp_path, source), source
    gone, renamed = set[str](), set[str]()
    for function, parameters in GONE.items():
        stem = f"{PATH}::{function.replace('.', '::')}"
        found, then = apart(source, function, parameters), apart(after, function, parameters)
        assert found is not None, function
        assert then is not None
        gone |= {f"{stem}[{each}]" for each in parameters}
        renamed |= {f"{stem}[{each}]" for each in found.renamed}
        after = without(after, then)
    assert gone <= set(before)
    left = collected(tmp_path, after)
    assert len(left) == len(before) - len(gone)
    assert set(left) & set(before) >= set(before) - gone - renamed
    assert not gone & set(left)
    assert f"{PATH}::test_half_numbered[c-value2]" in renamed
    assert f"{PATH}::test_half_numbered[c-value1]" in left
    assert "# the second one" not in after


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        ("test_values", {"unknown"}),
        ("test_numbered", {"value1"}),  # the third one would be value1
        ("test_stacked", {"3-4-a"}),  # one of two with the row
        ("test_named", {"one", "two", "three"}),  # all of them
        ("test_shared", {"a"}),  # the test itself reads the list
        ("test_unpacked", {"a"}),
        ("test_called", {"A"}),
        ("test_range", {"0-a", "1-a"}),
        ("test_objects", {"Color.BLUE"}),  # what follows might be x1
        ("test_values", set()),
        ("TestConstant.test_own", {"b"}),  # the module has a list of this name, too
    ],
)
def test_rows_that_do_not_go_alone(function: str, parameters: set[str]) -> None:
    assert apart(SOURCE, function, parameters) is None


def test_ids_of_fixtures_are_not_known(tmp_path: Path) -> None:
    source = textwrap.dedent(SOURCE)
    ids = collected(tmp_path, source)
    found = {each.partition("[")[2][:-1] for each in ids if each.startswith(f"{PATH}::test_named[")}
    assert found == {f"{fixture}-{each}" for fixture in "pq" for each in ("one", "two", "three")}
    assert apart(source, "test_named", {"p-one", "q-one"}) is None


def test_rows_of_many_names_are_not_told_apart() -> None:
    names = ", ".join(f"n{n}" for n in range(20))
    values = ", ".join(f"os.n{n}" for n in range(20))
    source = (
        f'import os, pytest\n\n@pytest.mark.parametrize("{names}", [({values}), ({values})])\ndef test_a(n0): pass\n'
    )
    assert apart(source, "test_a", {"-".join(f"n{n}" for n in range(20))}) is None


def test_the_ids_that_go_tell_which_ids_long_texts_have() -> None:
    texts = [letter * 101 for letter in "abcd"]
    rows = "".join(f"    ({text!r}, {number}),\n" for number, text in enumerate(texts))
    source = f"import pytest\n\n@pytest.mark.parametrize('x, y', [\n{rows}])\ndef test_it(x, y): pass\n"
    written = apart(source, "test_it", {f"{texts[1]}-1"})
    numbered = apart(source, "test_it", {"x3-3"})
    assert written is not None
    assert numbered is not None
    assert "bbb" not in without(source, written)
    assert "ddd" not in without(source, numbered)
    assert not written.renamed
    assert apart(source, "test_it", {"x1-1"}) is not None, "no other row becomes x1-1: numbers differ"
    assert apart(source, "test_it", {f"{texts[1]}-1", "x3-3"}) is None
