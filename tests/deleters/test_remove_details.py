"""Single rules of the deleter ``remove``, each on a file or two."""

from __future__ import annotations

from typing import Any

import pytest

from excise.deleters.all_deleters import DELETERS, get
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.patches.git_patches import apply_patch
from excise.deleters.python.references.hide_tests import parse_node_id
from excise.errors import ConfigError, DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Deletion, Feature, FeatureKind


def delete(files: dict[str, str], *symbols: str, hide: tuple[str, ...] = (), deleter: str = "remove") -> Deletion:
    feature = Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=())
    return get(deleter).delete(PythonCodebase.from_texts(files), feature, hide=frozenset(hide))


def after(files: dict[str, str], deletion: Deletion) -> dict[str, str]:
    data = {p: t.encode() for p, t in files.items()}
    changed = apply_patch(data, deletion.source_patch + deletion.hide_patch)
    return {p: d.decode() for p, d in {**data, **changed}.items() if d is not None}


F = "def f():\n    return 1\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (f"x = 1\n\n\n{F}\n\ny = 2\n", "x = 1\n\n\ny = 2\n"),
        (f"x = 1\n\n{F}\n\n\ny = 2\n", "x = 1\n\n\n\ny = 2\n"),
        (f"x = 1\n\n\n{F}", "x = 1\n"),
        (f"{F}\n\nx = 1\n", "x = 1\n"),
        (f"#!/bin/python\n# License\n{F}\nx = 1\n", "#!/bin/python\n# License\n\nx = 1\n"),
        (f"x = 1\n\n# about f\n# and more\n{F}", "x = 1\n"),
        (f"x = 1\n\n# a remark\n\n{F}", "x = 1\n\n# a remark\n"),
        (f"x = 1\n\n# ------\n# Section\n# ------\n{F}\ny = 1\n", "x = 1\n\n# ------\n# Section\n# ------\n\ny = 1\n"),
        (f"{F}\n\n# about both\ng = f\nh = f\n# about k\nk = 1\n", "# about k\nk = 1\n"),
        (f"{F}\n\nk = 1\n# about g\ng = f\n\ny = 2\n", "k = 1\n\ny = 2\n"),
        (f"{F}\n\n# about both\ng = f\nk = 1\n", "# about both\nk = 1\n"),
        (f"x = 1\n\n\n# -----\n# One\n\n\n{F}\n\ng = f\n\n# -----\n# Two\ny = 2\n",
         "x = 1\n\n\n# -----\n# Two\ny = 2\n"),
        (f"x = 1\n\n\n# Items\n{F}\n\ndef g():\n    pass\n", "x = 1\n\n\n# Items\ndef g():\n    pass\n"),
        (f"x = 1\n\n\n# Fs\n{F}\n\ndef g():\n    pass\n", "x = 1\n\n\ndef g():\n    pass\n"),
        (f"x = 1\n\n\n# Items\n{F}\n\n# Rows\ndef g():\n    pass\n", "x = 1\n\n\n# Rows\ndef g():\n    pass\n"),
        (f"x = 1\n\n\n# Items\n{F}\n\ny = 2\n", "x = 1\n\n\ny = 2\n"),
        (f"x = 1\n\n# Items\na = f\n\n\n{F}\n\ndef g():\n    pass\n", "x = 1\n\n# Items\ndef g():\n    pass\n"),
        (f"x = 1\n\n\n# Handles items\n{F}\n\ndef g():\n    pass\n", "x = 1\n\n\ndef g():\n    pass\n"),
        (f"x = 1\n# fmt: off\n{F}# fmt: on\n", "x = 1\n# fmt: off\n# fmt: on\n"),
        (f"{F}    # trailing\n\nx = 1\n", "x = 1\n"),
        (f"x = 1\n{F}f.a = 1; y = 2\n", "x = 1\ny = 2\n"),
        (f"x = 1\n{F}y = 2; f.a = 1\n", "x = 1\ny = 2\n"),
        (f"{F}T = [\n    f,\n    x,  # keep\n]\n", "T = [\n    x,  # keep\n]\n"),
        (f"{F}T = [x,  # keep\n     f]\n", "T = [x,  # keep\n     ]\n"),
        (f"{F}T = (x, f)\n", "T = (x,)\n"),
        (f"{F}T = f, x\n", "T = x,\n"),
        (f"{F}T = {{f}}\n", "T = set()\n"),
        (f"{F}T = [f]\n", "T = []\n"),
        (f"{F}T = (f,)\n", "T = ()\n"),
        (f"{F}T = [a, f,\n     b]\n", "T = [a,\n     b]\n"),
        (f"{F}T = {{'f': (f, 1), 'g': (g, 2)}}\n", "T = {'g': (g, 2)}\n"),
        (f"{F}T = {{'all': [f, g]}}\n", "T = {'all': [g]}\n"),
        (f"{F}run(table=[f, g])\n", "run(table=[g])\n"),
        (f"{F}T += [f]\n", "T += []\n"),
        (f"{F}for x in (f, g):\n    use(x)\n", "for x in (g,):\n    use(x)\n"),
        (f"{F}del f, x\n", "del x,\n"),
        (f"{F}del f\nx = 1\n", "x = 1\n"),
        (f"{F}functools.update_wrapper(f, g)\nx = 1\n", "x = 1\n"),
        (f"if A:\n    {F.replace(chr(10), chr(10) + '    ').rstrip()}\nelse:\n    f = None\nx = 1\n", "x = 1\n"),
        (f"if A:\n    {F.replace(chr(10), chr(10) + '    ').rstrip()}\nelse:\n    z = 0\n",
         "if A:\n    pass\nelse:\n    z = 0\n"),
        (f"__all__ = ['f']\n__all__.append('f')\n{F}x = 1\n", "__all__ = []\nx = 1\n"),
        (f"__all__ = [\n    'e', 'f',\n    'g',\n]\n{F}x = 1\n", "__all__ = [\n    'e',\n    'g',\n]\nx = 1\n"),
    ],
)  # fmt: skip
def test_remaining_text(before: str, expected: str) -> None:
    files = {"m.py": before}
    assert after(files, delete(files, "m.py::f"))["m.py"] == expected


@pytest.mark.parametrize(
    ("importer", "expected"),
    [
        ("from m import f\nx = 1\n", "x = 1\n"),
        ("from m import f, g\n", "from m import g\n"),
        ("from m import g, f\n", "from m import g\n"),
        ("from m import (f as a, g)\n", "from m import (g)\n"),
        ("from m import (\n    f,  # the first\n    g,\n)\n", "from m import (\n    g,\n)\n"),
        ("from m import g, \\\n    f\n", "from m import g\n"),
        ("from m import f; from m import g\n", "from m import g\n"),
        ("import m\nT = {'f': m.f, 'g': m.g}\n", "import m\nT = {'g': m.g}\n"),
        ("import m as n\nn.f.x = 1\nn.g()\n", "import m as n\nn.g()\n"),
        ("import m as n\nn.f.x = 1\ny = 2\n", "y = 2\n"),
        ("def later():\n    from m import f\n    return f\n", "def later():\n    from m import f\n    return f\n"),
        ("if True:\n    from m import f\n", ""),
        ("try:\n    from m import f\nexcept ImportError:\n    HAS = False\nelse:\n    HAS = True\n",
         "try:\n    pass\nexcept ImportError:\n    HAS = False\nelse:\n    HAS = True\n"),
        ("from m import *\n__all__ = ['f', 'g']\n", "from m import *\n__all__ = ['g']\n"),
        ("class A:\n    from m import f, g\n    h = f\n", "class A:\n    from m import g\n"),
    ],
)  # fmt: skip
def test_importers(importer: str, expected: str) -> None:
    files = {"m.py": f"{F}\n\ndef g():\n    return 2\n", "n.py": importer, "o.py": "import n\n"}
    assert after(files, delete(files, "m.py::f"))["n.py"] == expected


def test_scripts_that_only_use_the_code_are_left_alone() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": F + "x = 1\n",
        "examples/demo.py": "from pkg.m import f\n\nprint(f())\n",
    }
    assert after(files, delete(files, "pkg/m.py::f"))["examples/demo.py"] == files["examples/demo.py"]


def test_imports_that_others_need_stay() -> None:
    files = {
        "m.py": (
            "import os\nimport re  # noqa\nimport json\nimport sys\n\n\n"
            "def f():\n    os, re, json, sys\n\n\n'''uses sys'''\nx: \"sys.float_info\" = 1\n"
        ),
        "n.py": "from m import os\nimport m\n\nm.json\n",
    }  # fmt: skip
    assert after(files, delete(files, "m.py::f"))["m.py"].startswith(
        "import os\nimport re  # noqa\nimport json\nimport sys\n"
    )


@pytest.mark.parametrize(
    ("files", "symbol", "reason"),
    [
        ({"m.py": F + "def g(x=f): pass\n"}, "m.py::f", "import_time_reference"),
        ({"m.py": "class f: pass\ndef g(x: f): pass\n"}, "m.py::f", "import_time_reference"),
        ({"m.py": F + "if f: pass\n"}, "m.py::f", "import_time_reference"),
        ({"m.py": F + "a, b = f, 1\n"}, "m.py::f", "import_time_reference"),
        ({"m.py": "class A:\n    def __init__(self): pass\n"}, "m.py::A.__init__", "dunder_method"),
        ({"m.py": "class A:\n    @abc.abstractmethod\n    def m(self): pass\n"}, "m.py::A.m", "abstract_method"),
        ({"m.py": "def f(:\n"}, "m.py", "syntax_error"),
        ({"m.py": F}, "m.py::g", "unknown_symbol"),
        ({"tests/test_m.py": F}, "tests/test_m.py::f", "symbol_in_tests"),
        ({"p/__init__.py": "", "p/m.py": F}, "p/__init__.py", "package_in_use"),
        ({"m.py": F, "test_m.py": "from m import f\nif f():\n    x = 1\n"}, "m.py::f", "test_import_time_reference"),
    ],
)  # fmt: skip
def test_refusals(files: dict[str, str], symbol: str, reason: str) -> None:
    with pytest.raises(DeletionRefused) as caught:
        delete(files, symbol)
    assert caught.value.reason == reason
    assert str(caught.value)


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(DeletionRefused, match=r"m\.py:3: `f` "):
        delete({"m.py": F + "def g(x=f): pass\n"}, "m.py::f")


def test_text_that_is_not_utf8_is_refused() -> None:
    code = PythonCodebase.from_texts({"m.py": b"# \xe9\n" + F.encode()})
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(), symbols=("m.py::f",), tests=())
    with pytest.raises(DeletionRefused) as caught:
        get("remove").delete(code, feature)
    assert caught.value.reason == "not_utf8"


def test_what_is_recorded() -> None:
    function = '@deco\ndef f(x):\n    """Doc."""\n    yield x'
    files = {"m.py": f"{function}\n\n\ng = f\n\n\nclass A:\n    def m(self):\n        return 2\n"}
    deletion = delete(files, "m.py::f", "m.py::A", "m.py::A.m")
    assert deletion.removed == ("m.py::A", "m.py::A.m", "m.py::f", "m.py::g")
    assert dict(deletion.text)["m.py::f"] == function
    assert dict(deletion.text)["m.py::g"] == "g = f"
    stubs = {k: apply_patch({"m.py": files["m.py"].encode()}, p)["m.py"] for k, p in deletion.stub_patches}
    empty = "@deco\ndef f(x):\n    return\n    yield\n\n\ng = f\n\n\nclass A:\n    def m(self):\n        return None\n"
    assert stubs["none"] == empty.encode()
    assert b"    raise NotImplementedError\n" in stubs["raise"]
    for error in (AttributeError, KeyError, IndexError, TypeError, ValueError):
        names: dict[str, Any] = {"deco": lambda f: f}
        exec(stubs["any"], names)
        with pytest.raises(error):
            names["f"](1)
    stub = delete(files, "m.py::f", deleter="stub")
    assert dict(stub.text) == {"m.py::f": "yield x"}
    assert stub.removed == ("m.py::f",)


@pytest.mark.parametrize("deleter", [get(name) for name in DELETERS], ids=lambda d: d.name)
def test_deletions_are_deterministic(deleter: object) -> None:
    name = str(getattr(deleter, "name", ""))
    body = "    return g + 1\n" if name == "line" else "    h = g\n    return g + h\n"
    files = {"m.py": f"def f():\n{body}\n\ng = 1\n", "test_m.py": "from m import f, g\n\ndef test_f(): f()\n"}
    first, second = (delete(files, "m.py::f", hide=("test_m.py::test_f",), deleter=name) for _ in range(2))
    assert first == second


# --------------------------------------------------------------------------------------- hidden tests
def test_node_ids() -> None:
    assert parse_node_id("a/test_b.py::C::test_d[x::y[0]]") == ("a/test_b.py", ("C", "test_d"))
    assert parse_node_id("a/b.py::b.f") == ("a/b.py", ("b.f",))
    assert parse_node_id("a.txt") == ("a.txt", ())


def test_inherited_tests_are_removed_from_their_base() -> None:
    files = {
        "m.py": F + "x = 1\n",
        "tests/base.py": (
            "class Base:\n    def test_f(self):\n        assert self.f() == 1\n\n    def test_g(self):\n        pass\n"
        ),
        "tests/test_m.py": "from m import f\nfrom base import Base\n\n\nclass TestF(Base):\n    f = staticmethod(f)\n",
    }  # fmt: skip
    deletion = delete(files, "m.py::f", hide=("tests/test_m.py::TestF::test_f",))
    result = after(files, deletion)
    assert result["tests/base.py"] == "class Base:\n    def test_g(self):\n        pass\n"
    assert result["tests/test_m.py"] == "from base import Base\n\n\nclass TestF(Base):\n    pass\n"
    assert deletion.hidden == ("tests/test_m.py::TestF::test_f",)


def test_a_test_that_others_inherit_is_hidden_in_one_class() -> None:
    mixin = "class Mixin:\n    def test_a(self):\n        self.make()\n\n    def test_b(self):\n        pass\n\n\n"
    files = {
        "m.py": F + "def g():\n    return 2\n",
        "tests/test_m.py": (
            "import m\n\n\n" + mixin + "class TestF(Mixin):\n    make = staticmethod(m.f)\n\n\n"
            "class TestG(Mixin):  # note: g\n    make = staticmethod(m.g)\n\n    def test_own(self):\n        m.f()\n\n"
            "    def test_other(self):\n        pass\n"
        ),
    }  # fmt: skip
    deletion = delete(files, "m.py::f", hide=("tests/test_m.py::TestF::test_a", "tests/test_m.py::TestG::test_own"))
    test_g = "class TestG(Mixin):  # note: g\n    make = staticmethod(m.g)\n\n    def test_other(self):\n        pass\n"
    assert after(files, deletion)["tests/test_m.py"] == "import m\n\n\n" + mixin + test_g
    assert "tests/test_m.py::TestF" in deletion.hidden, "the class stands for all of its tests"
    deletion = delete(files, "m.py::g", hide=("tests/test_m.py::TestG::test_a",))
    rest = "class TestG(Mixin):  # note: g\n    test_a = None\n"
    assert rest in after(files, deletion)["tests/test_m.py"]
    assert deletion.hidden == ("tests/test_m.py::TestG::test_a",)


@pytest.mark.parametrize(
    ("decorator", "is_gone"), [("", False), ('@unittest.skipIf(posix, "no")\n', True), ("@only_nt\n", True)]
)
def test_classes_that_are_skipped_keep_no_inherited_test(decorator: str, *, is_gone: bool) -> None:
    mixin = "class Mixin:\n    def test_a(self):\n        self.make()\n\n    def test_b(self):\n        pass\n\n\n"
    test_f = "class TestF(Mixin):\n    make = staticmethod(m.f)\n\n    def test_own(self):\n        pass\n\n\n"
    files = {
        "m.py": F + "x = 1\n",
        "tests/test_m.py": f"import m\n\n\n{mixin}{test_f}{decorator}class TestG(Mixin):\n    pass\n",
    }
    left = after(files, delete(files, "m.py::f", hide=("tests/test_m.py::TestF::test_a",)))["tests/test_m.py"]
    assert left is not None
    assert ("def test_a" not in left) is is_gone
    assert ("test_a = None" not in left) is is_gone


@pytest.mark.parametrize("collected", [(), ("tests/__main__.py",), ("tests/__main__.py", "tests/test_m.py")])
def test_tests_of_an_imported_class_are_hidden_where_it_is_defined(collected: tuple[str, ...]) -> None:
    """Unless that file has them, too, and pytest reads it."""
    files = {
        "m.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n",
        "tests/test_m.py": "from m import f, g\n\n\nclass TestF:\n    def test_f(self):\n        assert f()\n\n"
        "    def test_g(self):\n        assert g()\n",
        "tests/__main__.py": "from test_m import TestF\n",
    }
    feature = Feature(
        feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=("m.py::f",), symbols=("m.py::f",), tests=()
    )
    hide = frozenset({"tests/__main__.py::TestF::test_f"})
    deletion = get("stub").delete(PythonCodebase.from_texts(files, collected=collected), feature, hide=hide)
    is_gone = collected == ("tests/__main__.py",)
    assert ("def test_f" in after(files, deletion)["tests/test_m.py"]) is not is_gone
    assert set(deletion.hidden) == (hide if is_gone else set())


@pytest.mark.parametrize("rest", ["", "\n\ndef test_c():\n    pass\n"])
def test_imported_tests_are_hidden_with_the_class_that_inherited_them(rest: str) -> None:
    base = (
        "class TestBase:\n    def make(self):\n        return 1\n\n    def test_a(self):\n        assert self.make()\n"
    )
    inherits = "class TestF(TestBase):\n    make = staticmethod(f)\n\n    def test_b(self):\n        pass\n"
    files = {
        "m.py": F + "x = 1\n",
        "tests/test_base.py": base,
        "tests/test_m.py": f"from m import f\nfrom test_base import TestBase\n\n\n{inherits}{rest}",
    }
    hide = ("tests/test_m.py::TestF::test_a", "tests/test_m.py::TestF::test_b")
    deletion = delete(files, "m.py::f", hide=hide)
    result = after(files, deletion)
    assert result["tests/test_base.py"] == base
    assert result.get("tests/test_m.py", "") == rest.lstrip()
    assert "tests/test_m.py::TestBase" in deletion.hidden, "they were collected here, too"


def test_files_that_others_need_stay_and_conftest_too() -> None:
    files = {
        "m.py": F + "x = 1\n",
        "tests/conftest.py": "from m import f\nimport pytest\n\n\n@pytest.fixture\ndef one():\n    return f()\n",
        "tests/test_a.py": "def helper():\n    pass\n\n\ndef test_f(one):\n    assert one == 1\n",
        "tests/test_b.py": "from test_a import helper\n\n\ndef test_h():\n    helper()\n",
    }
    result = after(files, delete(files, "m.py::f", hide=("tests/test_a.py::test_f",)))
    assert result["tests/test_a.py"] == "def helper():\n    pass\n"
    assert result["tests/conftest.py"] == ""


def test_tests_that_cannot_be_collected_are_hidden_and_reported() -> None:
    files = {
        "m.py": F + "x = 1\n",
        "test_m.py": (
            "import m\nimport pytest\n\n\n@pytest.mark.skipif(not m.f, reason='')\ndef test_a():\n    pass\n\n\n"
            "def test_b():\n    pass\n"
        ),
    }  # fmt: skip
    deletion = delete(files, "m.py::f")
    assert deletion.hidden == ("test_m.py::test_a",)
    assert "test_a" not in after(files, deletion)["test_m.py"]


def test_doctests_are_hidden_with_their_symbol_only() -> None:
    files = {"pkg/__init__.py": "", "pkg/m.py": F + "\n\ndef g():\n    return 2\n"}
    deletion = delete(files, "pkg/m.py::f", hide=("pkg/m.py::pkg.m.f", "pkg/m.py::pkg.m.g", "README.md::README.md"))
    assert deletion.hidden == ("pkg/m.py::pkg.m.f",)


# ---------------------------------------------------------------------------------------------- edits
def test_edits_merge() -> None:
    assert apply_edits(b"0123456789", [Edit(2, 5), Edit(4, 7), Edit(5, 6), Edit(8, 8, b"x")]) == b"017x89"
    with pytest.raises(DeletionRefused):
        apply_edits(b"0123456789", [Edit(2, 5, b"a"), Edit(4, 7, b"b")])


def test_unknown_deleters() -> None:
    with pytest.raises(ConfigError, match="path, proposed, remove, remove_and_stub, stub"):
        get("shred")


def test_constants_that_only_removed_code_used_go() -> None:
    files = {
        "m.py": (
            "import re\n\n_DIGITS = '0-9'\n_NUMBER = re.compile(f'[{_DIGITS}]+')\n_OTHER = {1: 2}\n"
            "PUBLIC = 3\nwords = 4\n"
            "_EFFECT = print(1)\n_SHARED = 4\n\n\n"
            "def f(x):\n    return _NUMBER.match(x), PUBLIC, _EFFECT, _SHARED, words\n"
            "\n\ndef g():\n    return _OTHER\n"
        ),
        "n.py": "from m import _SHARED\n",
    }  # fmt: skip
    deletion = delete(files, "m.py::f")
    assert after(files, deletion)["m.py"] == (
        "_OTHER = {1: 2}\nwords = 4\n_EFFECT = print(1)\n_SHARED = 4\n\n\ndef g():\n    return _OTHER\n"
    )
    assert {"m.py::_DIGITS", "m.py::_NUMBER"} <= set(deletion.removed)
    assert ("m.py::_DIGITS", "_DIGITS = '0-9'") in deletion.text


def test_an_else_that_loses_all_its_statements_goes() -> None:
    source = "class Box:\n    if PY2:\n        keys = list\n"
    source += "    else:\n        # an iterator\n        items = gone\n\n    rest = 1\n"
    files = {"pkg/__init__.py": "", "pkg/m.py": f"def gone():\n    return 1\n\n\n{source}"}
    assert after(files, delete(files, "pkg/m.py::gone"))["pkg/m.py"] == (
        "class Box:\n    if PY2:\n        keys = list\n\n    rest = 1\n"
    )


@pytest.mark.parametrize(
    ("head", "body", "is_gone"),
    [
        ("def teardown_module():", "m.gone()", True),
        ("def teardown_module() -> None:", "m.gone()", True),
        ("def setUpModule():", "m.gone()\n    m.rest()", False),
        ("def helper():", "m.gone()", False),
    ],
)
def test_preparations_of_tests_that_only_called_it_go(head: str, body: str, *, is_gone: bool) -> None:
    files = {
        "m.py": "def gone():\n    return 1\n\n\ndef rest():\n    return 2\n",
        "tests/test_m.py": f"import m\n\n\n{head}\n    {body}\n\n\ndef test_rest():\n    assert m.rest()\n",
    }
    left = after(files, delete(files, "m.py::gone", hide=()))["tests/test_m.py"]
    assert left is not None
    assert "def test_rest" in left
    assert (head not in left) is is_gone


@pytest.mark.parametrize(
    ("comments", "left"),
    [
        ("    # pylint: disable=arguments-differ\n", "    # pylint: disable=arguments-differ\n"),
        ("    # noqa: E501\n    # in two steps\n", "    # noqa: E501\n"),
        ("    # in two steps\n    # pylint: disable=x\n", ""),
        ("    # pylint: disable=no-member,maybe-no-member\n", ""),
        ("    # pylint: disable=W0221\n", "    # pylint: disable=W0221\n"),
        (
            "    # pylint: disable=no-member\n    # pylint: disable=arguments-differ\n    # so\n",
            "    # pylint: disable=no-member\n    # pylint: disable=arguments-differ\n",
        ),
        ("    # type of x decides\n", ""),
        ("    # isort the list first, then bisect\n", ""),
    ],
)
def test_a_stub_keeps_comments_for_linters_below_its_signature(comments: str, left: str) -> None:
    files = {"m.py": f"def f(x):\n{comments}    y = x\n    return y\n", "test_m.py": "from m import f\n"}
    result = after(files, delete(files, "m.py::f", deleter="stub"))["m.py"]
    assert result == f"def f(x):\n{left}    raise NotImplementedError\n"


@pytest.mark.parametrize("deleter", ["remove", "stub"])
@pytest.mark.parametrize("path", ["tests/usage.txt", "tests/usage.doctest"])
def test_a_text_file_of_the_tests_goes_as_the_one_test_that_it_is(deleter: str, path: str) -> None:
    texts = {path: "Usage\n\n>>> from m import f\n>>> f()\n1\n", "docs/usage.txt": "Usage\n\n>>> 1\n1\n"}
    files = {"m.py": f"{F}\n\ndef g():\n    return 2\n", **texts}
    tests = (f"{path}::{path.rpartition('/')[2]}", "docs/usage.txt::usage.txt")
    deletion = delete(files, "m.py::f", hide=tests, deleter=deleter)
    assert deletion.hidden == tests[:1]
    assert after(files, deletion).keys() == {"m.py", "docs/usage.txt"}
    assert path in deletion.hide_patch
    assert path not in deletion.source_patch
    files["tests/test_g.py"] = f"def test_g():\n    assert open({path.rpartition('/')[2]!r})\n"
    files["docs/index.html"] = "<p>See usage.txt and usage.doctest.</p>\n"
    assert delete(files, "m.py::f", hide=tests, deleter=deleter).hidden == ()
