"""Problem statements: what they say of code that went with the removed code, and of how both were named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.python.code_editor import EDITOR
from excise.deleters.python.references.entry_points import entry_lines
from excise.deleters.python.statement_words import PythonWords
from excise.deleters.statement.problem_statement import write_statement
from excise.deleters.statement.uses import where_used
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.language import Python
from excise.types import CoverageMap, Feature, FeatureKind

from .planned_deletions import REPO, delete_symbol
from .test_remove_details import after, delete

ZONES = {
    "pkg/__init__.py": "from pkg.zones import LOCAL, Local\n\n__all__ = ['LOCAL', 'Local']\n",
    "pkg/registry.py": "KNOWN = []\n\n\ndef known(*names):\n    return KNOWN.append\n",
    "pkg/zones.py": (
        "from pkg.registry import known\n\nOFFSET = 5\n\n\nclass Local:\n"
        "    def offset(self):\n        return OFFSET + 2 * OFFSET\n\n\n"
        "LOCAL = Local()\nZONE = Local(\n    'for near',\n)\nMAKE = Local.offset or (lambda: 1)\n\n\n"
        "class Zones:\n    first = Local()\n    by_name = {\n        'local': Local,\n        'none': None,\n    }\n"
        "known('local', 'here')(Local)\nTABLES = [('local', Local, 1), ('none', None, 2)]\n"
        "if __name__ == '__main__':\n    print(Local())\n"
    ),
    "tests/test_zones.py": (
        "import pkg\nfrom pkg import zones\n\n\ndef test_local(monkeypatch):\n"
        "    monkeypatch.setattr(zones, 'OFFSET', 7)\n    assert pkg.LOCAL.offset() == 21\n"
        "    assert zones.ZONE and zones.MAKE\n"
    ),
}


def test_names_that_only_removed_code_binds_are_shown() -> None:
    codebase = PythonCodebase.from_texts(ZONES)
    deletion = delete_symbol(codebase, "pkg/zones.py::Local", ("tests/test_zones.py::test_local",))
    needs = Python().find_needs(codebase, deletion.removed, ["tests/test_zones.py::test_local"])
    text = write_statement(codebase, deletion, REPO, ("tests/test_zones.py::test_local",), needs=needs).text
    assert "```python\nLOCAL = Local()\nZONE = Local(\n    'for near',\n)\n```" in text
    assert "```python\nfirst = Local()\n```\n(in `Zones`)" in text
    assert "the name `MAKE`" in text  # its content would be code
    assert "lambda" not in text
    assert "- `pkg/__init__.py` offered `LOCAL`, `Local` as well." in text
    assert "so that it must use them: `pkg.zones.OFFSET`." in text
    assert "together with the imports" in text


def test_calls_and_entries_of_tables_that_go_with_the_code_are_shown() -> None:
    codebase = PythonCodebase.from_texts(ZONES)
    deletion = delete_symbol(codebase, "pkg/zones.py::Local", ("tests/test_zones.py::test_local",))
    main = "if __name__ == '__main__':\n    print(Local())"
    first = "  # the first one"
    lines = [
        "known('local', 'here')(Local)",
        main,
        f"by_name: 'local': Local{first}",
        f"TABLES: ('local', Local, 1){first}",
    ]
    assert deletion.registrations == tuple(("pkg/zones.py", line) for line in lines)
    text = write_statement(codebase, deletion, REPO, ("tests/test_zones.py::test_local",)).text
    assert "\n".join(["`pkg/zones.py`:\n", "```", *lines, "```"]) in text
    assert "## Where it is used" not in text, "all lines that name it are gone"


OFFERED = {
    "pyproject.toml": "[project]\nname = 'pkg'\n\n[project.scripts]\nrun = 'pkg.core:run'\nstay = 'pkg.core:stay'\n",
    "pkg/__init__.py": "",
    "pkg/core.py": (
        "import os\nimport re\n\n\nclass Base:\n    def run(self):\n        return 1\n\n\n"
        "# TODO: what run should do one day\ndef run(x):\n    return re.escape(os.fspath(x))\n\n\n"
        "def stay():\n    return re.escape('a')\n"
    ),
    "pkg/tags.py": (
        "from pkg.core import (\n    run,\n    stay,\n)\n\n\ndef use(base):\n    # run may be slow\n"
        "    running = base.run\n    return run(stay())\n"
    ),
    "pkg/other.py": "from pkg.core import run as _run\n\n\ndef more():\n    run = 1\n    return run\n",
    "pkg/sub/__init__.py": "def fast():\n    run = 1\n    return run\n",
    "pkg/lazy/__init__.py": "_NAMES = {'run': 'pkg.core'}\n\n\ndef __getattr__(name):\n    return _NAMES[name]\n",
    "test_m.py": "from pkg.tags import run\n\n\ndef test_m():\n    assert run(1)\n",
}


def test_names_in_lists_of_the_same_file_are_said() -> None:
    files = {
        "m.py": '__all__ = ["stay", "run"]\n\n\ndef run(x):\n    """Runs it."""\n\n\ndef stay():\n    return 1\n',
        "test_m.py": "from m import *\n\n\ndef test_m():\n    assert run(1) is None\n",
    }
    codebase = PythonCodebase.from_texts(files)
    tests = ("test_m.py::test_m",)
    text = write_statement(codebase, delete_symbol(codebase, "m.py::run", tests), REPO, tests).text
    assert "- The `__all__` of `m.py` had `run`." in text
    assert "imports and exports" not in text


def test_only_what_is_gone_was_offered() -> None:
    files = {
        "pkg/__init__.py": "from pkg.core import run\n",
        "pkg/core.py": "def run():\n    return 1\n",
        "pkg/temp.py": '"""Runs."""\n\n\ndef run(x):\n    """Run it."""\n    return getattr(x, "run")\n',
        "test_m.py": "from pkg.temp import run\n\n\ndef test_m():\n    assert run(1)\n",
    }
    codebase, tests = PythonCodebase.from_texts(files), ("test_m.py::test_m",)
    for symbol, deleter in (("pkg/temp.py::run", "remove"), ("pkg/temp.py", "remove"), ("pkg/core.py::run", "stub")):
        text = write_statement(codebase, delete_symbol(codebase, symbol, tests, deleter), REPO, tests).text
        assert "Also importable" not in text


def test_everything_that_went_with_the_code_is_said() -> None:
    codebase = PythonCodebase.from_texts(OFFERED)
    tests = ("test_m.py::test_m",)
    text = write_statement(codebase, delete_symbol(codebase, "pkg/core.py::run", tests), REPO, tests).text
    assert "missing, together with the imports and exports that named it; imports that only this code used " in text
    assert "are gone as well (`import os`). Write" in text
    assert "- `pkg/lazy/__init__.py` offered `run` as well." in text
    assert "- `pkg/other.py` offered `run` as `_run` as well." in text
    assert "- `pkg/tags.py` offered `run` as well." in text
    assert "pkg/sub" not in text, "a local variable of the same name"
    assert "`pyproject.toml`:\n\n```\nrun = 'pkg.core:run'\n```" in text
    assert "- `pkg/tags.py::use`: `return run(stay())`" in text
    assert "TODO" not in text


def test_the_line_that_uses_a_method_is_the_one_with_its_class() -> None:
    files = {
        "m.py": (
            "class Part:\n    def load(self):\n        return 1\n\n\n"
            "def use(part):\n    load = part.loaded\n    print('load', load)\n    return Part.load(part)\n"
        ),
        "test_m.py": "from m import use, Part\n\n\ndef test_m():\n    assert use(Part())\n",
    }
    codebase = PythonCodebase.from_texts(files)
    tests = ("test_m.py::test_m",)
    text = write_statement(codebase, delete_symbol(codebase, "m.py::Part.load", tests, "stub"), REPO, tests).text
    assert "- `m.py::use`: `return Part.load(part)`" in text


@pytest.mark.parametrize(
    ("removed", "lines", "shown"),
    [
        ("plain.py::count", "y = fast.count(x)\n    return plain.count(x)", "return plain.count(x)"),
        ("plain.py::count", "y = count(x)\n    return plain.count(x)", "return plain.count(x)"),
        ("plain.py::count", "return fast.count(x)", ""),
        ("plain.py::count", "return fast.count(count(x))", "return fast.count(count(x))"),
        ("plain.py::count", "return text.count(x)", "return text.count(x)"),
        ("plain.py::Box.fill", "return Bag.fill(x)", ""),
        ("plain.py::Box.fill", "return fast.fill(x)", "return fast.fill(x)"),
    ],
)
def test_a_line_that_names_the_place_of_another_definition_of_the_name_is_no_use(
    removed: str, lines: str, shown: str
) -> None:
    count, fill = "def count(x):\n    return x\n\n\n", ":\n    def fill(self):\n        return 1\n"
    files = {
        "simd/plain.py": f"{count}class Box{fill}",
        "simd/fast.py": f"{count}class Bag{fill}",
        "lib.py": f"from simd import fast, plain\n\n\ndef use(x):\n    {lines}\n",
        "test_m.py": "def test_m():\n    assert 1\n",
    }
    codebase, gone = PythonCodebase.from_texts(files), f"simd/{removed}"
    deletion = delete_symbol(codebase, gone, ("test_m.py::test_m",), "stub")
    text = where_used(codebase, [codebase.symbols()[gone]], {gone: ["lib.py::use"]}, deletion, PythonWords())
    assert text.partition("`lib.py::use`: ")[2] == (f"`{shown}`" if shown else "")


TWICE = {
    "m.py": (
        "import sys\n\n\nif sys.version_info > (3,):\n    def text(x):\n        return str(x)\n"
        "else:\n    def text(x):\n        return repr(x)\n\n\n"
        "if sys.version_info > (3,):\n    def told(x):\n        return x\n"
        "else:\n    def told(x):\n        return text(x)\n"
    ),
    "test_m.py": "from m import text\n\n\ndef test_m():\n    assert text(1)\n",
}


def test_definitions_of_one_name_are_named_once_and_without_numbers() -> None:
    codebase = PythonCodebase.from_texts(TWICE)
    tests = ("test_m.py::test_m",)
    text = write_statement(codebase, delete_symbol(codebase, "m.py::text", tests), REPO, tests).text
    assert text.startswith("# Bring back `text`\n")
    assert "- `m.py::told`: `return text(x)`" in text
    assert "#2" not in text


HOOKS = {
    "pkg/__init__.py": "",
    "pkg/toc.py": (
        "def _ids(x):\n    return [x] * 2\n\n\ndef _own(x):\n    return x\n\n\ndef toc(x):\n    return _own(x)\n"
    ),
    "pkg/core.py": "from pkg import toc\n\n\ndef used(x):\n    return toc._ids(x)\n",
    "tests/test_toc.py": "from pkg.toc import toc\n\n\ndef test_toc():\n    assert toc(1)\n",
}


def test_private_names_that_code_that_stays_needs_are_shown() -> None:
    codebase = PythonCodebase.from_texts(HOOKS)
    deletion = delete_symbol(codebase, "pkg/toc.py", ("tests/test_toc.py::test_toc",))
    text = write_statement(codebase, deletion, REPO, ("tests/test_toc.py::test_toc",)).text
    assert "def _ids(x)" in text
    assert "def _own(x)" not in text


def test_tests_in_sight_whose_files_lost_parts_are_told_apart() -> None:
    codebase = PythonCodebase.from_texts(ZONES)
    test = "tests/test_zones.py::test_local"
    deletion = delete_symbol(codebase, "pkg/zones.py::Local", (test,))
    other = replace(deletion, hidden=())
    assert deletion.hide_patch
    text = write_statement(codebase, other, REPO, (test,)).text
    assert "One test that is in files of which this checkout has parts only (`tests/test_zones.py`) must pass" in text
    text = write_statement(codebase, replace(other, hide_patch=""), REPO, (test,)).text
    assert "One test that is in this checkout (in `tests/test_zones.py`), failing now, must pass" in text


def test_a_test_of_another_class_with_the_name_of_a_hidden_one_is_in_sight() -> None:
    source = (
        "from m import gone, stays\n\n\nclass TestA:\n    def test_x(self):\n        assert gone()\n\n\n"
        "class TestB:\n    def test_x(self):\n        assert stays()\n"
    )
    files = {"m.py": "def gone():\n    return 1\n\n\ndef stays():\n    return 2\n", "test_m.py": source}
    codebase, tests = PythonCodebase.from_texts(files), ("test_m.py::TestA::test_x", "test_m.py::TestB::test_x")
    text = write_statement(codebase, delete_symbol(codebase, "m.py::gone", tests[:1]), REPO, tests).text
    assert "One test that is not in this checkout" in text
    assert "one test that is in this checkout (in `test_m.py`), failing now, must pass" in text


def test_a_private_class_that_goes_around_its_methods_is_among_what_is_gone() -> None:
    box = "class _Box:\n    def __init__(self, x):\n        self.x = x\n\n    def fill(self):\n        return self.x\n"
    source = f"{box}\n\ndef make(x):\n    return _Box(x).fill()\n\n\ndef other():\n    return 1\n"
    deletion = delete({"m.py": source}, "m.py::make", "m.py::_Box.fill")
    assert set(deletion.removed) == {"m.py::make", "m.py::_Box", "m.py::_Box.fill"}
    alone = delete({"m.py": source}, "m.py::make")
    assert set(alone.removed) == {"m.py::make"}
    assert after({"m.py": source}, alone)["m.py"] == "def other():\n    return 1\n"


def test_a_method_is_used_of_an_object_where_a_statement_shows_it() -> None:
    source = "class Text:\n    def str(self):\n        return 1\n\n\n"
    source += "def shown(x):\n    y = isinstance(x, str)\n    return y\n"
    made = "\n\ndef made(x):\n    z = Text().str()\n    return z\n"
    for more, is_shown in (("", False), (made, True)):
        codebase = PythonCodebase.from_texts({"m.py": source + more, "test_m.py": "def test_m():\n    assert 1\n"})
        deletion = delete_symbol(codebase, "m.py::Text.str", ("test_m.py::test_m",), "stub")
        text = write_statement(codebase, deletion, REPO, ("test_m.py::test_m",)).text
        assert ("`z = Text().str()`" in text) is is_shown
        assert "isinstance(x, str)" not in text


def test_names_of_an_import_that_stays_are_said() -> None:
    files = {
        "m.py": "from os import (\n    fspath,\n    sep as line,\n)\nimport re, sys\n\n\n"
        "def run(x):\n    return fspath(sys.path[x])\n\n\ndef stay():\n    return re.escape(line)\n",
        "test_m.py": "from m import run\n\n\ndef test_m():\n    assert run(1)\n",
    }
    codebase, tests = PythonCodebase.from_texts(files), ("test_m.py::test_m",)
    text = write_statement(codebase, delete_symbol(codebase, "m.py::run", tests), REPO, tests).text
    assert "imports that only this code used are gone as well (`from os import fspath`, `import sys`)." in text


def test_the_place_of_an_entry_is_said_unless_it_was_the_last() -> None:
    kinds = "KINDS = {\n    'a': stay,\n    'b': run,\n    'c': stay,\n    'd': run,\n}\n"
    files = {"m.py": f"def run(x):\n    return x\n\n\ndef stay(x):\n    return x\n\n\n{kinds}"}
    found = delete(files, "m.py::run").registrations
    assert found == (("m.py", "KINDS: 'b': run  # after 'a': stay"), ("m.py", "KINDS: 'd': run"))


def test_lines_of_manifests_keep_their_keys() -> None:
    cfg = b"[metadata]\nname = m\n[options.entry_points]\nconsole_scripts =\n    a = m:f\n"
    lines = ["[options.entry_points]", "console_scripts =", "    a = m:f"]
    assert list(entry_lines(cfg, b"[metadata]\nname = m\n")) == lines


LOOP = """
def read(lines):
    \"\"\"Read them, one after the other.\"\"\"
    found = []
    for line in lines:
        if line.startswith("#"):
            found.append(line)
            line = line[1:]
            line = line.strip()
            found.append(line)
            found.append("")
        elif line.startswith("!"):
            print(line)
        else:
            found.append(line)
    print(found)
    return found
"""


def test_the_place_of_a_branch_is_said() -> None:
    test = "from m import read\n\n\ndef test_m():\n    assert read(['# a']) == ['# a', 'a', '']\n"
    codebase, tests = PythonCodebase.from_texts({"m.py": LOOP.lstrip(), "test_m.py": test}), ("test_m.py::test_m",)
    symbol = codebase.symbols()["m.py::read"]
    path = EDITOR.path(codebase, symbol)
    assert path is not None
    feature = Feature(
        feature_id="f",
        kind=FeatureKind.FUNCTION,
        tier=0,
        name=f"read: {path.name}",
        entry=("m.py::read",),
        symbols=("m.py::read",),
        tests=tests,
        changed=(("m.py::read", path.text),),
    )
    deletion = get("path").delete(codebase, feature, hide=frozenset(tests))
    text = write_statement(codebase, deletion, REPO, tests).text
    assert "is missing, which stood inside `for line in lines:`. Write the rest again" in text


def test_a_field_of_the_name_of_a_method_is_no_use_of_it() -> None:
    source = "class Tree:\n    def leaves(self):\n        return 1\n\n\nclass Node:\n    def __init__(self):\n"
    source += (
        "        self.leaves: list[int] = []\n\n    def add(self, node):\n        node.leaves.extend(self.leaves)\n"
    )
    source += "\n\ndef grown():\n    return Tree().leaves() + 1\n"
    test = "from m import Tree\n\n\ndef test_m():\n    assert Tree().leaves() == 1\n"
    codebase, tests = PythonCodebase.from_texts({"m.py": source, "test_m.py": test}), ("test_m.py::test_m",)
    text = write_statement(codebase, delete_symbol(codebase, "m.py::Tree.leaves", tests, "stub"), REPO, tests).text
    assert "`return Tree().leaves() + 1`" in text
    assert "extend" not in text
    assert "list[int]" not in text


@pytest.mark.parametrize(("num_rows", "is_refused"), [(2, False), (3, True)])
def test_a_converter_that_many_rows_share_stays(num_rows: int, is_refused: bool) -> None:
    """Rows of fields count by their position, and are about the fields."""
    rows = "".join(f"    ('f{n}', f, {n}),\n" for n in range(num_rows))
    files = {"m.py": f"def f(x):\n    return x\n\n\nFIELDS = (\n    ('a', int, 0),\n{rows})\n"}
    if is_refused:
        with pytest.raises(DeletionRefused, match="in more than 2 rows of tables"):
            delete(files, "m.py::f")
    else:
        assert after(files, delete(files, "m.py::f"))["m.py"] == "FIELDS = (\n    ('a', int, 0),\n)\n"
    files = {"m.py": files["m.py"].replace("'f", "f, 'f").replace(", f, ", ", ")}
    assert after(files, delete(files, "m.py::f"))["m.py"] == "FIELDS = (\n    ('a', int, 0),\n)\n", "they are about it"


def test_a_class_is_no_second_place_of_what_one_of_its_methods_uses() -> None:
    source = (
        "class Cut:\n    def parts(self, word):\n        return [word]\n\n    def wrap(self, word):\n"
        "        for part in self.parts(word):\n            return part\n\n    first = staticmethod(parts)\n"
    )
    files = {"pkg.py": source, "test_pkg.py": "import pkg\n\n\ndef test_a():\n    assert pkg.Cut().parts('a')\n"}
    codebase = PythonCodebase.from_texts(files)
    test = "test_pkg.py::test_a"
    deletion = delete_symbol(codebase, "pkg.py::Cut.parts", (test,), "stub")
    text = write_statement(codebase, deletion, REPO, (test,)).text
    used = text.partition("## Where it is used\n\n")[2].partition("\n\n")[0].splitlines()
    assert used == ["- `pkg.py::Cut.wrap`: `for part in self.parts(word):`"]


def test_a_method_is_not_used_by_code_that_no_test_runs_together_with_it() -> None:
    source = (
        "class File:\n    def read(self):\n        return 'text'\n\n\ndef load(io):\n    return io.read()\n\n\n"
        "def whole(file):\n    return file.read()\n\n\nclass Log(File):\n    def last(self):\n"
        "        return self.read()[-1]\n"
    )
    tests = "".join(f"def test_{name}():\n    assert pkg.File().read()\n\n\n" for name in ("read", "load", "whole"))
    codebase = PythonCodebase.from_texts({"pkg.py": source, "test_pkg.py": f"import pkg\n\n\n{tests}"})
    ids = tuple(f"test_pkg.py::test_{name}" for name in ("read", "load", "whole"))
    deletion = delete_symbol(codebase, "pkg.py::File.read", ids, "stub")
    covered = {"pkg.py::File.read": (0, 2), "pkg.py::load": (1,), "pkg.py::whole": (2,), "pkg.py::Log.last": (1,)}
    coverage = CoverageMap(env_id="e", tests=ids, by_symbol=covered, at_import=())
    for known, named in ((None, ["Log.last", "load", "whole"]), (coverage, ["Log.last", "whole"])):
        text = write_statement(codebase, deletion, REPO, ids, coverage=known).text
        used = text.partition("## Where it is used\n\n")[2].partition("\n\n")[0].splitlines()
        assert [line.partition("`:")[0] for line in used] == [f"- `pkg.py::{name}" for name in named]


def test_a_use_on_several_lines_is_shown_whole() -> None:
    source = (
        "def fail(error, depth=1):\n    raise error\n\n\ndef run(call):\n    try:\n        call()\n"
        "    except ValueError as e:\n"
        "        fail(\n            KeyError(e, [1]),\n            depth=2,\n        )\n\n\ndef other(x):\n"
        "    fail(  # at once\n        x,\n    )\n"
    )
    files = {"pkg.py": source, "test_pkg.py": "import pkg\n\n\ndef test_a():\n    pkg.run(int)\n"}
    codebase = PythonCodebase.from_texts(files)
    test = "test_pkg.py::test_a"
    text = write_statement(codebase, delete_symbol(codebase, "pkg.py::fail", (test,), "stub"), REPO, (test,)).text
    used = text.partition("## Where it is used\n\n")[2].partition("\n\n")[0].splitlines()
    assert used == ["- `pkg.py::other`: `fail(  # at once`", "- `pkg.py::run`: `fail(KeyError(e, [1]), depth=2)`"]


def test_a_definition_that_goes_along_is_among_what_is_gone_if_lost_lines_name_it() -> None:
    source = (
        "class Target:\n    def __init__(self, kind):\n        self.kind = kind\n\n    def is_many(self):\n"
        "        return self.kind is list\n\n\ndef _plain(kind):\n    return kind or 1\n\n\nclass Box:\n"
        "    def one(self, kind):\n        if Target(kind).is_many():\n            return self.many(kind)\n"
        "        return Target(kind).kind\n\n"
        "    def many(self, kind):\n        return [_plain(kind)]\n"
    )
    files = {
        "pkg.py": source,
        "test_pkg.py": "import pkg\n\n\ndef test_a():\n    assert pkg.Box().one(list) == pkg.Box().many(list)\n",
    }
    codebase = PythonCodebase.from_texts(files)
    test = "test_pkg.py::test_a"
    deletion = delete_symbol(codebase, "pkg.py::Box.many", (test,))
    assert [name for name, _ in deletion.text] == ["pkg.py::Box.many", "pkg.py::Target.is_many", "pkg.py::_plain"]
    missing = write_statement(codebase, deletion, REPO, (test,)).text.partition("## Where it was used")[0]
    assert "def is_many(self)\n```\n(in `Target`)" in missing
    assert "_plain" not in missing


@pytest.mark.parametrize(
    ("more", "is_gone"),
    [
        ({}, True),
        ({"pkg/n.py": "from pkg.files import _text\n"}, False),
        ({"pkg/n.py": "from pkg import files\n\nTEXT = files._text(1)\n"}, False),
        ({"pkg/n.py": "def f(x):\n    return getattr(x, '_text')\n"}, False),
        ({"pkg/n.py": "from pkg.texts import _text\n\n\ndef f(m, x):\n    return m._text(_text(x))\n"}, False),
        ({"pkg/n.py": "def _text(x):\n    return getattr(x, '_text')\n"}, False),
    ],
    ids=["other", "imported", "attribute", "by_name", "of_an_object", "by_name_too"],
)
def test_private_functions_go_whose_names_other_files_give_to_others(more: dict[str, str], *, is_gone: bool) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/files.py": (
            "import json\n\n\ndef _text(x):\n    return json.loads(x)\n\n\n_READERS = {'text': _text}\n\n\n"
            "def read(x):\n    return _READERS['text'](x)\n\n\ndef kept():\n    return 1\n"
        ),
        "pkg/texts.py": "def _text(x):\n    return str(x)\n",
        "tests/test_texts.py": "from pkg.texts import _text\n\n\ndef test_text():\n    assert _text(1)\n",
        **more,
    }
    deletion = delete(files, "pkg/files.py::read")
    left = after(files, deletion)["pkg/files.py"]
    assert "pkg/files.py::_text" not in deletion.removed
    assert ("_text" not in left) is ("import json" not in left) is is_gone


def test_functions_that_their_file_never_used_stay() -> None:
    files = {
        "a.py": "def _run():\n    return 1\n\n\ndef read():\n    return _run()\n\n\ndef kept():\n    return 1\n",
        "b.py": "def _run():\n    return 2\n",
        "c.py": "from b import _run\n\n\ndef run():\n    return _run()\n",
        "plugins/d.py": "def _run():\n    return 3\n",
        "test_a.py": "from a import read\n\n\ndef test_a():\n    assert read()\n",
    }
    changed = after(files, delete(files, "a.py::read"))
    assert "_run" not in changed["a.py"]
    assert changed["plugins/d.py"] == files["plugins/d.py"]


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(
            "if 0:\n    x = 1\n" + "".join(f"elif {n}:\n    x = 1\n" for n in range(1, 1100)), id="long_chain"
        ),
        f"if {'x' * 200}:\n    x = 1\n",
        "if '`' in x:\n    x = 1\n",
    ],
)
def test_conditions_that_a_statement_cannot_show(head: str) -> None:
    codebase = PythonCodebase.from_texts(
        {"m.py": f"{head}    def f():\n        return 1\nelse:\n    def f():\n        return 2\n"}
    )
    module = codebase.modules["m.py"]
    assert [PythonWords().condition(module, each) for each in module.symbols if each.is_callable] == ["", ""]
