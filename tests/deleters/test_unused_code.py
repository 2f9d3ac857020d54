"""What only removed code, or only hidden tests used, goes with them: nothing stays that says what was there."""

from __future__ import annotations

import pytest

from excise.deleters.python.references.entry_points import LostNames, without_entry_points
from excise.deleters.python.references.new_findings import new_findings
from excise.deleters.statement.problem_statement import write_statement
from excise.extractors.python.analysis.codebase import PythonCodebase

from .planned_deletions import REPO, delete_symbol
from .test_remove_details import after, delete

F = "def f():\n    return 1\n"


# ------------------------------------------------------------------------------------------- sources
def test_private_definitions_and_attributes_that_only_removed_code_used_go() -> None:
    files = {
        "m.py": (
            "class Box:\n    _LIMIT = 3\n    _NAME = 'box'\n\n    def __init__(self, size):\n        self.size = size\n"
            "        self._cache = {}\n        self._seen = size\n\n    def fill(self):\n"
            "        return self._cached(self._LIMIT, _helper(1))\n\n    def _cached(self, n, m):\n"
            "        return self._cache.get(n, m + self._seen)\n\n    def name(self):\n        return self._NAME\n\n\n"
            "def _helper(n):\n    return _helper(n - 1) if n else _other()\n\n\ndef _other():\n    return 2\n"
        ),
        "n.py": "from m import Box\n\n\nclass Sub(Box):\n    pass\n",
    }
    deletion = delete(files, "m.py::Box.fill")
    assert after(files, deletion)["m.py"] == (
        "class Box:\n    _NAME = 'box'\n\n    def __init__(self, size):\n        self.size = size\n"
        "        self._seen = size\n\n    def name(self):\n        return self._NAME\n"
    )
    assert deletion.removed == ("m.py::Box._LIMIT", "m.py::Box.fill"), "what only they used is no part of the interface"
    assert {"m.py::Box._cached", "m.py::_helper", "m.py::_other"} <= dict(deletion.text).keys()
    assert deletion.uses == (("m.py", "in Box.__init__: self._cache = {}"),)


def test_private_methods_that_override_each_other_go_together() -> None:
    hook = "    def _copied(self):\n        return {}\n"
    files = {
        "m.py": (
            "class Box:\n    def copy(self):\n        return self._copied()\n\n" + hook.format(1)
            + "\n\nclass Lid(Box):\n    size = 1\n\n" + hook.format("super()._copied()")
        )
    }  # fmt: skip
    assert (
        after(files, delete(files, "m.py::Box.copy"))["m.py"]
        == "class Box:\n    pass\n\n\nclass Lid(Box):\n    size = 1\n"
    )


def test_private_names_that_others_may_look_for_stay() -> None:
    files = {
        "m.py": (
            "import argparse\n\n\nclass A(argparse.HelpFormatter):\n    def _fill(self):\n        return 1\n\n\n"
            "class B:\n    def _fill(self):\n        return 2\n\n    def _named(self):\n        return 3\n\n\n"
            "def f(x):\n    return x._fill(), x._named()\n\n\ndef g(x):\n    return getattr(x, '_named')\n"
        )
    }
    deletion = delete(files, "m.py::f")
    assert after(files, deletion)["m.py"] == files["m.py"].replace(
        "def f(x):\n    return x._fill(), x._named()\n\n\n", ""
    )


@pytest.mark.parametrize(
    ("more", "is_gone"),
    [
        ({}, True),
        ({"m/other.py": "from m.a import helper\n"}, False),
        ({"README.rst": "Call ``helper``."}, False),
        ({"m/page.html": "{{ helper(1) }}"}, False),
        ({"tests/test_other.py": "def test_other():\n    assert 'helper'\n"}, False),
    ],
    ids=["dead", "imported", "documented", "template", "tested"],
)
def test_public_helpers_of_removed_code_alone_go(more: dict[str, str], is_gone: bool) -> None:
    """With what only they use, but not what a statement shows in the head of a definition."""
    helpers = "class Base:\n    pass\n\n\ndef deeper(x):\n    return x\n\n\ndef helper(x):\n    return deeper(x)\n\n\n"
    used = "class Used(Base):\n    def f(self):\n        return helper(1)\n\n\n"
    files = {
        "m/__init__.py": "",
        "m/a.py": f"{helpers}{used}def stays():\n    pass\n",
        **more,
    }
    left = after(files, delete(files, "m/a.py::Used")).get("m/a.py", files["m/a.py"])
    assert ("helper" not in left) is ("deeper" not in left) is is_gone
    assert "class Base" in left


@pytest.mark.parametrize(("docstring", "is_gone"), [("", True), ('        """Add it."""\n', False)])
def test_public_methods_that_are_described_are_for_users(docstring: str, is_gone: bool) -> None:
    method = f"    def add(self, x):\n{docstring}        return x\n\n"
    files = {
        "m.py": f"class C:\n{method}    def f(self):\n        return self.add(1)\n\n    def g(self):\n        pass\n"
    }
    assert ("add" not in after(files, delete(files, "m.py::C.f"))["m.py"]) is is_gone


ENUM = "import enum\n\n\nclass Kind(enum.Enum):\n    PLAIN = 'plain'\n    BOLD = 'bold'\n\n\n"


@pytest.mark.parametrize(
    ("rest", "is_gone"),
    [
        ("def g(kind: Kind):\n    return isinstance(kind, Kind)\n", True),
        ("def g(name):\n    return Kind(name)\n", False),
        ("def g():\n    return list(Kind)\n", False),
        ("def g(name):\n    return 'BOLD', Kind.PLAIN\n", False),
    ],
    ids=["type", "lookup", "all", "name"],
)
def test_members_of_enums_that_only_removed_code_used_go(rest: str, is_gone: bool) -> None:
    files = {"m.py": f"{ENUM}def f():\n    return Kind.BOLD\n\n\n{rest}"}
    deletion = delete(files, "m.py::f")
    assert ("    BOLD" not in after(files, deletion)["m.py"]) is is_gone
    assert ("m.py::Kind.BOLD" in deletion.removed) is is_gone


@pytest.mark.parametrize(
    ("constants", "other", "left"),
    [
        ("KEYS = {'a', 'b'}\nOTHER = 1\n", {}, "OTHER = 1\n"),
        ("KEYS = {'a', 'b'}\n", {"README.md": "Set `KEYS` to choose.\n"}, None),
        ("KEYS = {'a', 'b'}\n", {"k.py": "import c\nimport m\n\nprint(c.KEYS, m.other)\n"}, None),
        ("KEYS = {'a', 'b'}\n__all__ = ['KEYS']\n", {}, None),
        ("KEYS = read()\n", {}, None),
        ("class C:\n    KEYS = {1}\n", {}, None),
    ],
    ids=["gone", "documented", "used", "exported", "computed", "of-a-class"],
)
def test_constants_of_other_files_that_only_removed_code_used_go(
    constants: str, other: dict[str, str], left: str | None
) -> None:
    files = {
        "c.py": constants,
        "m.py": "from c import KEYS\n\n\ndef gone(x):\n    return x in KEYS\n\n\ndef other():\n    return 1\n",
        "test_m.py": "import m\n\n\ndef test_other():\n    assert m.other() == 1\n",
        **other,
    }
    deletion = delete(files, "m.py::gone")
    found = after(files, deletion)
    assert "KEYS" not in (found["m.py"] or "")
    assert found["c.py"] == (constants if left is None else left)
    assert ("c.py::KEYS" in deletion.removed) == (left is not None)


def test_an_import_for_others_stays_when_an_attribute_of_its_name_goes() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/curried.py": "import tool\nfrom tool import curry, first\n\n\ndef f(x):\n    return tool.curry(first)\n",
    }
    left = after(files, delete(files, "pkg/curried.py::f"))["pkg/curried.py"]
    assert left == "from tool import curry\n"


def test_attempts_to_import_go_as_a_whole() -> None:
    attempt = "try:\n    import fast as quick\n    HAS_FAST = True\nexcept ImportError:\n    HAS_FAST = False\n\n\n"
    files = {"m.py": f"{attempt}def f():\n    return quick.x if HAS_FAST else 1\n\n\ndef g():\n    return 2\n"}
    assert after(files, delete(files, "m.py::f"))["m.py"] == "def g():\n    return 2\n"
    second = "    try:\n        import slow as quick\n    except ImportError:\n        HAS_FAST = False\n"
    nested = attempt.replace("    HAS_FAST = False\n", second)
    before = files["m.py"]
    files["m.py"] = before.replace(attempt, nested)
    assert after(files, delete(files, "m.py::f"))["m.py"] == "def g():\n    return 2\n"
    files["m.py"] = before.replace("return 2", "return HAS_FAST")
    assert after(files, delete(files, "m.py::f"))["m.py"].startswith(attempt)


@pytest.mark.parametrize(
    ("line", "left"), [("import a", "b"), ("c = ['a', \"my a\"]", "b"), ("f'{b}' + a + 'a'", "a, b"), ("a.y", "a, b")]
)
def test_examples_use_what_they_neither_import_nor_quote(line: str, left: str) -> None:
    text = f'from x import a, b\n\n\ndef g():\n    """G.\n\n    >>> {line}\n    >>> c, b.y\n    """\n'
    files = {"m.py": f"{text}\n\ndef f():\n    return a, b\n"}
    assert after(files, delete(files, "m.py::f"))["m.py"] == text.replace("a, b", left, 1)


def test_an_import_that_tests_replace_in_another_module_goes() -> None:
    files = {
        "m.py": "from zone import Z\n\n\ndef f():\n    return Z\n\n\ny = 2\n",
        "test_m.py": "import zone\nimport m\n\n\ndef test_y(monkeypatch):\n    monkeypatch.setattr(zone, 'Z', m.y)\n",
    }
    assert after(files, delete(files, "m.py::f"))["m.py"] == "y = 2\n"
    files["test_m.py"] = files["test_m.py"].replace("(zone,", "(m,")
    assert after(files, delete(files, "m.py::f"))["m.py"] == "from zone import Z\n\n\ny = 2\n"


@pytest.mark.parametrize(("others", "stays"), [("'g'", True), ("'other'", False), ("'json'", False)])
def test_an_import_that_a_list_of_names_of_the_module_has_stays(others: str, *, stays: bool) -> None:
    text = f"import json\nfrom x import a\n\nnames = ['a', {others}]\n\n\ndef g():\n    return names\n"
    files = {"m.py": f"{text}\n\ndef f():\n    return a, json\n"}
    assert ("import a" in after(files, delete(files, "m.py::f"))["m.py"]) is stays


def test_of_an_attempt_to_import_only_what_is_unused_goes() -> None:
    both = "try:\n    from fast import a, b\nexcept ImportError:\n    pass\n\n\n"
    files = {"m.py": f"{both}def f():\n    return a\n\n\ndef g():\n    return b\n"}
    assert after(files, delete(files, "m.py::f"))["m.py"] == (both.replace("a, b", "b") + "def g():\n    return b\n")
    fallback = (
        "try:\n    from fast import _c\nexcept ImportError:\n    from functools import wraps\n\n    def _c(x):\n"
        "        return wraps(x)\n\n\n"
    )
    files = {"m.py": f"{fallback}def f():\n    return _c(1)\n\n\ny = 2\n"}
    assert after(files, delete(files, "m.py::f", "m.py::_c"))["m.py"] == "y = 2\n"


def test_a_main_block_that_would_only_import_goes() -> None:
    main = "if __name__ == '__main__':\n    import sys\n    f(sys.argv)\n"
    files = {"m.py": f"{F}\n\ny = 2\n\n{main}"}
    assert after(files, delete(files, "m.py::f"))["m.py"] == "y = 2\n"


def test_files_that_only_removed_code_read_go_and_are_shown() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/words.py": (
            "def common():\n    return open('data/common.txt').read()\n\n\n"
            "def rare():\n    return open('rare.txt').read()\n"
            "\n\ndef other():\n    return 'rare.txt'\n"
        ),
        "pkg/data/common.txt": "the\nof\n",
        "pkg/data/rare.txt": "syzygy\n",
        "pkg.egg-info/SOURCES.txt": "pkg/data/common.txt\n",
        "tests/test_words.py": (
            "from pkg.words import common\n\n\ndef test_common():\n    assert common() == 'the\\nof\\n'\n"
        ),
    }
    tests = ("tests/test_words.py::test_common",)
    codebase = PythonCodebase.from_texts(files)
    deletion = delete_symbol(codebase, "pkg/words.py::common", tests)
    left = after(files, deletion)
    assert "pkg/data/common.txt" not in left
    assert "pkg/data/common.txt" in deletion.source_patch
    text = write_statement(codebase, deletion, REPO, tests).text
    assert "`pkg/data/common.txt`:\n\n```\nthe\nof\n\n```" in text
    assert "pkg/data/rare.txt" in after(files, delete(files, "pkg/words.py::rare"))


# --------------------------------------------------------------------------------------- entry points
LOST = LostNames({"pkg.gone"}, {("pkg.cli", "run")})


@pytest.mark.parametrize(
    ("path", "before", "expected"),
    [
        ("pyproject.toml", "[project]\nname = 'a'\n\n[project.scripts]\na = 'pkg.gone:main'\n\n[tool.x]\ny = 1\n",
         "[project]\nname = 'a'\n\n[tool.x]\ny = 1\n"),
        ("pyproject.toml", "[project.scripts]\na = 'pkg.gone:main'\nb = 'pkg:b'\n", "[project.scripts]\nb = 'pkg:b'\n"),
        ("setup.cfg", "[metadata]\nname = a\n\n[options.entry_points]\nconsole_scripts =\n    a = pkg.cli:run\n",
         "[metadata]\nname = a\n\n"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    a = pkg.cli:run\ngui_scripts =\n    b = pkg:b\n",
         "[options.entry_points]\ngui_scripts =\n    b = pkg:b\n"),
    ],
    ids=["section", "entry", "cfg-section", "cfg-key"],
)  # fmt: skip
def test_sections_that_lose_their_last_entry_point_go(path: str, before: str, expected: str) -> None:
    assert without_entry_points({path: before.encode()}, LOST) == {path: expected.encode()}


def test_entry_points_of_all_manifests_go_that_lead_to_what_is_gone() -> None:
    """Through an import of another module, too, and those of an example's manifest; not those of a test's data."""
    manifest = "[project.scripts]\na = '{}'\nb = 'pkg:b'\n"
    files = {
        "pyproject.toml": manifest.format("pkg.__main__:main"),
        "pkg/__init__.py": "",
        "pkg/__main__.py": "from pkg.cli import main\n\nif __name__ == '__main__':\n    main()\n",
        "pkg/cli.py": f"def main():\n    return 1\n\n\n{F}",
        "pkg/example/pyproject.toml": manifest.format("pkg.cli:main"),
        "tests/data/pyproject.toml": manifest.format("pkg.cli:main"),
        "tests/test_a.py": "def test_a():\n    pass\n",
    }
    left = after(files, delete(files, "pkg/cli.py::main"))
    assert left["pyproject.toml"] == left["pkg/example/pyproject.toml"] == "[project.scripts]\nb = 'pkg:b'\n"
    assert left.get("tests/data/pyproject.toml", files["tests/data/pyproject.toml"]) == manifest.format("pkg.cli:main")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("ALL = ['pkg.m.f', 'pkg.m.stays']\n", "ALL = ['pkg.m.stays']\n"),
        ("ALL = {'a': 'pkg.m.f', 'b': 'pkg.m.stays'}\n", "ALL = {'b': 'pkg.m.stays'}\n"),
        ("def g():\n    return ('pkg.f', 'pkg.m.stays')\n", "def g():\n    return ('pkg.m.stays',)\n"),
        ("ALL = {'pkg.m.f': 1}\nX = 'pkg.m.f'\nY = ['other.m.f', 'see pkg.m.f']\n", ""),
    ],
    ids=["list", "value", "re-export", "others"],
)
def test_entries_of_tables_that_name_it_by_a_text_go(before: str, expected: str) -> None:
    files = {
        "pkg/__init__.py": "from pkg.m import f\n",
        "pkg/m.py": f"{F}\n\ndef stays():\n    return 2\n",
        "pkg/table.py": before,
    }
    assert after(files, delete(files, "pkg/m.py::f"))["pkg/table.py"] == (expected or before)


def test_statements_of_main_blocks_go_alone() -> None:
    block = "    with open('x') as x:\n        f()\n        stays(x)\n    with x:\n        f()\n    stays(1)\n"
    main = f"if __name__ == '__main__':\n{block}"
    files = {"m.py": f"{F}\n\ndef stays(x):\n    return x\n\n\n{main}"}
    expected = "if __name__ == '__main__':\n    with open('x') as x:\n        stays(x)\n    stays(1)\n"
    assert after(files, delete(files, "m.py::f"))["m.py"].endswith(f"\n\n\n{expected}")


def test_entry_points_of_set_up_code_go() -> None:
    setup = "setup(\n    name='pkg',\n    entry_points={{'console_scripts': [{}]}},\n    zip_safe=True,\n)\n"
    files = {
        "setup.py": setup.format("'a = pkg.cli:f', 'b = pkg.cli:g'"),
        "pkg/__init__.py": "",
        "pkg/cli.py": F + "\n\ndef g():\n    return 2\n",
    }
    deletion = delete(files, "pkg/cli.py::f")
    assert after(files, deletion)["setup.py"] == setup.format("'b = pkg.cli:g'")
    files["setup.py"] = setup.format("'a = pkg.cli:f'")
    deletion = delete(files, "pkg/cli.py::f")
    assert after(files, deletion)["setup.py"] == "setup(\n    name='pkg',\n    zip_safe=True,\n)\n"


# ---------------------------------------------------------------------------------------------- tests
def test_fixtures_and_helpers_of_other_files_go_with_the_last_test_that_used_them() -> None:
    fixture = "@pytest.fixture\ndef {}():\n    return {}\n"
    files = {
        "m.py": F + "\n\ndef g():\n    return 2\n",
        "tests/__init__.py": "",
        "tests/conftest.py": (
            "import pytest\nimport json\n\nfrom tests.tools import table\n\n\n"
            + fixture.format("one", "json.loads('1')")
            + "\n\n"
            + fixture.format("two", "table()")
            + "\n\n"
            + fixture.format("kept", "3")
            + "\n\n"
            + fixture.replace("fixture", "fixture(autouse=True)").format("always", "4")
        ),
        "tests/tools.py": "ROWS = [1]\n\n\ndef table():\n    return ROWS\n",
        "tests/checks.py": "def check(x):\n    assert x\n",
        "tests/data/f.json": "[1]\n",
        "tests/data/g.json": "[2]\n",
        "tests/test_f.py": (
            "from m import f\nfrom tests.checks import check\n\n\ndef test_f(one, two, kept):\n"
            "    check(open('tests/data/f.json'))\n"
        ),
        "tests/test_g.py": (
            "from m import g\n\ntest_rows = [2]\n\n\n"
            "class TestG:\n    rows = [1]\n\n    def _rows(self):\n        return self.rows\n\n"
            "    def test_f(self):\n        assert self._rows() != test_rows\n\n    def test_g(self, kept):\n"
            "        open('tests/data/g.json')\n"
        ),
    }
    tests = ("tests/test_f.py::test_f", "tests/test_g.py::TestG::test_f")
    left = after(files, delete(files, "m.py::f", hide=tests))
    assert left["tests/conftest.py"] == (
        "import pytest\n\n\n"
        + fixture.format("kept", "3")
        + "\n\n"
        + fixture.replace("fixture", "fixture(autouse=True)").format("always", "4")
    )
    assert not {"tests/tools.py", "tests/checks.py", "tests/data/f.json", "tests/test_f.py"} & left.keys()
    assert left["tests/test_g.py"] == (
        "from m import g\n\n\nclass TestG:\n    def test_g(self, kept):\n        open('tests/data/g.json')\n"
    )
    assert "tests/data/g.json" in left


# --------------------------------------------------------------------------------------- new findings
@pytest.mark.parametrize(
    ("before", "left", "expected"),
    [
        ("import a\na.b\n", "import a\n", ["unused import a in ''"]),
        ("from a import b\nx: 'b' = 1\n", "from a import b\nx: 'b' = 1\n", []),
        ("import a\n__all__ = ['a']\n", "import a\n__all__ = ['a']\n", []),
        ("def f(): pass\ndef g(): return f()\n", "def g(): return f()\n", ["undefined name f in ''"]),
        ("class C: pass\ndef g(x: 'C'): pass\n", "def g(x: 'C'): pass\n", ["undefined name C in ''"]),
        ("def f():\n    x = 1\n    return x\n", "def f():\n    x = 1\n", ["unused variable x in 'f'"]),
        ("def f():\n    x = 1\n    x += 1\n    return x\n", "def f():\n    x = 1\n    x += 1\n", []),
        ("def f():\n    a, x = 1, 2\n    return a, x\n", "def f():\n    a, x = 1, 2\n    return a\n", []),
        ("def f():\n    x = 1\n    return lambda: x\n", "def f():\n    x = 1\n    return lambda: x\n", []),
        ("class A:\n    @b\n    def f(self):\n        import c\n        return c\n",
         "class A:\n    @b\n    def f(self):\n        import c\n", ["unused import c in 'A.f'"]),
        ("def f():\n    x = 1\n", "def f():\n    x = 1\n", []),
        ("a(b)\n", "def (\n", []),
    ],
)  # fmt: skip
def test_what_a_linter_says_of_a_file_and_did_not_say_before(before: str, left: str, expected: list[str]) -> None:
    found = new_findings(before.encode(), left.encode())
    assert [f"{each.kind} {each.name} in {each.scope!r}" for each in found] == expected


def test_code_of_tests_that_was_unused_before_stays_and_so_do_cases() -> None:
    files = {
        "m.py": F + "\n\ndef g():\n    return 2\n",
        "tests/test_f.py": (
            "import unittest\n\nfrom m import f\n\n\nclass Case(unittest.TestCase):\n"
            "    def test_f(self):\n        assert f(), 'helper spare'\n"
        ),
        "tests/test_g.py": (
            "import unittest\n\nfrom m import g\n\nspare = 1\n\n\ndef helper():\n    return 1\n\n\n"
            "class Base(unittest.TestCase):\n    pass\n\n\nclass Case(Base):\n"
            "    def test_g(self):\n        assert g()\n"
        ),
    }
    left = after(files, delete(files, "m.py::f", hide=("tests/test_f.py::Case::test_f",)))
    assert left["tests/test_g.py"] == files["tests/test_g.py"]
    assert "tests/test_f.py" not in left


@pytest.mark.parametrize(
    ("others", "is_hidden"), [("", True), ("    def test_c(self):\n        self.check(3)\n\n" * 2, False)]
)
def test_a_test_whose_helper_names_what_is_gone_goes_with_most_that_use_it(others: str, *, is_hidden: bool) -> None:
    others = others.replace("test_c", "test_d", 1)
    source = (
        "import pytest\nfrom m import gone\n\n\nclass TestA:\n    def check(self, x):\n        if x: gone(x)\n\n"
        f"    def test_a(self):\n        self.check(1)\n\n{others}    def test_b(self):\n"
        "        with pytest.raises(Exception):\n            self.check(0)\n\n\ndef test_other():\n    assert 1\n"
    )
    files = {"m.py": "def gone(x):\n    return x\n", "test_m.py": source}
    left = after(files, delete(files, "m.py::gone", hide=("test_m.py::TestA::test_a",)))["test_m.py"]
    assert ("test_b" not in left) is is_hidden


@pytest.mark.parametrize(
    ("made", "is_left"),
    [
        ("from collections import namedtuple\n\nPair = namedtuple('Pair', 'a b')\n", False),
        ("import typing\n\nPair = typing.NamedTuple('Pair', [('a', int)])\n", False),
        ("from collections import namedtuple\n\n__all__ = ['Pair']\nPair = namedtuple('Pair', 'a b')\n", True),
        ("from .o import make\n\nPair = make('Pair')\n", True),
    ],
)
def test_a_type_that_a_call_makes_goes_with_the_code_that_alone_used_it(made: str, is_left: bool) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/o.py": "def make(x):\n    return x\n",
        "pkg/m.py": f"{made}\n\ndef gone():\n    return Pair(1, 2)\n\n\ndef other():\n    return 1\n",
    }
    left = after(files, delete(files, "pkg/m.py::gone"))["pkg/m.py"]
    assert ("Pair" in left) == is_left
    assert any(word in left for word in ("namedtuple", "typing", "make")) == is_left


def test_a_flag_for_type_checkers_goes_and_is_not_told() -> None:
    flag = "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from collections.abc import Iterable\n\n"
    listed = "def listed(items: 'Iterable') -> str:\n    return ', '.join(items)\n"
    source = f"{flag}__all__ = ['kept', 'listed']\n\n\n{listed}\n\ndef kept(): return 1\n"
    files = {"pkg/__init__.py": "", "pkg/lists.py": source}
    deletion = delete(files, "pkg/lists.py::listed")
    assert "TYPE_CHECKING" not in after(files, deletion)["pkg/lists.py"]
    assert list(deletion.removed) == ["pkg/lists.py::listed"]


@pytest.mark.parametrize(
    ("body", "more"), [("text", ""), ("print(text)", ""), ("text", "\n\ndef M_(x):\n    return print(x)\n")]
)
def test_data_that_pure_functions_of_other_files_make_goes(body: str, more: str) -> None:
    marked = f"def _marked(text):\n    '''Mark a text for translators.'''\n    return {body}\n"
    code = "_ENDS = (M_('st'), M_('nd'))\n\n\ndef gone(n):\n    return _ENDS[n]\n\n\ndef kept():\n    return M_('x')\n"
    source = f"from .texts import _marked as M_\n{more}\n{code}"
    files = {"pkg/__init__.py": "", "pkg/texts.py": marked, "pkg/m.py": source}
    deletion = delete(files, "pkg/m.py::gone")
    is_gone = "_ENDS" not in after(files, deletion)["pkg/m.py"]
    assert is_gone == (body == "text" and not more) == ("_ENDS" in str(deletion.removed))


def test_comments_with_types_use_imports_and_fixtures_of_a_file_of_tests_are_its_own() -> None:
    head = "from typing import Dict, List, Tuple\nimport pytest\nfrom m import gone\n\n\n"
    fixture = "@pytest.fixture\ndef rows():\n    return [1]\n\n\n"
    test = "def test_m(rows):\n    x = rows  # type: List[int]\n    y = {}  # type: Dict[int, Tuple[int]]\n"
    test += "    assert gone(x, y)\n"
    other = "\n\ndef test_n():\n    z = ()  # type: Tuple[int, ...]\n    assert not z\n"
    files = {
        "m.py": "def gone(x, y):\n    return x\n",
        "test_m.py": head + fixture + test + other,
        "test_o.py": f"import pytest\n\n\n{fixture}def test_o(rows):\n    assert rows\n",
    }
    codebase = PythonCodebase.from_texts(files)
    deletion = delete_symbol(codebase, "m.py::gone", ("test_m.py::test_m",))
    left = after(files, deletion)
    assert left["test_m.py"] == f"from typing import Tuple\n\n\n{other.lstrip()}"
    assert left["test_o.py"] == files["test_o.py"]


@pytest.mark.parametrize(("base", "is_kept"), [("pkg.tools", True), ("unittest", False)])
def test_values_that_a_base_in_another_file_reads_stay(base: str, *, is_kept: bool) -> None:
    tools = "import unittest\n\n\nclass TestCase(unittest.TestCase):\n    options = {}\n\n    def check(self, x):\n"
    case = "class Test{}(TestCase):\n    options = {{'a': 1}}\n\n    def test_gone(self):\n"
    case += "        assert gone(self.options)\n\n    def test_more(self):\n        self.assertTrue(1)\n"
    head = f"from {base} import TestCase\nfrom pkg.m import gone\n\n\n"
    files = {
        "pkg/__init__.py": "",
        "pkg/tools.py": tools + "        self.assertTrue(x, self.options)\n",
        "pkg/m.py": "def gone(x):\n    return x\n",
        "tests/test_m.py": head + case.format("Gone"),
        "tests/test_n.py": head + case.format("Kept"),
    }
    ids = ("tests/test_m.py::TestGone::test_gone", "tests/test_n.py::TestKept::test_gone")
    left = after(files, delete_symbol(PythonCodebase.from_texts(files), "pkg/m.py::gone", ids))["tests/test_n.py"]
    assert ("options = {'a': 1}" in left) is is_kept
