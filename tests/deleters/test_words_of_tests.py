"""Statements quote what hidden tests say of themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from excise.deleters.python.test_excerpt import excerpt
from excise.deleters.statement.how_checked import CALLS, EXAMPLES, without_calls
from excise.deleters.statement.problem_statement import write_statement
from excise.deleters.statement.test_words import MAX_NAMES, words_of_tests
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Visibility

from .planned_deletions import REPO, delete_symbol

TESTS_OF_GONE = "from m import gone\n\n\ndef test_gone():\n    assert gone(1)\n"


def test_tests_out_of_sight_are_quoted_where_there_is_no_example() -> None:
    files = {
        "m.py": 'def gone(x):\n    """Clear, then bind."""\n    return x\n',
        "test_m.py": (
            'from m import gone\n\n\ndef test_gone():\n    """gone() keeps the values\n'
            '    of the configuration.\n\n    More.\n    """\n'
            '    assert gone(1)\n\n\ndef test_short():\n    """It works."""\n    assert gone(2)\n'
            '\n\ndef test_title():\n    """Test of the values that gone() gives."""\n    assert gone(3)\n'
            '\n\ndef test_issue():\n    """Fixing GitHub issue #137, gh-1 (https://a.org/b)."""\n    assert gone(2)\n'
        ),
    }
    codebase, tests = PythonCodebase.from_texts(files), ("test_m.py::test_gone", "test_m.py::test_short")
    deletion = delete_symbol(codebase, "m.py::gone", tests, "stub")
    text = write_statement(codebase, deletion, REPO, tests).text
    assert "descriptions:\n\n- gone() keeps the values of the configuration.\n\n## How" in text
    assert "descriptions" in write_statement(codebase, deletion, REPO, tests, examples=["gone(1)  # 1"]).text
    assert CALLS not in text
    comparing = write_statement(codebase, deletion, REPO, tests, compares_calls=True).text
    assert f"must still pass. {CALLS}\n" in comparing
    shown = write_statement(codebase, deletion, REPO, tests, examples=["gone(1)  # 1"], compares_calls=True).text
    assert f" {CALLS} {EXAMPLES}\n" in shown
    assert without_calls(shown).endswith("must still pass.\n")
    assert without_calls(comparing) == text
    in_sight = replace(deletion, hidden=(), hide_patch="")
    assert CALLS not in write_statement(codebase, in_sight, REPO, tests, compares_calls=True).text
    assert "descriptions" not in write_statement(codebase, deletion, REPO, tests, Visibility.SIGNATURE).text


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("It keeps `all the values`__ of a configuration.", "It keeps all the values of a configuration."),
        ("It keeps the values.\n    :type a: int", "It keeps the values."),
        ("It keeps all values of it.\n    :type a: int", "It keeps all values of it."),
        ("It keeps all values of it. According to the page,\n\n    x", "It keeps all values of it."),
        ("It keeps all values of it.\n    - it does so when\n\n    x", "It keeps all values of it."),
        (":type folder: the type of a folder", ""),
        ("Test code goes here. Replace this comment.", ""),
        ("Auto-generated method stub", ""),
        ("https://lists.example.org/d/msg/some-list/all-the-values/of-it", ""),
        ("Test code goes here. It keeps the values here.", "It keeps the values here."),
        ("A comment goes here, below the value of it.", "A comment goes here, below the value of it."),
    ],
)
def test_descriptions_of_tests_are_whole_sentences(said: str, quoted: str) -> None:
    test = f'from m import gone\n\n\ndef test_gone():\n    """{said}\n    """\n    assert gone(1)\n'
    codebase, tests = (
        PythonCodebase.from_texts({"m.py": "def gone(x):\n    return x\n", "test_m.py": test}),
        ("test_m.py::test_gone",),
    )
    text = write_statement(codebase, delete_symbol(codebase, "m.py::gone", tests, "stub"), REPO, tests).text
    assert text.partition("descriptions:\n\n")[2].partition("\n\n")[0].removeprefix("- ") == quoted


WALK = """
def test_walk(self):
    \"\"\"Walks.\"\"\"
    def flat(found):
        return tuple(found)

    tree = Tree()
    self.assertEqual(flat(tree.walk()), ())
    tree.add("a.b")
    self.assertEqual(flat(tree.walk()), (("a", "b"), ("b", "")))
    tree.add("a.c")
    assert flat(tree.walk()) == (("a", "b"),)
    assert tree.size == 2
"""


SECOND = 'self.assertEqual(flat(tree.walk()), (("a", "b"), ("b", "")))'
THREE_CHECKS = WALK.replace("    assert tree.size == 2\n", "")
LONG = WALK.replace("    tree = Tree()\n", "    tree = Tree()\n" + "    tree.add(1)\n" * 30)
WANTED = "    wanted = [7]\n    assert Tree().walk() == wanted"
LATER = "def test_walk():\n    assert Tree().size == 5\n    assert Tree().walk() == [7]\n"


@pytest.mark.parametrize(
    ("source", "whole", "last"),
    [
        (WALK, False, SECOND),
        (THREE_CHECKS, False, ""),  # only one check would be left
        (THREE_CHECKS, True, SECOND),
        (WALK.replace("(self)", "(self, client)"), True, ""),
        ("@pytest.mark.parametrize('x', [1])\n" + WALK.lstrip(), True, ""),
        (WALK.replace("Tree()", "self.tree"), True, ""),
        (LONG, True, ""),
        ("def test_walk():\n    assert Tree().walk() == []\n    assert Tree().walk()\n", True, ""),
        (LATER, True, "assert Tree().walk() == [7]"),
        (LATER.replace("    assert Tree().walk() == [7]", WANTED), True, "assert Tree().walk() == wanted"),
        (LATER.replace("[7]", "f'{Tree().size} nodes'"), True, "assert Tree().walk() == f'{Tree().size} nodes'"),
        (LATER.replace("[7]", "wanted"), True, ""),
        (LATER.replace("test_walk()", "test_walk(*, tmp_path)"), True, ""),
        (LATER.replace("[7]\n", "[7]; assert 1\n"), True, ""),
        (LATER.replace("[7]", "['```']"), True, ""),
        (LATER.replace("Tree().walk()", "made(self).walk()"), True, ""),
    ],
)
def test_an_excerpt_ends_with_a_check_that_tells_something(source: str, last: str, *, whole: bool) -> None:
    found = excerpt(source, "walk", whole=whole)
    assert found.rpartition("\n")[2] == last
    assert "Walks" not in found
    compile(found, "<excerpt>", "exec")


def test_literals_of_several_lines_stay_as_they_are_in_an_excerpt() -> None:
    lines = ["wanted = f'''{", "    1", "}'''", "assert walk() == wanted"]
    assert excerpt(
        f"def test_walk():\n    {lines[0]}\n{lines[1]}\n{lines[2]}\n    {lines[3]}\n", "walk", whole=True
    ) == ("\n".join(lines))


def test_parts_of_tests_are_shown_where_asked_for() -> None:
    tests = "from m import Tree\n\n" + WALK.replace(
        "self.assertEqual(flat(tree.walk()), ", "assert (flat(tree.walk()) == "
    )
    files = {
        "m.py": "class Tree:\n    def walk(self):\n        x = []\n        # the nearest one\n        return x\n",
        "test_m.py": tests.replace("(self)", "()"),
    }
    codebase, ids = PythonCodebase.from_texts(files), ("test_m.py::test_walk",)
    deletion = delete_symbol(codebase, "m.py::Tree.walk", ids, "stub")
    found = write_statement(codebase, deletion, REPO, ids)
    assert found.barely_described == ("m.py::Tree.walk",)
    assert "## From the tests" not in found.text
    tested = dict.fromkeys(found.barely_described, ids)
    text = write_statement(codebase, deletion, REPO, ids, tested=tested).text
    assert "A part of a test that is not in this checkout:\n\n```python\ndef flat(found):\n" in text
    assert "tree.size" not in text
    assert "## From" not in write_statement(codebase, deletion, REPO, ids, Visibility.SIGNATURE, tested=tested).text


def test_names_of_tests_without_a_description_are_told() -> None:
    tests = {
        "test_gone": "", "test_gone_keeps_control_flow_errors": "", "testGoneOfSubclass": "", "test_gone_works": "",
        "test_gone_in_other_ways": '    """Other ways to call gone() give the same."""\n',
    }  # fmt: skip
    source = "".join(f"def {name}():\n{text}    assert gone(1)\n\n\n" for name, text in tests.items())
    files = {"m.py": "def gone(x):\n    return x\n", "test_m.py": f"from m import gone\n\n\n{source}"}
    codebase, ids = PythonCodebase.from_texts(files), tuple(f"test_m.py::{name}" for name in tests)
    deletion = delete_symbol(codebase, "m.py::gone", ids, "stub")
    text = write_statement(codebase, deletion, REPO, ids).text
    assert (
        "- Other ways to call gone() give the same.\n\nAnother one is called `test_gone_keeps_control_flow_errors`."
        in text
    )


def test_names_of_tests_that_are_named_after_other_code_are_not_told() -> None:
    names = (
        "test_prune_prefix", "test_prune_prefix_of_empty_trees", "test_walk_and_prune_prefix", "test_order_of_leaves",
    )  # fmt: skip
    source = "".join(f"def {name}():\n    assert walk(1)\n\n\n" for name in names)
    files = {
        "m.py": "def walk(x):\n    return x\n\n\ndef prune_prefix(x):\n    return x\n",
        "test_m.py": f"from m import walk\n\n\n{source}",
    }
    codebase, ids = PythonCodebase.from_texts(files), tuple(f"test_m.py::{name}" for name in names)
    deletion = delete_symbol(codebase, "m.py::walk", ids, "stub")
    text = write_statement(codebase, deletion, REPO, ids).text
    assert "are called `test_order_of_leaves`, `test_walk_and_prune_prefix`." in text


def test_of_many_tests_those_about_the_code_are_named() -> None:
    """Tests of everything else say nothing of code that all of them need."""
    names = [f"test_other_{word}_matters" for word in ["one", "two", "three", "four", "five", "six", "seven", "eight"]]
    calls = "".join(f"\n\ndef {name}():\n    use(1)\n" for name in names)
    about = "\n\ndef test_negative_values_raise():\n    gone(-1)\n\n\ndef test_width_limit_counts():\n    use(2)\n"
    files = {
        "m.py": "def gone_width(x):\n    return x\n\n\ndef use(x):\n    return gone_width(x)\n\n\ngone = gone_width\n",
        "test_m.py": f"from m import gone_width as gone, use{calls}{about}",
    }
    codebase = PythonCodebase.from_texts(files)
    tests = tuple(f"test_m.py::{name}" for name in [*names, "test_negative_values_raise", "test_width_limit_counts"])

    def statement(chosen: tuple[str, ...]) -> str:
        return write_statement(codebase, delete_symbol(codebase, "m.py::gone_width", chosen, "stub"), REPO, chosen).text

    assert "is called `test_width_limit_counts`." in statement(tests)
    assert "`test_other_one_matters`" in statement(tests[-4:] + tests[:1])


@pytest.mark.parametrize(
    ("lines", "words", "is_bare"),
    [
        (12, "Make a mini text sparkline", True),
        (3, "Make a mini text sparkline", False),
        (12, "Make " + "it " * 14, False),
    ],
)
def test_a_long_function_with_a_title_alone_is_barely_described(lines: int, words: str, *, is_bare: bool) -> None:
    body = "    x += 1\n" * lines
    files = {
        "m.py": f'def gone(x):\n    """{words}."""\n{body}    return x\n',
        "test_m.py": "from m import gone\n\n\ndef test_gone():\n    assert gone(1) == 13\n",
    }
    codebase, ids = PythonCodebase.from_texts(files), ("test_m.py::test_gone",)
    found = write_statement(codebase, delete_symbol(codebase, "m.py::gone", ids, "stub"), REPO, ids)
    assert (found.barely_described == ("m.py::gone",)) == is_bare


def test_tests_that_are_inherited_or_imported_are_quoted() -> None:
    """Their ids are those of the class or file that runs them; the statement names the file that has them."""
    said = "gone() keeps the values of the configuration."
    test = f'    def test_gone(self):\n        """{said}"""\n        assert gone(1)\n'
    files = {
        "m.py": "def gone(x):\n    return x\n",
        "tests/__init__.py": "",
        "tests/base.py": f"from m import gone\n\n\nclass Base:\n{test}",
        "tests/test_m.py": "from .base import Base\n\n\nclass TestOne(Base):\n    pass\n",
        "tests/__main__.py": "from .test_m import TestOne\n",
    }
    codebase = PythonCodebase.from_texts(files)
    test_id = "tests/test_m.py::TestOne::test_gone"
    text = write_statement(codebase, delete_symbol(codebase, "m.py::gone", (test_id,), "stub"), REPO, (test_id,)).text
    assert f"- {said}" in text
    assert "(from `tests/base.py`)" in text
    for path in ("tests/test_m.py", "tests/__main__.py"):
        found = codebase.definition_of_test(f"{path}::TestOne::test_gone[a-1]")
        assert found is not None
        assert found.symbol_id == "tests/base.py::Base.test_gone"
    assert codebase.definition_of_test("tests/test_m.py::TestOne::test_other") is None
    assert codebase.definition_of_test("tests/test_m.py") is None


@pytest.mark.parametrize(
    ("caller", "calls", "is_shown"),
    [("grow", "grow", True), ("_grow", "_grow", False), ("grow", "other", False), ("test_grow", "test_grow", False)],
)
def test_a_part_of_a_test_of_the_nearest_public_caller_is_shown(caller: str, calls: str, *, is_shown: bool) -> None:
    path = "test_n.py" if caller.startswith("test") else "n.py"
    test = f"def test_m():\n    x = {calls}(1)\n    assert x == [7]\n    y = 2\n    assert x\n    assert y\n"
    files = {
        "m.py": "def _gone(x):\n    y = x\n    return y\n\n\ndef _between(x):\n    return _gone(x)\n",
        path: f"from m import _between\n\n\ndef {caller}(x):\n    return _between(x)\n\n\nother = print\n",
        "test_m.py": f"from {path[:-3]} import {calls}\n\n\n{test}",
    }
    codebase, ids = PythonCodebase.from_texts(files), ("test_m.py::test_m",)
    deletion = delete_symbol(codebase, "m.py::_gone", ids, "stub")
    text = write_statement(codebase, deletion, REPO, ids, tested={"m.py::_gone": ids}).text
    assert ("```python\nx = grow(1)\nassert x == [7]\n```" in text) is is_shown
    assert ("## From the tests" in text) is is_shown


def test_special_methods_are_called_as_builtin_functions() -> None:
    files = {
        "m.py": "class C:\n    def __len__(self):\n        return self._gone()\n\n"
        "    def _gone(self):\n        return 7\n",
        "test_m.py": "from m import C\n\n\ndef test_m():\n    assert len(C()) == 7\n    assert C()\n",
    }
    codebase, ids = PythonCodebase.from_texts(files), ("test_m.py::test_m",)
    deletion = delete_symbol(codebase, "m.py::C._gone", ids, "stub")
    text = write_statement(codebase, deletion, REPO, ids, tested={"m.py::C._gone": ids}).text
    assert "```python\nassert len(C()) == 7\n```" in text


def test_characters_that_cannot_be_seen_are_written_as_in_literals() -> None:
    source = 'def gone(x):\n    """Writes \x1b[31mred\x1b[0m again."""\n    return x\n'
    files = {"m.py": source, "test_m.py": TESTS_OF_GONE}
    codebase, tests = PythonCodebase.from_texts(files), ("test_m.py::test_gone",)
    text = write_statement(codebase, delete_symbol(codebase, "m.py::gone", tests, "stub"), REPO, tests).text
    assert "> Writes \\x1b[31mred\\x1b[0m again." in text


@pytest.mark.parametrize(
    ("title", "is_quoted"),
    [
        ("allowGaps only joins lists with no own keys", True),
        ("joins", False),  # the function's name alone
        ("join options", False),
        ("join({ a: [1] }) = 'a,1'", False),  # a row of a table
        ("joins the lists of %s", False),  # its id has the value
    ],
)
def test_titles_in_words_are_quoted(title: str, *, is_quoted: bool) -> None:
    block = f"test('join', (t) => {{\n  t.test({title!r}, (st) => {{ st.ok(join()); }});\n}});\n"
    test = f"test/join.js::join::{title.replace('%s', 'a value')}"
    source = "exports.join = function joins() {};\n"
    codebase = JavaScriptCodebase.from_texts({"index.js": source, "test/join.js": block}, tests=[test])
    removed = [symbol for symbol in codebase.symbols().values() if symbol.path == "index.js" and symbol.qualname]
    found = words_of_tests(codebase, [test], Visibility.SAMPLE_TESTS, removed)
    assert found == ("## What the tests say\n\nTests that are not in this checkout have these titles:\n\n"
        f"- {title}" if is_quoted else "")  # fmt: skip
    assert words_of_tests(codebase, [test], Visibility.SIGNATURE, removed) == ""


@pytest.mark.parametrize(
    ("suites", "shown"),
    [
        (["options", "with a limit"], ["with a limit: keeps every empty list"]),
        (["options", "of lists"], ["options: keeps every empty list"]),
        (["join()"], ["keeps every empty list"]),
        (["option %s"], ["keeps every empty list"]),  # its id has the value
        ([], ["keeps every empty list"]),
    ],
)
def test_titles_stand_behind_that_of_the_suite_that_says_more(suites: list[str], shown: list[str]) -> None:
    title = "keeps every empty list"
    block = "".join(f"describe('{each}', () => {{ " for each in suites) + f"it('{title}', () => {{}}); " + "});" * 9
    test = "::".join(["test/join.js", *suites, title]).replace("%s", "lists or more")
    codebase = JavaScriptCodebase.from_texts({"join.js": "exports.joinLists = () => 1;\n", "test/join.js": block})
    found = words_of_tests(codebase, [test], Visibility.DOCSTRING, [codebase.symbols()["join.js::joinLists"]])
    assert [line[2:] for line in found.splitlines() if line.startswith("- ")] == shown


def test_titles_that_are_no_text_are_left_out() -> None:
    codebase = JavaScriptCodebase.from_texts({"join.js": "exports.join = 1;\n", "test/join.js": "it('a', () => {});\n"})
    assert words_of_tests(codebase, ["test/join.js::keeps all \ud800 lists"], Visibility.DOCSTRING, []) == ""


def test_of_many_titles_the_longest_are_quoted() -> None:
    titles = [f"keeps every {'really ' * (n == 2)}empty list {chr(97 + n % 26) * (n // 26 + 4)}" for n in range(40)]
    block = "".join(f"it('{title}', () => {{}});\n" for title in titles)
    files = {"join.js": "exports.join = () => 1;\n", "test/join.js": block, "test/other.js": block}
    codebase = JavaScriptCodebase.from_texts(files)

    def said(path: str) -> str:
        tests = [f"{path}::{title}" for title in titles]
        return words_of_tests(codebase, tests, Visibility.DOCSTRING, [codebase.symbols()["join.js::join"]])

    found = said("test/join.js")
    assert found.count("\n- ") == MAX_NAMES + 1
    assert "really" in found
    assert found.endswith("\n- … and 10 more")
    assert said("test/other.js") == ""
    titles = [title.replace("keeps", "joins") for title in titles]
    codebase = JavaScriptCodebase.from_texts({**files, "test/other.js": block.replace("keeps", "joins")})
    assert "- joins every" in said("test/other.js"), "as the function does"
