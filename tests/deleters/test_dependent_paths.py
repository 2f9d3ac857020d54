"""Branches of functions that stay go with what they use of the removed code."""

from __future__ import annotations

import pytest

from excise.deleters.patches.git_patches import apply_patch
from excise.deleters.python.remove import Remove
from excise.deleters.statement.problem_statement import write_statement
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Deletion, Feature, FeatureKind

from .test_what_went_along import REPO

HEAD = "def gone(x):\n    return x\n\n\n"


def removed(files: dict[str, str], symbol: str = "m.py::gone", tests: tuple[str, ...] = ()) -> Deletion:
    """The removal of a symbol."""
    feature = Feature(
        feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(symbol,), symbols=(symbol,), tests=tests
    )
    return Remove().delete(PythonCodebase.from_texts(files), feature)


def left(body: str, head: str = HEAD) -> str:
    """What is left of ``m.py`` with a function of this body."""
    source = f"{head}def stays(a, b, out):\n{body}"
    after = apply_patch({"m.py": source.encode()}, removed({"m.py": source}).source_patch)["m.py"]
    assert after is not None
    return after.decode().removeprefix("def stays(a, b, out):\n")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    if a:\n        return gone(b)\n    return b\n", "    return b\n"),
        ("    if a:\n        return gone(b)\n    elif b:\n        return 2\n    return 3\n",
         "    if b:\n        return 2\n    return 3\n"),
        ("    if a:\n        b = 1\n    elif gone(b):\n        b = 2\n    else:\n        b = 3\n    return b\n",
         "    if a:\n        b = 1\n    else:\n        b = 3\n    return b\n"),
        ("    if a:\n        b = gone(b)\n    else:\n        b = [\n            2,\n        ]\n    return b\n",
         "    b = [\n        2,\n    ]\n    return b\n"),
        ("    if a:\n        b = 1\n    else:\n        b = gone(b)\n    return b\n",
         "    if a:\n        b = 1\n    return b\n"),
        ("    if a:\n        c = 1\n    else:\n        c = gone(b)\n    c = 2\n    return c\n",
         "    if a:\n        c = 1\n    c = 2\n    return c\n"),
        ("    gone(out)\n    return b\n", "    return b\n"),
        ("    print(gone(out))\n    return b\n", "    return b\n"),
        ("    if a:\n        print(b)\n    else:\n        a.go()\n        print(gone(out))\n    return b\n",
         "    if a:\n        print(b)\n    return b\n"),
        ("    if a:\n        gone(out)\n        b = next(a)\n    else:\n        b = 1\n    return b\n",
         "    b = 1\n    return b\n"),
        ("    if a:\n        b = next(a)\n        gone(out)\n    return b\n",
         "    if a:\n        b = next(a)\n    return b\n"),
        ("    for x in a:\n        gone(x)\n    return b\n", "    return b\n"),
        ("    for x in a:\n        if x:\n            out.append(gone(x))\n        out.append(x)\n    return out\n",
         "    for x in a:\n        out.append(x)\n    return out\n"),
        ("    if a or gone(b):\n        return 1\n    return 2\n", "    if a:\n        return 1\n    return 2\n"),
        ("    match a:\n        case 1:\n            return gone(b)\n        case _:\n            return 2\n",
         "    match a:\n        case _:\n            return 2\n"),
        ("    c = a + 1\n    if b:\n        gone(c)\n    return a\n", "    return a\n"),
        ("    c = next(a)\n    if b:\n        gone(c)\n    return a\n", "    next(a)\n    return a\n"),
        ("    c = d = a\n    if b:\n        gone(c)\n    return d\n", "    d = a\n    return d\n"),
        ("    c = False\n    for x in a:\n        if x == 1:\n            out = x\n        elif c:\n"
         "            b = gone(x)\n            c = False\n        elif x == 2:\n            c = True\n    return out\n",
         "    for x in a:\n        if x == 1:\n            out = x\n    return out\n"),
        ("    try:\n        c = a[b]\n    except KeyError:\n        c = 0\n    if c:\n        gone(c)\n    return b\n",
         "    return b\n"),
        ("    try:\n        out(a)\n    except KeyError as c:\n        if b:\n            gone(c)\n        a = 1\n"
         "    return a\n",
         "    try:\n        out(a)\n    except KeyError:\n        a = 1\n    return a\n"),
        ("    from c import d, e\n    import f\n    if b:\n        gone(e, f)\n    return d\n",
         "    from c import d\n    return d\n"),
        ("    c = out.get(a)\n    if b:\n        gone(c)\n    return a.c\n", "    return a.c\n"),
        ("    if a.on:\n        if a.b:\n            a.c = gone(b)\n            a.n = 1\n"
         "        a.go()\n    return a\n",
         "    if a.on:\n        a.go()\n    return a\n"),
        ("    if a is not None:\n        if b:\n            a = gone(a)\n        out.append(a)\n    return out\n",
         "    if a is not None:\n        out.append(a)\n    return out\n"),
        ("    for x in a.r:\n        if a.on:\n            if x:\n                a.n = gone(x)\n            a.go()\n"
         "    return a\n",
         "    for x in a.r:\n        if a.on:\n            a.go()\n    return a\n"),
        ("    while a:\n        x = a.pop()\n        if x:\n            break\n        if gone(x):\n            break\n"
         "    return b\n",
         "    while a:\n        x = a.pop()\n        if x:\n            break\n    return b\n"),
        ("    @out('/')\n    def view(c=1):\n        d = gone(c)\n        return d\n\n    @out('/a')\n    def d():\n"
         "        return a\n\n    return d\n",
         "    @out('/a')\n    def d():\n        return a\n\n    return d\n"),
    ],
    ids=["if", "if-elif", "elif", "if-else", "else", "bound-below", "call", "told", "told-in-else", "opens-a-branch",
         "in-a-branch", "loop",
         "call-in-if", "or", "case", "unused", "advances", "chain", "flag", "attempt", "as", "imports", "lookup",
         "attribute", "no-loop", "attribute-in-loop", "another-way-out", "decorated"],
)  # fmt: skip
def test_a_branch_goes_with_what_it_uses(body: str, expected: str) -> None:
    assert left(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "    return gone(a)\n",
        "    c = gone(a)\n    return c\n",
        "    if a:\n        c = gone(b)\n    return c\n",
        "    try:\n        c = a.x\n    except AttributeError:\n        raise gone(b)\n    return c\n",
        "    if a and gone(b):\n        c = 1\n    return c\n",
        "    if a:\n        c = 1\n    else:\n        c = gone(b)\n    return c\n",
        "    if a:\n        c = 1\n    elif b:\n        c = gone(b)\n    return c\n",
        "    out.c = None\n    if a:\n        c = 1\n    else:\n        c = gone(b)\n    return c\n",
        "    if a:\n        c = 1\n    else:\n        c = gone(b)\n    print(c)\n    c = 2\n    return c\n",
        "    if a:\n"
        + "".join(f"        out.append({n})\n" for n in range(20))
        + "        return gone(b)\n    return 1\n",
        "    gone = a\n    if gone:\n        return gone(b)\n    return 1\n",
        "    c, d = False, []\n    for x in a:\n        if c:\n            if x.ends:\n                yield gone(d)\n"
        "                c = False\n            else:\n                d.append(x)\n            continue\n"
        "        c = x.begins\n    return d\n",
        "    while True:\n        x = next(a)\n        if gone(x):\n            break\n        out(x)\n    return b\n",
        "    while a:\n        gone(a.pop())\n        b = out(b)\n    return b\n",
        "    @out\n    def view():\n        return gone(a)\n\n    return view\n",
        "    def view():\n        return gone(a)\n\n    return b\n",
        "    with a:\n        if b:\n            return 1\n        else:\n            return gone(a)\n",
        "    out.open(a)\n    out.write(gone(b))\n    out.close()\n",
        "    out.open(a)\n    await out.write(str(gone(b)))\n    out.close()\n",
        "    if a:\n        return gone(b) if b else out\n    return 1\n",
        "    if a:\n        try:\n            out(a)\n        except TypeError:\n            gone(a)\n"
        "            raise\n    return b\n",
        "    if a == 'x':\n        print(1)\n    elif a == 'y':\n        print(2)\n    else:\n        out.go()\n"
        "        print(gone(b))\n    return b\n",
    ],
    ids=[
        "whole",
        "value",
        "binds",
        "handler",
        "under-and",
        "last-way",
        "one-of-two-ways",
        "attribute",
        "later",
        "long",
        "another",
        "state",
        "endless",
        "takes-out",
        "returned",
        "undecorated",
        "last-way-out",
        "argument",
        "awaited",
        "one-of-two",
        "raised-again",
        "usual",
    ],
)
def test_what_the_function_depends_on_stays(body: str) -> None:
    assert left(body) == body


def test_a_function_that_its_decorator_registers_is_told_whole() -> None:
    source = f"{HEAD}def stays(app):\n    @app.route('/')\n    def view():\n        return gone(1)\n\n    return app\n"
    deletion = removed({"m.py": source})
    assert deletion.uses == (("m.py", "in stays:\n@app.route('/')\ndef view():\n    return gone(1)"),)
    assert deletion.uses_left == ()


def test_functions_of_tests_that_stay_lose_their_paths_too() -> None:
    tests = """\
import unittest
from m import gone, stays


class Tests(unittest.TestCase):
    def setUp(self):
        self.views = {}
        stays(1, gone=gone(1))

        @self.views.register
        def first():
            return gone(1)

        @self.views.register
        def second():
            return stays(1)

        if self.views:
            gone(2)

    def test_gone(self):
        assert self.views["first"] == gone(1)

    def test_stays(self):
        assert self.views["second"] == stays(1)
"""
    files = {"m.py": f"{HEAD}def stays(x, gone=0):\n    return x\n", "test_m.py": tests}
    deletion = removed(files, tests=("test_m.py::Tests::test_gone",))
    after = apply_patch({"test_m.py": tests.encode()}, deletion.hide_patch)["test_m.py"]
    assert after is not None
    assert "first" not in after.decode()
    assert "gone(2)" not in after.decode()
    assert "stays(1, gone=gone(1))" not in after.decode()
    assert "test_stays" in after.decode()
    assert deletion.uses == (), "the statement tells of sources"


def test_what_a_linter_would_tell_is_left() -> None:
    body = "    if a:\n        c = b\n    else:\n        a = 2\n    if b:\n        gone(c)\n    return a\n"
    source = f"{HEAD}def stays(a, b):\n{body}"
    assert removed({"m.py": source}).uses_left == (("m.py", "stays would be left with an unused variable c"),)


def test_an_attribute_of_an_unknown_object_is_a_use_of_the_only_method_of_this_name() -> None:
    use = "def stays(x):\n    if x.ready:\n        x.seal()\n        x.close()\n"
    source = f"class Box:\n    def close(self):\n        return 1\n\n    def seal(self):\n        return 2\n\n\n{use}"
    deletion = removed({"m.py": source}, "m.py::Box.seal")
    assert deletion.uses_left == (("m.py", "stays uses .seal, which would be gone"),)
    assert use not in deletion.source_patch
    other = "class Lid:\n    def seal(self):\n        return 3\n\n\n"
    assert removed({"m.py": other + source}, "m.py::Box.seal").uses_left == ()
    deletion = removed({"m.py": source}, "m.py::Box.close")
    assert deletion.uses_left == (), "files have this method, too"
    assert deletion.uses_likely == (("m.py::stays", "close"),)


def test_a_member_of_a_union_goes() -> None:
    source = "class gone:\n    pass\n\n\nfrom typing import Union\n\n"
    source += "Both = Union['gone', int, 'gone']\nOne = Union['int', 'gone']\n"
    after = removed({"m.py": source}).source_patch
    assert "+Both = Union[int]\n" in after
    assert "+One = Union['int']\n" in after


def test_the_statement_says_where_it_was_used() -> None:
    files = {
        "m.py": HEAD,
        "n.py": (
            "from m import gone\n\n\ndef stays(a):\n    if a > 2:\n        return gone(a)\n    gone(\n        1)\n"
            "    return a\n"
        ),
        "o.py": "import n\n",
        "test_m.py": "from m import gone\n\n\ndef test_gone():\n    assert gone(1) == 1\n",
    }  # fmt: skip
    tests = ("test_m.py::test_gone",)
    deletion = removed(files, tests=tests)
    assert deletion.uses == (
        ("n.py", "in stays:\nif a > 2:\n    return gone(a)"), ("n.py", "in stays:\ngone(\n    1)"),
    )  # fmt: skip
    text = write_statement(PythonCodebase.from_texts(files), deletion, REPO, tests).text
    assert "## Where it was used" in text
    assert "in stays:\nif a > 2:\n    return gone(a)\nin stays:\n" in text
    assert "-        return gone(a)\n" in deletion.source_patch


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("close_all", "", True),
        ("close", "", False),
        ("read_text", "", False),
        ("close_all", "class Other:\n    def close_all(self):\n        pass\n\n\n", False),
        ("close_all", "def sets(it):\n    it.close_all = 1\n\n\n", False),
    ],
)
def test_names_that_nothing_else_has_are_distinctive(name: str, more: str, expected: bool) -> None:
    source = (
        f"class Box:\n    def {name}(self):\n        return 1\n\n\n{more}def stays(app):\n    return app.box.{name}()\n"
    )
    deletion = removed({"m.py": source}, f"m.py::Box.{name}")
    assert (("m.py::stays", name) in deletion.uses_distinctive) is expected


def test_tests_that_name_removed_code_are_hidden() -> None:
    files = {
        "m.py": HEAD,
        "test_m.py": (
            "import m\n\n\ndef test_gone():\n    assert m.gone(1) == 1\n\n\ndef test_fails():\n"
            "    assert m.gone(1) == 2\n\n\ndef test_other():\n    assert m\n"
        ),
    }  # fmt: skip
    deletion = removed(files, tests=("test_m.py::test_gone",))
    assert "test_m.py::test_fails" in deletion.hidden
    assert "-def test_fails():" in deletion.hide_patch
    assert "-def test_other():" not in deletion.hide_patch


@pytest.mark.parametrize(
    ("above", "below", "expected"), [("\n", "\n", "\n"), ("", "", ""), ("\n", "", "\n"), ("", "\n", "\n")]
)
def test_a_clause_goes_with_the_blank_lines_on_one_of_its_sides(above: str, below: str, expected: str) -> None:
    first, last = "    if a:\n        b = 1\n", "    elif out:\n        b = 3\n    return b\n"
    assert left(f"{first}{above}    elif gone(b):\n        b = 2\n{below}{last}") == first + expected + last


def test_a_clause_of_a_file_with_carriage_returns_goes_with_its_blank_line() -> None:
    body = (
        "    if a:\n        b = 1\n\n    elif gone(b):\n        b = 2\n\n    elif out:\n        b = 3\n    return b\n"
    )
    source = f"{HEAD}def stays(a, b, out):\n{body}".replace("\n", "\r\n").encode()
    after = apply_patch({"m.py": source}, removed({"m.py": source.decode()}).source_patch)["m.py"]
    assert after is not None
    expected = "    if a:\n        b = 1\n\n    elif out:\n        b = 3\n    return b\n"
    assert after.decode() == f"def stays(a, b, out):\n{expected}".replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("condition", "before", "change", "goes"),
    [
        ("a", "print(len(a))", "a.pop()", False),
        ("a", "out.append(a)", "a.pop()", False),
        ("a", "out(x=len(a), a=b)", "a.pop()", False),
        ("a", "print(b.a, a[0])", "a.pop()", False),
        ("a", "out(a)", "a.pop()", True),
        ("a", "out(x=[a])", "a.pop()", True),
        ("a", "b = a", "a.pop()", True),
        ("a", "a.clear()", "a.pop()", True),
        ("a", "del a[0]", "a.pop()", True),
        ("a", "a[b].c = 1", "a.pop()", True),
        ("a", "a, b = b, a", "a.pop()", True),
        ("a.q", "a.clear()", "a.q.pop()", True),
        ("a.q", "a.r.clear()", "a.q.pop()", False),
        ("self.q", "self.log()", "self.q.pop()", False),
        ("self.q", "self.log()", "self.take()", True),
        ("self.q", "out(b)", "self.take()", False),
        ("self.q", "self.q = b", "self.q.pop()", True),
        ("self.q", "self.r.clear()", "self.q.pop()", False),
        ("self.has_more()", "out(b)", "self.take()", False),
        ("(c := a.pop())", "out(b)", "c", True),
        ("a and b", "b -= 1", "a.pop()", True),
    ],
)
def test_a_loop_keeps_what_ends_it(condition: str, before: str, change: str, *, goes: bool) -> None:
    first, last = f"    while {condition}:\n        {before}\n", "    return b\n"
    use = f"        gone({change})\n"
    source = f"{HEAD}def stays(self, a, b, out):\n{first}{use}{last}"
    after = apply_patch({"m.py": source.encode()}, removed({"m.py": source}).source_patch)["m.py"]
    assert after is not None
    assert after.decode().endswith(first + ("" if goes else use) + last)


def test_a_method_of_an_attribute_is_one_of_the_class_whose_objects_it_gets() -> None:
    source = (
        "class Scope:\n    def child(self):\n        return Scope()\n\n\nclass Box:\n    def child(self):\n"
        "        return Box(self)\n\n\nclass Registry:\n    def __init__(self, parent=None):\n        if not parent:\n"
        "            self._kept = Scope()\n        else:\n            self._kept = parent._kept.child()\n\n\n"
        "def other(x):\n    return x.parts.child()\n"
    )
    deletion = removed({"m.py": source}, "m.py::Scope.child")
    assert deletion.uses_left == (("m.py", "Registry.__init__ uses ._kept.child, which would be gone"),)
