"""What a removal would leave that no developer would leave: such code is a stub instead."""

from __future__ import annotations

import pytest
from tests.deleters.planned_deletions import delete_symbol

from excise.extractors.python.analysis.codebase import PythonCodebase

TEST = "from m import *\n\n\ndef test_m():\n    assert use()\n"


def left(source: str, symbol: str) -> tuple[str, ...]:
    codebase = PythonCodebase.from_texts({"m.py": source, "test_m.py": TEST})
    return tuple(text for _, text in delete_symbol(codebase, f"m.py::{symbol}", ("test_m.py::test_m",)).uses_left)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('TABLE = {"a": gone}', ("TABLE would be left without entries",)),
        ("TABLE = [gone]", ()),
        ('TABLE = {"a": gone, "b": 1}', ()),
        ("BASE = [1]\nTABLE = BASE + [gone]", ()),
        ("TABLE = []\nTABLE += [gone]", ()),
        ('__all__ = ["gone"]', ()),
        ("TABLE = {gone}", ("TABLE would be left without entries",)),
        ("TABLE = frozenset([gone])", ("TABLE would be left without entries",)),
        ("TABLE = dict(a={gone}, b=1)", ()),
        ("TABLE = dict(a=gone)", ("TABLE would be left without entries",)),
        ("TABLE = dict(a=gone, b=1)", ()),
        ("TABLE = frozenset([gone, len])", ()),
    ],
)
def test_tables_keep_an_entry(table: str, expected: tuple[str, ...]) -> None:
    assert (
        left(f"def gone(x):\n    return x + 1\n\n\n{table}\n\n\ndef other():\n    return TABLE\n", "gone") == expected
    )


@pytest.mark.parametrize(
    ("base", "method", "expected"),
    [
        ("list", "insert", ("Rows.insert would be list.insert, which does something else",)),
        ("collections.OrderedDict", "move_to_end",
         ("Rows.move_to_end would be OrderedDict.move_to_end, which does something else",)),
        ("codecs.IncrementalDecoder", "reset",
         ("Rows.reset would be IncrementalDecoder.reset, which does something else",)),
        ("Encoder", "default", ("Rows.default would be Encoder.default, which does something else",)),
        ("codecs.IncrementalDecoder", "rewind", ()),
        ("antigravity.Table", "reset", ()),
        ("list", "put", ()),
        ("list", "__repr__", ("Rows.__repr__ is used without its name",)),
        ("Exception", "with_traceback",
         ("Rows.with_traceback would be Exception.with_traceback, which does something else",)),
        ("Other", "insert", ()),
        ("Counter", "update", ()),
        ("Table", "update", ("Rows.update would be dict.update, which does something else",)),
        ("Table", "items", ("Rows.items would be Table.items, which does something else",)),
    ],
)  # fmt: skip
def test_no_method_of_a_base_takes_the_place_of_a_removed_one(
    base: str, method: str, expected: tuple[str, ...]
) -> None:
    source = (
        "import codecs, collections, antigravity\nfrom json import JSONEncoder as Encoder\n\n\n"
        "class Other:\n    pass\n\n\nclass Counter:\n    pass\n\n\n"
        "class Table(dict):\n    def items(self):\n        return ()\n\n\n"
        f"class Rows({base}):\n    def __init__(self):\n        self.a = []\n\n"
        f"    def {method}(self, *args):\n        return self.a\n"
    )
    assert left(source, f"Rows.{method}") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('"""Sizes."""\n        raise NotImplementedError("soon")', "which raises NotImplementedError"),
        ("return 0", "which does something else"),
        ("if self:\n            raise NotImplementedError", "which does something else"),
    ],
)
def test_a_method_of_a_base_that_a_removed_one_overrides(body: str, expected: str) -> None:
    """It would take the place of the removed one."""
    source = (
        f"class Shape:\n    def size(self):\n        {body}\n\n\n"
        "class Square(Shape):\n    def size(self):\n        return 4\n\n    def use(self):\n        return 1\n"
    )
    assert left(source, "Square.size") == (f"Square.size would be Shape.size, {expected}",)
    if expected == "which does something else":
        assert left(source.replace("return 4", "return super().size() + 4"), "Square.size") == ()
    abstract = source.replace("    def size", "    @abc.abstractmethod\n    def size", 1)
    assert left(f"import abc\n\n\n{abstract}", "Square.size") == ("Square.size would be Shape.size, which is abstract",)


@pytest.mark.parametrize(
    ("initial", "other", "read", "is_left"),
    [
        ("False", "", "if self.muted:\n            return 0", True),
        ("False", "", "pass", False),
        ("False", "self.muted = None", "if self.muted:\n            return 0", False),
        ("x", "", "if self.muted:\n            return 0", False),
        ("[]", "", "return self.muted", True),
    ],
)
def test_an_attribute_that_nothing_would_change_any_more(initial: str, other: str, read: str, is_left: bool) -> None:
    source = (
        f"class Signal:\n    def __init__(self, x):\n        self.muted = {initial}\n\n"
        f"    def mute(self):\n        self.muted = [True]\n\n    def other(self):\n        {other or 'pass'}\n\n"
        f"    def send(self):\n        {read}\n        return 1\n"
    )
    expected = ("nothing would change the attribute muted any more",) if is_left else ()
    assert left(source, "Signal.mute") == expected


def test_files_with_syntax_errors_do_not_matter_to_attributes() -> None:
    source = "class A:\n    def __init__(self):\n        self.on = 0\n\n    def gone(self):\n        self.on = 1\n"
    broken = "def f(a):\n    a.on = 3\n    return a.on +\n"
    codebase = PythonCodebase.from_texts({"m.py": source, "broken.py": broken, "test_m.py": TEST})
    assert delete_symbol(codebase, "m.py::A.gone", ("test_m.py::test_m",)).uses_left == ()


def test_the_type_variable_of_a_removed_method_goes() -> None:
    source = (
        "from typing import Generic, TypeVar\n\n_T = TypeVar('_T')\n_S = TypeVar('_S', bound='Box')\n\n\n"
        "class Box(Generic[_S]):\n    def gone(self, x: _T) -> _T:\n        return x\n\n"
        "    def stays(self):\n        return 1\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source, "test_m.py": TEST})
    deletion = delete_symbol(codebase, "m.py::Box.gone", ("test_m.py::test_m",))
    assert "-_T = TypeVar('_T')" in deletion.source_patch
    assert "-_S" not in deletion.source_patch


def test_comments_in_a_removed_body_go_to_its_end() -> None:
    source = (
        "def gone(x):\n    return x + 1\n    # return x + 2\n        # or three\n# of the next one\n"
        "def stays(x):\n    return x\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source, "test_m.py": TEST})
    patch = delete_symbol(codebase, "m.py::gone", ("test_m.py::test_m",)).source_patch
    assert "-    # return x + 2\n-        # or three\n" in patch
    assert "-# of the next one" not in patch


def test_an_emptied_dict_of_entry_points_goes_as_a_whole() -> None:
    files = {
        "m.py": "def gone():\n    return 1\n",
        "setup.py": "from setuptools import setup\n\nsetup(\n    name='m',\n    entry_points=dict(\n"
        "        console_scripts=['m = m:gone'],\n    ),\n)\n",
        "test_m.py": TEST,
    }
    deletion = delete_symbol(PythonCodebase.from_texts(files), "m.py::gone", ("test_m.py::test_m",))
    assert "-    entry_points=dict(\n-        console_scripts=['m = m:gone'],\n-    ),\n" in deletion.source_patch


REGISTRY = """
KNOWN = {}
on = False


def gone(name, value):
    global on
    KNOWN[name] = value
    OTHER.append(value)
    on = True


def use(name):
    return BODY


OTHER = START
"""


@pytest.mark.parametrize(
    ("body", "start", "expected"),
    [
        ("KNOWN[name]", "[]", ["fill KNOWN"]),
        ("KNOWN.get(name)", "[]", ["fill KNOWN"]),
        ("name in KNOWN or len(OTHER)", "[]", ["fill KNOWN", "fill OTHER"]),
        ("len(OTHER)", "[1]", []),
        ("copy(KNOWN)", "[]", []),
        ("KNOWN.setdefault(name, 1)", "[]", []),
        ("None", "[]", []),
        ("on", "[]", ["set on"]),
        ("on + KNOWN[1]", "[]", ["fill KNOWN", "set on"]),
    ],
)
def test_containers_and_flags_that_only_removed_code_gave_content(body: str, start: str, expected: list[str]) -> None:
    source = REGISTRY.replace("BODY", body).replace("START", start)
    assert left(source, "gone") == tuple(f"nothing would {what} any more" for what in expected)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("return self.rows[0]", ("nothing would fill Table.rows any more",)),
        ("return [row for row in self.rows]", ("nothing would fill Table.rows any more",)),
        ("self.rows.append(1)", ()),
        ("self.rows[2] = 1", ()),
        ("self.rows = [2]", ()),
        ("return list(self.rows), str(self.rows)", ()),
        ("pass", ()),
    ],
)
def test_containers_of_objects_that_only_a_removed_method_filled(other: str, expected: tuple[str, ...]) -> None:
    source = (
        "class Table:\n    def __init__(self):\n        self.rows = []\n\n"
        f"    def gone(self, row):\n        self.rows.append(row)\n\n    def other(self):\n        {other}\n"
    )
    assert left(source, "Table.gone") == expected


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("    if mode == 2:\n        return gone(x)\n    return x\n", "mode"),
        ("    if mode == 2:\n        return gone(x)\n    return x + mode\n", ""),
        ("    if x:\n        return gone(x)\n    return mode\n", "x"),
        ("    if x == 1:\n        return gone(x)\n    elif mode:\n        return 2\n    return x\n", ""),
        ("    return x\n", ""),
        ("    a, b = x, mode\n    if b:\n        return gone(a)\n    return b\n", "a"),
        ("    a = x.pop()\n    if x:\n        return gone(a)\n    return mode\n", ""),
        ("    a, _b = x, mode\n    if mode:\n        return gone(_b)\n    return a\n", ""),
    ],
)
def test_names_that_only_removed_statements_read(body: str, name: str) -> None:
    source = f"def gone(x):\n    return x + 1\n\n\ndef use(x, mode=1, other=None):\n{body}"
    expected = (f"use would not read {name} any more",) if name else ()
    assert left(source, "gone") == expected


@pytest.mark.parametrize(
    ("function", "is_used"),
    [
        ("def use(box: Box):\n    return box.string\n", True),
        ("def use(box: 'm.Box | None' = None):\n    return box.string\n", True),
        ("def use():\n    box = Box()\n    return box.string\n", True),
        ("def use(box):\n    return box.string\n", False),
        ("def use(box: list[Box]):\n    return box.string\n", False),
        ("def use(box: Box):\n    return box.other\n", False),
    ],
)
def test_properties_of_objects_whose_class_is_known(function: str, *, is_used: bool) -> None:
    source = "class Box:\n    other = 2\n\n    @property\n    def string(self):\n        return 1\n\n\n" + function
    expected = ("use uses Box.string of an object by its type",) if is_used else ()
    assert left(source, "Box.string") == expected


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("    gone(mode=2)\n    return x\n", ""),
        ("    gone(x.mode)\n    return x\n", ""),
        ("    gone(mode)\n    return x.mode\n", "mode"),
        ("    gone(mode)\n    return dict(mode=x)\n", "mode"),
        ("    if mode:\n        x = gone(x)\n    else:\n        x = x.mode\n    return x\n", "mode"),
        ("    gone(DEFAULT)\n    return x\n", ""),
    ],
)
def test_attributes_and_keywords_are_no_names_that_a_function_reads(body: str, name: str) -> None:
    source = f"DEFAULT = 3\n\n\ndef gone(x=1, mode=2):\n    return x + 1\n\n\ndef use(x, mode: int = DEFAULT):\n{body}"
    expected = (f"use would not read {name} any more",) if name else ()
    assert tuple(text for text in left(source, "gone") if "DEFAULT" in text or "read" in text) == expected


BOX = "class Box:\n    other = 2\n\n    def gone(self):\n        return 1\n"
OTHER_BOX = "class Box:\n    def gone(self):\n        return 3\n"


@pytest.mark.parametrize(
    ("head", "function", "is_used"),
    [
        (OTHER_BOX, "def use(box: Box):\n    return box.gone()\n", False),
        (OTHER_BOX, "def use():\n    box = Box()\n    return box.gone()\n", False),
        ("from elsewhere import Box", "def use(box: Box):\n    return box.gone()\n", False),
        ("from o import Box", "def use(box: Box):\n    return box.gone()\n", False),
        ("from m import Box", "def use(box: 'Box'):\n    return box.gone()\n", True),
        ("from m import Box as Case", "def use(box: Case):\n    return box.gone()\n", True),
        ("import m", "def use(box: m.Box):\n    return box.gone()\n", True),
        ("import o", "def use(box: o.Box):\n    return box.gone()\n", False),
        ("", "def use():\n    from m import Box\n\n    box = Box()\n    return box.gone()\n", True),
        ("from m import *", "def use(box: Box):\n    return box.gone()\n", True),
    ],
)
def test_a_class_of_the_same_name_is_another_one(head: str, function: str, *, is_used: bool) -> None:
    files = {"m.py": BOX, "n.py": f"{head}\n\n\n{function}", "o.py": OTHER_BOX, "test_m.py": "import m\n"}
    deletion = delete_symbol(PythonCodebase.from_texts(files), "m.py::Box.gone", ("test_m.py::test_m",))
    expected = (("m.py", "use uses Box.gone of an object by its type"),) if is_used else ()
    assert deletion.uses_left == expected


REGISTERED = """
KNOWN = {}
on = False


def gone(name):
    global on
    KNOWN[name] = 1
    on = True
"""


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("def use(name):\n    global KNOWN\n    KNOWN = dict(name)\n", []),
        ("def use(name):\n    global KNOWN\n    for KNOWN in name:\n        pass\n", []),
        ("def use(name):\n    global KNOWN\n    with name as KNOWN:\n        pass\n", []),
        ("for KNOWN in ():\n    pass\n", []),
        ("for on in ():\n    pass\n\n\ndef use():\n    return on\n", ["fill KNOWN"]),
        ("def use():\n    return on\n", ["fill KNOWN", "set on"]),
        ("", ["fill KNOWN"]),
    ],
)
def test_names_of_modules_that_other_code_binds_get_content(other: str, expected: list[str]) -> None:
    source = f"{REGISTERED}\n\ndef look(name):\n    return KNOWN[name]\n\n\n{other}"
    found = tuple(text for text in left(source, "gone") if text.startswith("nothing"))
    assert found == tuple(f"nothing would {what} any more" for what in expected)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"n.py": "from m import KNOWN as K\n\n\ndef use(x):\n    return K.get(x)\n"}, ["fill KNOWN"]),
        ({"n.py": "from m import KNOWN as K\n\n\ndef use(x):\n    K[x] = 1\n    return K\n"}, []),
        ({"n.py": "def use(x):\n    from m import KNOWN as K\n\n    return K.get(x)\n"}, ["fill KNOWN"]),
        (
            {
                "n.py": "from m import KNOWN as K\n",
                "o.py": "import n\nfrom n import K as L\n\n\ndef use(x):\n    return x in L, n.K.get(x)\n",
            },
            ["fill KNOWN"],
        ),
        ({"n.py": "from m import KNOWN as K\n", "o.py": "import n\n\n\ndef use(x):\n    n.K.update(x)\n"}, []),
        ({"n.py": "import m\n\n\ndef use(x):\n    return m.on\n"}, ["set on"]),
        ({"test_n.py": "import m\n\n\ndef test_n():\n    assert not m.on\n"}, []),
        ({"n.py": "import m\n\n\ndef use(x):\n    return m.on\n",
          "test_n.py": "import m\n\n\ndef test_n():\n    m.on = 3\n"}, ["set on"]),
    ],
)  # fmt: skip
def test_imports_with_other_names_are_followed(files: dict[str, str], expected: list[str]) -> None:
    codebase = PythonCodebase.from_texts({"m.py": REGISTERED, "test_m.py": "import m\n", **files})
    found = delete_symbol(codebase, "m.py::gone", ("test_m.py::test_m",)).uses_left
    assert found == tuple(("m.py", f"nothing would {what} any more") for what in expected)


HOLDER = """\
class Box:
    def __init__(self, size):
        self._seen = 0
        self._given = size
        self.size = size

    def gone(self):
        return {gone}

    def keep(self):
        {keep}
        return self.size


def use():
    return Box(1).gone()
"""


@pytest.mark.parametrize(
    ("gone", "keep", "expected"),
    [
        ("self._given", "x = 1", "nothing would read the attribute _given any more"),
        ("self._given", "self._given = 3", "nothing would read the attribute _given any more"),
        ("self._given", "x = self._given", ""),
        ("self._given", "self._given.append(1)", "nothing would read the attribute _given any more"),
        ("self._given", "self._given.sort()", ""),
        ("self._given", "x = getattr(self, '_given')", ""),
        ("self.size", "self._given = self._given + 1", ""),
        ("self._seen", "self._seen += 1", "nothing would read the attribute _seen any more"),
    ],
)
def test_attributes_that_only_removed_code_reads(gone: str, keep: str, expected: str) -> None:
    found = [text for text in left(HOLDER.format(gone=gone, keep=keep), "Box.gone") if "attribute" in text]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("", "nothing would change the attribute _made any more"),
        ("    def more(self):\n        self._made = Box()\n", ""),
        ("    @property\n    def _made(self):\n        return 1\n", ""),
        ("    _made = None\n", ""),
        ("    def more(self):\n        setattr(self, '_made', 1)\n", ""),
    ],
)
def test_attributes_that_only_removed_code_sets(rest: str, expected: str) -> None:
    source = (
        "class Box:\n    def gone(self):\n        self._made = Box()\n        return self\n\n"
        f"    def look(self):\n        return self._made\n\n{rest}\n\ndef use():\n    return Box().gone()\n"
    )
    found = [text for text in left(source, "Box.gone") if "attribute" in text]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize("kind", ["ContextVar", "contextvars.ContextVar", "RunVar"])
def test_variables_of_a_context_that_nothing_sets(kind: str) -> None:
    source = (
        f"CURRENT = {kind}('current', default=None)\n\n\ndef gone(x):\n    CURRENT.set(x)\n    return x\n\n\n"
        "def look():\n    return CURRENT.get()\n"
    )
    assert left(source, "gone") == ("nothing would fill CURRENT any more",)
    assert left(f"{source}\n\ndef other():\n    CURRENT.set(2)\n", "gone") == ()


def test_containers_that_are_only_filled() -> None:
    source = (
        "class Cache:\n    def __init__(self):\n        self._keys = list()\n        self.size = 0\n\n"
        "    def put(self, key):\n        self._keys.append(key)\n        self.size += 1\n\n"
        "    def gone(self):\n        for key in self._keys:\n            print(key)\n\n{rest}"
        "\ndef use():\n    return Cache().gone()\n"
    )
    unread = "nothing would read the attribute _keys any more"
    assert unread in left(source.format(rest=""), "Cache.gone")
    for rest in ("return self._keys.append(2)", "self._keys.sort()", "x = self._keys"):
        more = f"    def more(self):\n        {rest}\n\n"
        assert unread not in left(source.format(rest=more), "Cache.gone"), rest


@pytest.mark.parametrize(
    ("body", "expected"),
    [("return self._kind.to_text(x)", [("pkg/box.py::Box.show", "to_text")]), ("return self.to_text(x)", [])],
)
def test_functions_of_a_module_that_an_object_holds(body: str, expected: list[tuple[str, str]]) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/one.py": "def to_text(x):\n    return x\n\n\ndef other(x):\n    return 1\n",
        "pkg/two.py": "def to_text(x):\n    return x + 1\n",
        "pkg/box.py": f"class Box:\n    _kind = None\n\n    def show(self, x):\n        {body}\n",
        "test_m.py": "def test_m():\n    assert 1\n",
    }
    deletion = delete_symbol(PythonCodebase.from_texts(files), "pkg/one.py::to_text", ("test_m.py::test_m",))
    assert list(deletion.uses_likely) == expected
    del files["pkg/two.py"]
    alone = delete_symbol(PythonCodebase.from_texts(files), "pkg/one.py::to_text", ("test_m.py::test_m",))
    assert not alone.uses_likely, "it is no interface of several modules"


@pytest.mark.parametrize(
    ("name", "rest", "is_left"),
    [
        ("TooFar(ValueError)", "try:\n        go()\n    except TooFar:\n        return 1\n", True),
        ("TooFar(ValueError)", "raise TooFar\n", False),
        ("TooFar(ValueError)", "return TooFar.x\n", False),
        ("TooFar(ValueError)", "raise TooFar(2)\n", False),
        ("TooFar(ValueError)", "make(TooFar)\n", False),
        ("TooFar(ValueError)", "return 1\n\n\nclass VeryFar(TooFar):\n    pass\n", False),
        ("_TooFar", "return isinstance(x, _TooFar)\n", True),
        ("_TooFar", "return type(x) is _TooFar\n", True),
        ("_TooFar", "y: _TooFar | None = x\n    return y\n", True),
        ("TooFar", "return isinstance(x, TooFar)\n", False),
    ],
)
def test_classes_that_only_removed_code_makes(name: str, rest: str, *, is_left: bool) -> None:
    plain = name.partition("(")[0]
    source = (
        f"class {name}:\n    x = 1\n\n\ndef gone(x):\n    raise {plain}(x)\n\n\ndef keep(x):\n    {rest}"
        "\n\nclass Other:\n    x = 1\n"
    )
    assert (f"nothing would make {plain} any more" in left(source, "gone")) is is_left


def test_a_class_that_removed_code_tests_before_it_makes_it() -> None:
    source = (
        "class TooFar(ValueError):\n    x = 1\n\n\ndef gone(x):\n    if isinstance(x, TooFar):\n        return 1\n"
        "    raise TooFar(x)\n\n\ndef keep(x):\n    return isinstance(x, TooFar)\n"
    )
    assert "nothing would make TooFar any more" in left(source, "gone")


@pytest.mark.parametrize(("fallback", "is_left"), [("__getattr__", True), ("__getitem__", False)])
def test_a_method_for_which_getattr_would_answer_stays(fallback: str, *, is_left: bool) -> None:
    source = (
        f"class Proxy:\n    def gone(self):\n        return 1\n\n    def {fallback}(self, name):\n"
        "        return getattr(self.inner, name)\n"
    )
    files = {"pkg/__init__.py": "", "pkg/m.py": source, "test_m.py": "def test_m():\n    assert 1\n"}
    deletion = delete_symbol(PythonCodebase.from_texts(files), "pkg/m.py::Proxy.gone", ("test_m.py::test_m",))
    assert bool(deletion.uses_left) is is_left
