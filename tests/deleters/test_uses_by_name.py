"""Removed code that others know by its name alone: fixtures, texts, scripts, and names that something else has, too."""

from __future__ import annotations

import textwrap

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase

from .planned_deletions import delete_symbol
from .test_remove_details import after, delete

FIXTURE = "import pytest\n\n\n@pytest.fixture{of}\ndef gone():\n    yield 1\n\n\n"


def left(files: dict[str, str], symbol: str = "pkg/m.py::gone") -> tuple[str, ...]:
    files = {"pkg/__init__.py": "", "test_m.py": "def test_m():\n    assert 1\n", **files}
    return tuple(
        text for _, text in delete_symbol(PythonCodebase.from_texts(files), symbol, ("test_m.py::test_m",)).uses_left
    )


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("@pytest.fixture\ndef user(gone):\n    return 2\n", ("user asks for the fixture gone",)),
        ("@pytest.fixture()\ndef user(tmp_path, gone=None):\n    return 2\n", ("user asks for the fixture gone",)),
        ("@pytest.fixture\ndef user(begone):\n    return 2\n", ()),
        ("def user(gone):\n    return 2\n", ()),
    ],
)
def test_a_fixture_that_another_one_asks_for_stays(rest: str, expected: tuple[str, ...]) -> None:
    assert left({"pkg/m.py": FIXTURE.format(of="") + rest}) == expected


def test_tests_that_ask_for_a_removed_fixture_are_hidden() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": FIXTURE.format(of="") + "def other():\n    return 1\n",
        "test_m.py": "def test_m():\n    assert 1\n",
        "tests/conftest.py": "from pkg.m import gone, other\n",
        "tests/test_n.py": "def test_n(gone):\n    assert gone\n\n\ndef test_o():\n    assert 1\n",
    }
    result = after(files, delete(files, "pkg/m.py::gone"))
    assert result["tests/test_n.py"] == "def test_o():\n    assert 1\n"
    files["tests/conftest.py"] += f"\n\n{FIXTURE.format(of='()')}"
    assert "test_n" in after(files, delete(files, "pkg/m.py::gone"))["tests/test_n.py"], "another one has its name"


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        ('warn("use pkg.m.gone instead")', True),
        ('warn("use " "m.gone() instead")', True),
        ('warn("use pkg.m.gone_by instead")', False),
        ('warn("use pkg.n.gone instead")', False),
        ('warn("it is gone")', False),
    ],
)
def test_texts_that_name_what_is_gone(text: str, *, is_left: bool) -> None:
    source = f"def gone(x):\n    return x\n\n\ndef old():\n    {text}\n    return 1\n"
    assert bool(left({"pkg/m.py": source})) is is_left


def test_a_method_that_an_assignment_makes_otherwise_stays() -> None:
    source = (
        "from typing import TYPE_CHECKING\n\n\nclass Box:\n    if TYPE_CHECKING:\n\n"
        "        def gone(self):\n            return 1\n\n    else:\n        gone = make()\n\n    rest = 1\n"
    )
    assert left({"pkg/m.py": source}, "pkg/m.py::Box.gone") == ("an assignment binds Box.gone, too",)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("from pkg.m import gone\n\ngone(1)\n", ("the script uses gone",)),
        ("import pkg.m\n\n\ndef main():\n    pkg.m.gone(1)\n", ("the script uses gone",)),
        ("from pkg.m import other\n\nother(1)\n", ()),
    ],
)
def test_what_scripts_use_stays(script: str, expected: tuple[str, ...]) -> None:
    source = "def gone(x):\n    return x\n\n\ndef other(x):\n    return 1\n"
    assert tuple(dict.fromkeys(left({"pkg/m.py": source, "examples/run.py": script}))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A. See `Box.open`. B.\n", "A. B.\n"),
        ("A. See :meth:`~pkg.m.Box.open`. B.\n", "A. B.\n"),
        ("A. See `open`. B.\n", "A. See `open`. B.\n"),
        ("A. See `File.open`. B.\n", "A. See `File.open`. B.\n"),
        ("A. See `Other.open`. B.\n", "A. See `Other.open`. B.\n"),
        ("A. See `Box.find`. B.\n", "A. See `Box.find`. B.\n"),
    ],
)
def test_a_name_that_something_else_has_is_gone_behind_its_owner(text: str, expected: str) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": (
            "class Base:\n    def find(self):\n        return 0\n\n\n"
            "class Box(Base):\n    def open(self):\n        return 1\n\n    def find(self):\n        return 2\n\n"
            "    def shut(self):\n        return 1\n\n\nclass File:\n    def open(self):\n        return 2\n"
        ),
        "docs/use.md": text,
    }
    for symbol in ("Box.open", "Box.find") if "find" in text else ("Box.open",):
        assert after(files, delete(files, f"pkg/m.py::{symbol}"))["docs/use.md"] == expected


def test_modules_of_python_have_names_of_their_own() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": "import re\n\n\ndef findall(x):\n    return x\n\n\ndef other():\n    return re.findall('a', 'b')\n",
        "docs/use.md": "A. See `findall()`. B.\n",
    }
    assert after(files, delete(files, "pkg/m.py::findall"))["docs/use.md"] == "A. B.\n"


@pytest.mark.parametrize(
    ("owner", "is_gone"), [("Box", True), ("pkg.m.Box", True), ("Small", True), ("Other", False), ("Own", False)]
)
def test_members_below_the_directive_of_a_class(owner: str, *, is_gone: bool) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": (
            "class Box:\n    def open(self):\n        return 1\n\n    def shut(self):\n        return 1\n\n\n"
            "class Small(Box):\n    x = 1\n\n\nclass Other:\n    def open(self):\n        return 2\n\n\n"
            "class Own(Box):\n    def open(self):\n        return 3\n"
        ),
        "docs/api.rst": f".. autoclass:: {owner}\n\n   .. automethod:: shut\n\n   .. automethod:: open\n\nMore.\n",
    }
    left = after(files, delete(files, "pkg/m.py::Box.open"))["docs/api.rst"]
    assert ("open" not in left) is is_gone
    assert "automethod:: shut" in left


def test_comments_of_tests_that_stay_do_not_name_it() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": "def gone_by(x):\n    return x\n\n\ndef other():\n    return 1\n",
        "test_n.py": "def test_n():\n    # print(gone_by(1))\n    assert 1\n",
    }
    assert after(files, delete(files, "pkg/m.py::gone_by"))["test_n.py"] == "def test_n():\n    assert 1\n"


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("def use(x):\n    return getattr(x, 'open', None)\n", ("getattr(x, 'open' looks for Box.open",)),
        ("def use(x):\n    if hasattr(x.y, \"open\"):\n        return 1\n",
         ('hasattr(x.y, "open" looks for Box.open',)),
        ("def use(x):\n    return getattr(x, 'opens', None)\n", ()),
        ("class File:\n    def open(self):\n        return 1\n\n\ndef use(x):\n    return getattr(x, 'open')\n", ()),
        ("class Small(Box):\n    @override\n    def open(self):\n        return 2\n",
         ("Small.open would be left",)),
        ("class Small(Box):\n    def open(self):\n        return 2\n", ("Small.open would be left",)),
        ("class Small:\n    @override\n    def open(self):\n        return 2\n", ()),
    ],
)  # fmt: skip
def test_methods_that_others_look_up_or_override_stay(rest: str, expected: tuple[str, ...]) -> None:
    source = f"class Box:\n    def open(self):\n        return 1\n\n    def shut(self):\n        return 2\n\n\n{rest}"
    assert left({"pkg/m.py": source}, "pkg/m.py::Box.open") == expected


@pytest.mark.parametrize("name", ['f"write_{kind}"', "f'write_{kind.lower()}'", '"write_" + kind', "'write_%s' % kind"])
@pytest.mark.parametrize(("table", "is_found"), [('["rst", "md"]', True), ('["html", "md"]', False)])
def test_a_method_that_a_table_leads_to_stays(name: str, table: str, *, is_found: bool) -> None:
    source = (
        f"KINDS = {table}\n\n\nclass Writer:\n    def write(self, kind):\n        return getattr(self, {name})()\n\n"
        "    def write_md(self):\n        return 1\n\n    def write_rst(self):\n        return 2\n"
    )
    expected = ("Writer.write_rst is looked for by rst",) if is_found else ()
    assert left({"pkg/m.py": source}, "pkg/m.py::Writer.write_rst") == expected


def test_methods_with_names_of_python_are_no_mentions() -> None:
    example = '    """One.\n\n    >>> {1}.issubset({2})\n    False\n    """\n'
    source = (
        "class Box:\n    def issubset(self, other):\n        return 1\n\n    def shut(self):\n        return 2\n\n\n"
        f"def other():\n{example}"
    )
    files = {"pkg/__init__.py": "", "pkg/m.py": source}
    assert example in after(files, delete(files, "pkg/m.py::Box.issubset"))["pkg/m.py"]


@pytest.mark.parametrize(("base", "is_left"), [("Base", True), ("object", False)])
def test_a_value_of_a_class_that_a_base_has_too_stays(base: str, *, is_left: bool) -> None:
    source = (
        "def gone(x):\n    return x\n\n\nclass Base:\n    kind = len\n\n\n"
        f"class Box({base}):\n    kind = gone\n\n    def use(self):\n        return 1\n"
    )
    expected = ("Box.kind would be that of a base",) if is_left else ()
    assert left({"pkg/m.py": source}) == expected


def test_examples_that_call_a_method_behind_its_class_go() -> None:
    example = '    """One.\n\n    >>> box = Box.open("a")\n    >>> box.shut()\n    2\n    """\n'
    source = (
        "class Box:\n    def open(text):\n        return 1\n\n"
        f"    def shut(self):\n{textwrap.indent(example, '    ')}        return 2\n\n\n"
        "class File:\n    def open(self):\n        return 3\n"
    )
    files = {"pkg/__init__.py": "", "pkg/m.py": source}
    assert ">>>" not in after(files, delete(files, "pkg/m.py::Box.open"))["pkg/m.py"]
    assert ">>>" in after(files, delete(files, "pkg/m.py::File.open"))["pkg/m.py"]


def test_a_role_in_a_docstring_of_the_class_names_its_own_member() -> None:
    text = '"""One.\n\n        As :meth:`open` does. More.\n        """'
    source = (
        "class Box:\n    def open(self):\n        return 1\n\n"
        f"    def shut(self):\n        {text}\n        return 2\n\n\n"
        f"class File:\n    def open(self):\n        {text}\n        return 3\n"
    )
    files = {"pkg/__init__.py": "", "pkg/m.py": source}
    result = after(files, delete(files, "pkg/m.py::Box.open"))["pkg/m.py"]
    assert result.count(":meth:`open`") == 1, "the one of the other class"
    assert '"""One.\n\n        More.\n        """' in result


@pytest.mark.parametrize("name", ["extract_all", "load"])
def test_tests_of_a_function_of_the_same_name_stay(name: str) -> None:
    """The name in such a test is that of the other function, as its import says, and no attribute of an object."""
    function = f"def {name}(x):\n    return x\n"
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": function + "\n\ndef other():\n    return 1\n",
        "pkg/n.py": function,
        "test_m.py": "def test_m():\n    assert 1\n",
        "test_n.py": f"from pkg.n import {name}\n\n\ndef test_n():\n    assert {name}(1)\n",
    }
    assert after(files, delete(files, f"pkg/m.py::{name}"))["test_n.py"] == files["test_n.py"]


@pytest.mark.parametrize(
    ("call", "is_left"),
    [
        ('self.each("gone", tag)', True),
        ('self.each(tag, "gone")', True),
        ('self.each("gone by", tag)', False),
        ('self.each(gone="gone")', False),
    ],
)
@pytest.mark.parametrize("looks", ["getattr(part, name)()", "getattr(part, 'name')()"])
def test_a_method_stays_whose_name_is_passed_to_what_looks_for_attributes(call: str, is_left: bool, looks: str) -> None:
    fan = f"class Fan:\n    def each(self, name, tag):\n        {looks}\n\n    def gone(self, tag):\n        {call}\n"
    files = {"pkg/m.py": "class Part:\n    def gone(self):\n        return 1\n\n    a = 1\n", "pkg/n.py": fan}
    found = left(files, "pkg/m.py::Part.gone")
    assert any("by its name" in text for text in found) == (is_left and "'name'" not in looks)


@pytest.mark.parametrize(("other", "is_left"), [("release(self)", True), ("close(self)", False)], ids=["half", "whole"])
def test_a_method_that_means_nothing_without_its_other_half_stays_with_it(other: str, is_left: bool) -> None:
    source = f"class Door:\n    def acquire(self):\n        return self\n\n    def {other}:\n        return None\n"
    assert (left({"pkg/m.py": source}, "pkg/m.py::Door.acquire") != ()) is is_left


@pytest.mark.parametrize("name", ["__enter__", "__getitem__", "__str__", "__add__"])
def test_special_methods_stay_unless_their_class_goes(name: str) -> None:
    source = f"class Box:\n    def {name}(self, *n):\n        return n\n\n    def other(self):\n        return 1\n"
    text = f"Box.{name} is used without its name"
    assert text in left({"pkg/m.py": source}, f"pkg/m.py::Box.{name}")
    assert text not in left({"pkg/m.py": source}, "pkg/m.py::Box")
    source = source.replace(f"def {name}", "def go").replace("    def other", f"    {name} = go\n\n    def other")
    assert text in left({"pkg/m.py": source}, "pkg/m.py::Box.go")


@pytest.mark.parametrize(
    ("rest", "is_left"),
    [
        ('def read(kind="plain"):\n    return KINDS[kind](1)\n', True),
        ("def read(kind):\n    return KINDS[kind](1)\n", False),
        ('def read(kind="plainly"):\n    return KINDS[kind](1)\n', False),
        ('NAMES = {\n    "plain": "a text",\n    "other": "b",\n}\n', True),
    ],
)
def test_the_key_of_an_entry_stays_if_other_code_has_it(rest: str, *, is_left: bool) -> None:
    source = "def gone(x):\n    return x\n\n\ndef stay(x):\n    return -x\n\n\n"
    source += f'KINDS = {{\n    "plain": gone,\n    "other": stay,\n}}\n\n\n{rest}'
    text = "'plain' would be left, the key of an entry that is gone"
    assert (text in left({"pkg/m.py": source}, "pkg/m.py::gone")) is is_left


def test_helpers_of_tests_that_use_it_stay_with_it() -> None:
    helper = (
        "from pkg.m import gone\n\n\nclass Base:\n    def run(self):\n        if self:\n            return gone(1)\n"
    )
    files = {
        "pkg/m.py": "def gone(x):\n    return x\n\n\ndef stay(x):\n    return -x\n",
        "tests/__init__.py": "",
        "tests/tools.py": helper,
        "tests/test_m.py": "from tests.tools import Base\n\n\nclass TestM(Base):\n    def test_m(self):\n"
        "        assert self.run()\n\n    def test_other(self):\n        assert self\n",
    }
    assert "the helper Base.run of tests uses gone" in left(files, "pkg/m.py::gone")


def test_an_attribute_of_an_unknown_object_at_import_is_a_use_of_the_only_method_of_this_name() -> None:
    parser = "class Parser:\n    def combine_all(self):\n        return 1\n\n    def other(self):\n        return 2\n"
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": parser,
        "examples/__init__.py": "",
        "examples/sql.py": "from pkg.m import Parser\n\nselect = make(Parser()).combine_all(1)\n",
        "test_m.py": "from pkg.m import Parser\n\ndef test_m():\n    Parser().combine_all()\n",
    }
    deletion = delete_symbol(PythonCodebase.from_texts(files), "pkg/m.py::Parser.combine_all", ("test_m.py::test_m",))
    assert [path for path, text in deletion.uses_left if "combine_all" in text] == ["examples/sql.py"]


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        ('call = f"list(el.next_gone())[:{n}]"', True),
        ('warn("use next_gone instead")', True),
        ('warn("use `next_gone`.")', True),
        ('key = "next_gone"', False),
        ('warn("use next_gone_by instead")', False),
        ('"""Like next_gone."""', True),
    ],
)
def test_texts_with_a_name_that_is_no_english_word(text: str, *, is_left: bool) -> None:
    method = "    def next_gone(self):\n        return 1\n"
    files = {"pkg/m.py": f"class Box:\n{method}\n    def old(self, n):\n        {text}\n        return 1\n"}
    assert bool(left(files, "pkg/m.py::Box.next_gone")) is is_left
    files["pkg/n.py"] = f"class Other:\n{method}"
    assert not left(files, "pkg/m.py::Box.next_gone"), "something else has the name"


@pytest.mark.parametrize(
    ("lookup", "visitor", "is_left"),
    [
        ('"visit" + type(node).__name__', "visitGone", True),
        ('f"visit_{node.__class__.__name__}"', "visit_Gone", True),
        ('"visit_%s" % node.__class__.__name__', "visit_Gone", True),
        ('"visit" + type(node).__name__', "visit_Gone", False),
        ('"visit" + node.kind', "visitGone", False),
    ],
)
def test_visitors_of_a_class_that_is_gone(lookup: str, visitor: str, *, is_left: bool) -> None:
    source = "class Gone:\n    pass\n\n\nclass Left:\n    pass\n"
    visit = f"def visit(visitor, node):\n    getattr(visitor, {lookup})(node)\n\n\n"
    visit += (
        f"def walk(found):\n    class Finder:\n        def {visitor}(self, node):\n            found.append(node)\n"
    )
    assert bool(left({"pkg/m.py": source, "pkg/walk.py": visit}, "pkg/m.py::Gone")) is is_left


@pytest.mark.parametrize(
    ("body", "is_left"),
    [
        ("    global gone\n    from pkg.m import gone\n", True),
        ("    from pkg import m\n    return m\n", False),
        ("    from pkg.m import other\n    return other\n", False),
    ],
)
def test_imports_of_what_is_gone_in_functions(body: str, *, is_left: bool) -> None:
    files = {"pkg/m.py": "def gone():\n    return 1\n\n\ndef other():\n    return 2\n"}
    assert bool(left({**files, "pkg/n.py": f"def load():\n{body}"})) is is_left


def test_a_comment_below_what_it_names_goes_with_it() -> None:
    source = "ZERO = 0\n# the default of numbers.\n\n\n"
    source += "GONE = make(1)\n# the default of GONE.\n\n\ndef rest():\n    return 1\n"
    files = {"pkg/__init__.py": "", "pkg/m.py": "class Gone:\n    pass\n\n\n" + source.replace("make(1)", "Gone()")}
    files["test_m.py"] = "def test_m():\n    assert 1\n"
    assert after(files, delete(files, "pkg/m.py::Gone"))["pkg/m.py"] == (
        "ZERO = 0\n# the default of numbers.\n\n\ndef rest():\n    return 1\n"
    )


@pytest.mark.parametrize(
    ("use", "is_left"),
    [
        ("self.parcel.gone()", True),
        ("self._first_parcel().gone()", True),
        ("parcel_gone()", False),
        ("self.parcels.gone()", False),
        ("self.parcel.gone = 1", False),
    ],
)
def test_a_method_of_an_object_that_is_named_like_its_class_stays(use: str, *, is_left: bool) -> None:
    files = {
        "pkg/m.py": "class Parcel:\n    def gone(self):\n        return 1\n\n    def rest(self):\n        return 2\n",
        "pkg/n.py": f"class Van:\n    def gone(self):\n        {use}\n        return 3\n",
    }
    assert bool(left(files, "pkg/m.py::Parcel.gone")) is is_left


@pytest.mark.parametrize(
    ("collected", "kind", "is_left"),
    [
        ("inspect.getmembers(self)", '"heading"', True),
        ("dir(self)", "'heading'", True),
        ("self.rules", '"heading"', False),
        ("dir(self)", '"headings"', False),
    ],
)
def test_a_method_that_is_collected_by_its_name_stays(collected: str, kind: str, *, is_left: bool) -> None:
    source = f"import inspect\n\n\nclass Renderer:\n    def __init__(self):\n        self.found = {collected}\n\n"
    source += "    def heading(self):\n        return 1\n"
    files = {"pkg/m.py": source, "pkg/n.py": f"def parse(push):\n    push({kind})\n"}
    assert bool(left(files, "pkg/m.py::Renderer.heading")) is is_left


def test_what_is_imported_where_another_import_fails_stays() -> None:
    files = {
        "pkg/m.py": "def gone():\n    return 1\n",
        "pkg/fast.py": "import engine\n\n\ndef gone():\n    return 2\n",
        "pkg/n.py": "try:\n    from pkg.fast import gone\nexcept ImportError:\n    from pkg.m import gone\n",
    }
    assert left(files)
    files["pkg/n.py"] = "try:\n    from pkg.m import gone\nexcept ImportError:\n    pass\n"
    assert not left(files)


def test_a_manifest_that_names_what_is_gone() -> None:
    hook = '[tool.release]\nbefore = ["pkg.m.gone"]\n'
    source = "def gone():\n    return 1\n\n\ndef rest():\n    return 2\n"
    assert left({"pkg/m.py": source, "pyproject.toml": hook})
    assert not left({"pkg/m.py": source, "pyproject.toml": hook.replace("gone", "gone_by")})


@pytest.mark.parametrize(
    ("lookup", "rest", "is_left"),
    [
        ("getattr(self, kind, None)", "", True),
        ("getattr(self, 'other', None)", "", False),
        ("getattr(self, kind, None)", "\n    def use(self):\n        return self.SUBSCRIPT(1)\n", True),
        ("getattr(node, kind, None)", "", False),
    ],
)
def test_a_method_of_a_class_that_looks_for_its_methods_stays(lookup: str, rest: str, *, is_left: bool) -> None:
    source = f"class Checker:\n    def handle(self, kind, node):\n        return {lookup}\n\n"
    source += f"    def SUBSCRIPT(self, node):\n        return 1\n{rest}"
    assert bool(left({"pkg/m.py": source}, "pkg/m.py::Checker.SUBSCRIPT")) is is_left


@pytest.mark.parametrize(
    ("name", "is_left"), [("visit_Plus", True), ("visit_Subscript", True), ("visit_Gone", False), ("visit_all", False)]
)
def test_a_visitor_of_a_class_that_stays_stays(name: str, *, is_left: bool) -> None:
    source = "class Plus:\n    pass\n\n\nclass Writer:\n    def visit(self, node):\n"
    source += '        return getattr(self, "visit_" + type(node).__name__)(node)\n\n'
    source += f'    def {name}(self, node):\n        """One."""\n        return 1\n'
    assert bool(left({"pkg/m.py": source}, f"pkg/m.py::Writer.{name}")) is is_left


def test_comments_from_which_no_sentence_can_go() -> None:
    source = "def gone_by(x):\n    return x\n\n\n# gone_by    - ~10/sec\n# rest_by    - ~20/sec\nLIMIT = 1\n"
    assert left({"pkg/m.py": source}, "pkg/m.py::gone_by")
    assert not left({"pkg/m.py": source.replace("# gone_by", "# gone")}, "pkg/m.py::gone_by")


def test_a_method_of_an_object_that_is_made_where_it_is_called_stays() -> None:
    source = "class Env:\n    def gone(self):\n        return 1\n\n    def rest(self):\n        return 2\n\n\n"
    source += "def key(path):\n    return Env(path, flag=dict(a=1), more='a text of some length here').gone(1)\n"
    source += "\n\nclass Other:\n    def gone(self):\n        return 3\n"
    assert left({"pkg/m.py": source}, "pkg/m.py::Env.gone")


def test_a_flag_that_only_a_removed_path_set_stays() -> None:
    source = "def gone(x):\n    return x\n\n\ndef check(x):\n    is_odd = False\n    if x == 3:\n        x = gone(x)\n"
    source += "        is_odd = True\n    elif x:\n        x = 2\n    return x if not is_odd else 1\n"
    assert left({"pkg/m.py": source})
    assert not left({"pkg/m.py": source.replace("        is_odd = True\n", "")})


@pytest.mark.parametrize(("other", "is_left"), [("from pkg.other import gone", True), ("import pkg.other", False)])
def test_a_name_that_another_branch_imports_stays(other: str, *, is_left: bool) -> None:
    files = {
        "pkg/__init__.py": f"import sys\n\nif sys.platform:\n    {other}\nelse:\n    from pkg.m import gone, rest\n",
        "pkg/other.py": "def gone():\n    return 3\n",
        "pkg/m.py": "def gone():\n    return 1\n\n\ndef rest():\n    return 2\n",
    }
    assert bool(left(files)) is is_left


@pytest.mark.parametrize(
    ("readme", "is_left"), [("# pkg\n\nE722 - Fix it.\n", True), ("# pkg\n\nE721 - Fix it.\n", False)]
)
def test_a_method_whose_code_documents_list_stays(readme: str, *, is_left: bool) -> None:
    source = "class Fixer:\n    def fix(self, code):\n        return getattr(self, 'fix_' + code.lower())\n\n"
    source += "    def fix_e722(self, line):\n        return line\n"
    assert bool(left({"pkg/m.py": source, "README.md": readme}, "pkg/m.py::Fixer.fix_e722")) is is_left


def test_an_attribute_with_a_slot_that_nothing_reads_any_more() -> None:
    source = "class Box:\n    __slots__ = ('_source', 'size')\n\n    def __init__(self):\n        self._source = None\n"
    source += "        self.size = 1\n\n    def gone(self):\n        return self._source\n"
    assert any("_source" in text for text in left({"pkg/m.py": source}, "pkg/m.py::Box.gone"))
