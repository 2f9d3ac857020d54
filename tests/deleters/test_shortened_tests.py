"""Tests that stay without the statements which use removed code."""

from __future__ import annotations

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.python.remove import Remove
from excise.deleters.statement.problem_statement import write_statement
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Feature, FeatureKind

from .planned_deletions import REPO
from .test_remove_details import after, delete

CODE = (
    "class Part:\n    def save(self, path):\n        return path\n\n    def size_of_it(self):\n        return 1\n\n\n"
    "def parse(text):\n    return text\n\n\ndef load(text):\n    return text\n"
)
HEAD = "import os\nimport pytest\nfrom m import Part, load, parse\n\n\n"


def shortened(test: str, symbol: str = "parse") -> str:
    """What is left of a test when the code is removed; empty if it is hidden whole."""
    files = {"m.py": CODE, "test_m.py": HEAD + test}
    deletion = delete(files, f"m.py::{symbol}", hide=("test_m.py::test_it",))
    assert deletion.hidden == ("test_m.py::test_it",)
    text = after(files, deletion).get("test_m.py", "")
    assert ("def test_it" in text) == bool(deletion.shortened)
    return text.partition("def test_it")[2]


@pytest.mark.parametrize(
    ("test", "left"),
    [
        # one check of three
        (
            "def test_it():\n    assert load(1)\n\n    # of texts\n    assert parse(2)\n\n    assert load(3)\n",
            "():\n    assert load(1)\n\n    assert load(3)\n",
        ),
        # what only the check needed goes along, and what needs its result
        (
            "def test_it():\n    assert load(1)\n    name = 'a'\n    found = parse(name)\n    assert found\n"
            "    assert load(2) and load(3)\n    assert load(3)\n",
            "():\n    assert load(1)\n    assert load(2) and load(3)\n    assert load(3)\n",
        ),
        # a part of a block, and a block with nothing else
        (
            "def test_it():\n    with open(os.devnull) as f:\n        assert load(f)\n        assert parse(f)\n"
            "    with pytest.raises(ValueError):\n        parse(2)\n    assert load(3)\n    assert load(4)\n",
            "():\n    with open(os.devnull) as f:\n        assert load(f)\n    assert load(3)\n    assert load(4)\n",
        ),
    ],
)
def test_statements_that_use_the_code_go(test: str, left: str) -> None:
    assert shortened(test) == left


@pytest.mark.parametrize(
    "test",
    [
        "def test_it():\n    assert parse(2)\n    assert load(3)\n",  # as much goes as stays
        "def test_it():\n    assert load(1)\n    found = parse(2)\n    assert load(found)\n    assert found\n",
        "def test_it():\n    for n in parse(1):\n        assert load(n)\n        assert n\n    assert load(2)\n",
        "def test_it():\n    n = load(1)\n    assert n\n    n = parse(n)\n    assert n\n    assert load(n)\n",
        "def test_it():\n    name = 'par' + 'se'\n    assert load(name)\n    assert load(2)\n",  # it names nothing
    ],
)
def test_tests_of_the_code_go_whole(test: str) -> None:
    assert not shortened(test)


def test_a_test_that_is_named_after_the_code_goes_whole() -> None:
    body = "    assert load(1)\n    assert load(2)\n    assert parse(3)\n"
    files = {"m.py": CODE, "test_m.py": f"{HEAD}def test_parse_well():\n{body}\n\ndef test_parser():\n{body}"}
    deletion = delete(files, "m.py::parse", hide=("test_m.py::test_parse_well", "test_m.py::test_parser"))
    assert deletion.shortened == ("test_m.py::test_parser",)


def test_methods_are_found_by_distinctive_names_and_imports_go() -> None:
    test = (
        "def test_it():\n    part = Part()\n    assert part\n    assert load(part)\n"
        "    assert part.size_of_it() == os.sep\n"
    )
    assert "size_of_it" not in shortened(test, "Part.size_of_it")
    files = {"m.py": CODE, "test_m.py": HEAD + test}
    left = after(files, delete(files, "m.py::Part.size_of_it", hide=("test_m.py::test_it",)))["test_m.py"]
    assert "import os\n" not in left


def test_a_deleter_can_hide_tests_whole() -> None:
    test = "def test_it():\n    assert load(1)\n    assert parse(2)\n    assert load(3)\n"
    codebase = PythonCodebase.from_texts({"m.py": CODE, "test_m.py": HEAD + test})
    ids = ("test_m.py::test_it",)
    feature = Feature(
        feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=("m.py::parse",), symbols=("m.py::parse",), tests=ids
    )
    for name in ("remove", "remove_and_stub"):
        deleter = get(name)
        assert deleter.delete(codebase, feature).shortened == ids
        assert deleter.hiding_whole(ids).delete(codebase, feature).shortened == ()  # type: ignore[attr-defined]
    text = write_statement(codebase, Remove().delete(codebase, feature), REPO, ids).text
    assert "One test that is not, or only in part, in this checkout (from `test_m.py`) must pass" in text
