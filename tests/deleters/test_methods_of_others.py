"""Uses in problem statements: those of methods that only have the name of a removed one."""

from __future__ import annotations

import pytest

from excise.deleters.python.statement_words import PythonWords
from excise.deleters.statement.uses import where_used
from excise.extractors.python.analysis.codebase import PythonCodebase

from .planned_deletions import delete_symbol


@pytest.mark.parametrize(
    ("head", "lines", "is_shown"),
    [
        ("from tree import Tree", "file = open(x)\n    file.close()", False),
        ("from tree import Tree", "with open(x) as file:\n        file.close()", False),
        ("from tree import Tree", "file = Tree(x)\n    file.close()", True),
        ("from tree import Tree", "file = open(x)\n    file = Tree(file)\n    file.close()", True),
        ("from tree import Tree", "file = sorted(x)[0]\n    file.close()", True),
        ("from tree import Tree", "x.close()", True),
        ("import forest", "x.close()", False),
        ("import re\nimport forest", "re.compile(x).match(x)", False),
        ("import re\nfrom tree import Tree", "found = re.compile(x)\n    found.match(x)", False),
        ("import forest", "x.fell()", True),
    ],
)
def test_a_method_of_a_file_is_no_use_of_another_one(head: str, lines: str, *, is_shown: bool) -> None:
    name = next(name for name in ("fell", "match", "close") if f".{name}(" in lines)
    tree = f"class Tree:\n    def {name}(self):\n        return 1\n"
    files = {"tree.py": tree, "lib.py": f"{head}\n\n\ndef use(x):\n    {lines}\n", "test_m.py": "def test_m(): ..."}
    codebase, gone = PythonCodebase.from_texts(files), f"tree.py::Tree.{name}"
    deletion = delete_symbol(codebase, gone, ("test_m.py::test_m",), "stub")
    text = where_used(codebase, [codebase.symbols()[gone]], {gone: ["lib.py::use"]}, deletion, PythonWords())
    assert bool(text) is is_shown


@pytest.mark.parametrize(
    ("bound", "receiver", "is_shown"),
    [
        ("PATTERN: object = re.compile(\n        'a',\n    )", "cls.PATTERN", False),
        ("PATTERN = re.compile('a')", "self.PATTERN", False),
        ("PATTERN = compile_it('a')", "cls.PATTERN", False),
        ("PATTERN = re.compile('a')", "PATTERN", True),  # a variable that is bound elsewhere
        ("PATTERN = re.compile('a')\n    PATTERN = Tree()", "cls.PATTERN", True),
        ("PATTERN = Tree()", "cls.PATTERN", True),
        ("PATTERN = copy(Tree())", "cls.PATTERN", True),
        ("PATTERN = wrap(Tree())", "cls.PATTERN", True),
        ("PATTERN = re.compile('a')", "patterns.OF_TREES", False),
        ("PATTERN = re.compile('a')", "patterns.TREE", True),
    ],
)
def test_a_method_of_what_another_project_made_is_no_use(bound: str, receiver: str, *, is_shown: bool) -> None:
    files = {
        "tree.py": (
            "import re\nfrom copy import copy\nfrom re import compile as compile_it\nimport patterns\n"
            f"from own import wrap\n\n\nclass Tree:\n    {bound}\n\n    def match(self):\n        return 1\n\n"
            f"    def use(self, cls, x):\n        return {receiver}.match(x)\n"
        ),
        "own.py": "def wrap(x):\n    return x\n",
        "patterns.py": "import re\nimport tree\n\nOF_TREES = re.compile('a')\nTREE = tree.Tree()\n",
        "test_m.py": "def test_m(): ...",
    }
    codebase, gone = PythonCodebase.from_texts(files), "tree.py::Tree.match"
    deletion = delete_symbol(codebase, gone, ("test_m.py::test_m",), "stub")
    text = where_used(codebase, [codebase.symbols()[gone]], {gone: ["tree.py::Tree.use"]}, deletion, PythonWords())
    assert bool(text) is is_shown


@pytest.mark.parametrize(
    ("bound", "is_shown"),
    [
        ("self.t = requests.Session()", False),
        ("self.t: Tree = requests.Session()", True),
        ("self.t = requests.get(Tree)", True),
        ("self.t = asyncio.run(made())", True),
        ("self.t = requests.Session()\n        self.t, y = made(), 1", True),
        ("self.t = requests.Session()\n        self.t |= made()", True),
        ("self.t = requests.Session()\n        setattr(self, 't', made())", True),
        ("self.t = requests.Session()\n        with made() as self.t:\n            pass", True),
    ],
)
def test_an_attribute_that_may_be_bound_to_the_removed_class(bound: str, *, is_shown: bool) -> None:
    user = (
        f"class User:\n    def __init__(self):\n        {bound}\n\n    def use(self):\n        return self.t.fell(1)\n"
    )
    files = {
        "tree.py": "class Tree:\n    def fell(self):\n        return 1\n",
        "lib.py": f"import asyncio\nimport requests\nfrom tree import Tree, made\n\n\n{user}",
        "test_m.py": "def test_m(): ...",
    }
    codebase, gone = PythonCodebase.from_texts(files), "tree.py::Tree.fell"
    deletion = delete_symbol(codebase, gone, ("test_m.py::test_m",), "stub")
    text = where_used(codebase, [codebase.symbols()[gone]], {gone: ["lib.py::User.use"]}, deletion, PythonWords())
    assert bool(text) is is_shown


def test_long_lines_with_the_name_of_an_attribute_take_no_time() -> None:
    line = f"NAMES = '{'t ' * 100_000}'"
    files = {
        "tree.py": "class Tree:\n    def fell(self):\n        return 1\n",
        "lib.py": f"import re\n\n{line}\n\n\nclass User:\n    t = re.compile('a')\n\n    def use(self):\n"
        "        return self.t.fell(1)\n",
        "test_m.py": "def test_m(): ...",
    }
    codebase, gone = PythonCodebase.from_texts(files), "tree.py::Tree.fell"
    deletion = delete_symbol(codebase, gone, ("test_m.py::test_m",), "stub")
    assert not where_used(codebase, [codebase.symbols()[gone]], {gone: ["lib.py::User.use"]}, deletion, PythonWords())


@pytest.mark.parametrize(
    ("gone", "source", "user", "shown"),
    [
        ("Box.find", "def get(self, find: Box, *find) -> 'Box':\n        return 1", "Box", ""),
        ("Box.find", "def get(self, find: Box):\n        return self.find(1)", "Box.get", "return self.find(1)"),
        ("Box.find", "look_up = find", "Box", "look_up = find"),
        ("load", "def get(self, load=None):\n        return load(1)", "Box.get", "return load(1)"),
        ("load", "def get(self, x=load):\n        return 1", "Box", "def get(self, x=load):"),
        ("load", "def get(self):\n        from box import load\n        y = [load]", "Box.get", "y = [load]"),
        ("load", "def get(self):\n        from box import load", "Box.get", "from box import load"),
    ],
)
def test_parameters_are_no_uses_and_imports_only_if_nothing_else_is(
    gone: str, source: str, user: str, shown: str
) -> None:
    text = f"class Box:\n    def find(self, x):\n        return x\n\n    {source}\n\n\ndef load(x):\n    return x\n"
    codebase = PythonCodebase.from_texts({"box.py": text, "test_m.py": "def test_m(): ..."})
    deletion = delete_symbol(codebase, f"box.py::{gone}", ("test_m.py::test_m",), "stub")
    callers = {f"box.py::{gone}": [f"box.py::{user}"]}
    used = where_used(codebase, [codebase.symbols()[f"box.py::{gone}"]], callers, deletion, PythonWords())
    assert used.partition("## Where it is used\n\n")[2] == (f"- `box.py::{user}`: `{shown}`" if shown else "")
