"""Tests that stay without the statements which use removed code."""

from __future__ import annotations

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.python.probed_tests import PartsOfTests
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
        # what has no effect any more goes along
        (
            "def test_it():\n    f = load(0)\n    assert parse(f)\n    f = load(1)\n    assert load(f)\n"
            "    for x, y in [(1, 2)]:\n        z = load(x)\n        assert parse(z) == y\n"
            "    assert load(3)\n    assert load(4)\n",
            "():\n    f = load(1)\n    assert load(f)\n    assert load(3)\n    assert load(4)\n",
        ),
        # what others still read stays
        (
            "def test_it():\n    f = load(0)\n    assert parse(f)\n    f = load(f)\n    assert load(f)\n"
            "    for x, y in [(1, 2)]:\n        z = load(x)\n        assert parse(z) == y\n"
            "    assert load(z)\n    assert load(4)\n",
            "():\n    f = load(0)\n    f = load(f)\n    assert load(f)\n"
            "    for x, y in [(1, 2)]:\n        z = load(x)\n    assert load(z)\n    assert load(4)\n",
        ),
        # so does what is put together for a lost check
        (
            "def test_it():\n    out = 'a'\n    out += 'b'\n    n = 1\n    n += 2\n    assert parse(1) == out\n"
            "    assert load(n)\n    assert load(4)\n",
            "():\n    n = 1\n    n += 2\n    assert load(n)\n    assert load(4)\n",
        ),
        # but not what is another object's, too
        (
            "def test_it():\n    base = [1]\n    alias = base\n    alias += [2]\n    assert parse(alias)\n"
            "    assert load(base) == [1, 2]\n    assert load(4)\n",
            "():\n    base = [1]\n    alias = base\n    alias += [2]\n    assert load(base) == [1, 2]\n"
            "    assert load(4)\n",
        ),
        # what is put into something empty, or done with a stand-in, is lost
        (
            "def test_it():\n    errors = []\n    parse(errors)\n    assert not errors\n"
            "    seen = {}\n    for x in (1, 2):\n        seen[x] = parse(x)\n"
            "    for s in seen.values():\n        assert load(s)\n"
            "    with mock.patch('os.remove') as p:\n        load(2)\n        parse(3)\n        p.assert_not_called()\n"
            "    n = 5\n    assert parse(n)\n    assert load(n)\n" + "    assert load(1)\n" * 5,
            "():\n    n = 5\n    assert load(n)\n" + "    assert load(1)\n" * 5,
        ),
        # checks right after a lost call would check nothing, and so would what prepares lost ones
        (
            "def test_it(box):\n    box.load(1)\n    assert box.all == [1]\n    assert load(1)\n"
            "    parse(box)\n    assert box.size == 1\n    assert load(2)\n    box.load(3)\n"
            "    assert box.all == [1, 3]\n    assert load(4)\n    # the end\n    box.load(5)\n    size = 3\n"
            "    assert parse(box) == size\n\n    load(8)\n",
            "(box):\n    box.load(1)\n    assert box.all == [1]\n    assert load(1)\n    assert load(2)\n"
            "    box.load(3)\n    assert box.all == [1, 3]\n    assert load(4)\n\n    load(8)\n",
        ),
        # and after one that keeps a result, also of what was made of the object
        (
            "def test_it():\n    box = Box()\n    view = open(box)\n    with view.lines() as lines:\n"
            "        r = box.run(parse)\n        assert r == 2\n        assert len(lines) == 1\n"
            "        assert view.size == 1\n    assert load(box)\n    assert load(2)\n    assert load(3)\n"
            "    assert load(4)\n",
            "():\n    box = Box()\n    assert load(box)\n    assert load(2)\n    assert load(3)\n    assert load(4)\n",
        ),
        # but of nothing that no method changes, or that was made of the same alone
        (
            "def test_it():\n    import json\n    path = 'x'\n    name = 'n'\n    a = Box(path)\n    b = Box(path)\n"
            "    r = a.run(parse)\n    assert r == 1\n    assert b.size == 1\n"
            "    r = name.join(parse)\n    assert r == 1\n    assert load(name) == 2\n"
            "    r = json.dumps(parse)\n    assert r == 1\n    assert load(json.loads('[1]'))\n    assert load(4)\n",
            "():\n    import json\n    path = 'x'\n    name = 'n'\n    b = Box(path)\n    assert b.size == 1\n"
            "    assert load(name) == 2\n    assert load(json.loads('[1]'))\n    assert load(4)\n",
        ),
        # nor after one of which only the value mattered, unless its name says more
        (
            "def test_it(box):\n    u = box.name()\n    assert parse(u)\n"
            "    assert box.size == 1\n    assert load(1)\n    u = box.pop()\n    assert parse(u)\n"
            "    assert box.size == 2\n    assert load(2)\n    assert load(3)\n    assert load(4)\n",
            "(box):\n    assert box.size == 1\n    assert load(1)\n    assert load(2)\n"
            "    assert load(3)\n    assert load(4)\n",
        ),
        # of a file whose name a call got, of what was imported, and of what was made of a fixture
        (
            "def test_it(engine):\n    from app import registry\n    conn = engine.connect()\n    path = 'out.txt'\n"
            "    parse(path)\n    assert open(path).read() == 'x'\n    assert load(1)\n"
            "    r = registry.add(parse)\n    assert registry.size == 1\n    assert load(2)\n"
            "    engine.insert(parse)\n    assert conn.count() == 1\n" + "    assert load(3)\n" * 5,
            "(engine):\n    from app import registry\n    assert load(1)\n    assert load(2)\n"
            + "    assert load(3)\n" * 5,
        ),
        # nor does it matter how its method is called
        (
            "def test_it(box):\n    r: int = box.run(parse)\n    assert box.size == 1\n    assert load(1)\n"
            "    r = box.inner.run(parse)\n    assert box.size == 2\n    assert load(2)\n"
            "    r = box.run(parse).get()\n    assert box.size == 3\n" + "    assert load(3)\n" * 5,
            "(box):\n    assert load(1)\n    assert load(2)\n" + "    assert load(3)\n" * 5,
        ),
        # loops and comprehensions have names of their own
        (
            "def test_it():\n    for x in (1, 2):\n        assert parse(x)\n"
            "    for x in (3, 4):\n        assert load(x)\n    assert [x for x in (5,)]\n    assert load(1)\n",
            "():\n    for x in (3, 4):\n        assert load(x)\n    assert [x for x in (5,)]\n    assert load(1)\n",
        ),
        # statements that share a line
        ("def test_it():\n    assert load(1); assert parse(2)\n    assert load(3)\n    assert load(4)\n", ""),
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
        # a name that a nested function gives
        (
            "def test_it():\n    n = 0\n\n    def inner():\n        nonlocal n\n        n = 1\n\n    inner()\n"
            "    assert parse(n)\n    assert load(n)\n    assert load(4)\n",
            "():\n    n = 0\n\n    def inner():\n        nonlocal n\n        n = 1\n\n    inner()\n"
            "    assert load(n)\n    assert load(4)\n",
        ),
        # of a block, all that needs a name which is lost in it
        (
            "def test_it():\n    with open(os.devnull) as f:\n        n = parse(f)\n        assert n\n"
            "        assert load(f)\n    assert load(1)\n    assert load(2)\n    assert load(3)\n",
            "():\n    assert load(1)\n    assert load(2)\n    assert load(3)\n",
        ),
        # a decorator with a blank
        (
            "def test_it():\n    @ pytest.fixture\n    def inner():\n        return parse(1)\n\n    assert load(1)\n",
            "():\n    assert load(1)\n",
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
        # what is left would not run
        "def test_it():\n    n = parse(1)\n    n += 1\n    assert load(n)\n    assert load(2)\n",
        "def test_it():\n    n = parse(1)\n    del n\n    match load(1):\n        case n:\n            assert n\n",
        "def test_it():\n    n = parse(1)\n    if os.sep == 'x':\n        n = 2\n    assert n\n    assert load(2)\n",
        "def test_it():\n    n = 0\n    while load(n) < 3:\n        n = parse(n)\n    assert n\n    assert load(2)\n",
        "def test_it():\n    from m import load, parse\n    assert parse(1)\n    assert load(1)\n    assert load(2)\n",
        "def test_it():\n    out = []\n    out.append(parse(1))\n    assert out == [1]\n    assert load(2)\n",
        "def test_it():\n    name = 'par' + 'se'\n    assert load(name)\n    assert load(2)\n",  # it names nothing
    ],
)
def test_tests_of_the_code_go_whole(test: str) -> None:
    assert not shortened(test)


@pytest.mark.parametrize(
    ("test", "lost", "left"),
    [
        # the checks of a function that nothing calls any more do not count
        (
            "def test_it():\n    @load\n    def run():\n        n = 1\n        assert n\n        assert load(n)\n\n"
            "    run()\n    assert load(1)\n",
            ["run()"],
            "",
        ),
        # it goes, also one in a block, with what only it calls, and itself
        (
            "def test_it():\n    def low(n):\n        return n and low(n - 1)\n\n    def run():\n        n = low(1)\n"
            "        assert n\n\n    class Box:\n        n = 1\n\n    with open(os.devnull) as f:\n"
            "        def inner():\n            assert load(f)\n\n        inner()\n        assert load(f)\n"
            "    run()\n    Box()\n    n = 2\n" + "    assert load(n)\n" * 4,
            ["run()", "inner()", "Box()"],
            "():\n    with open(os.devnull) as f:\n        assert load(f)\n    n = 2\n" + "    assert load(n)\n" * 4,
        ),
        # not one that is called elsewhere, or that a local object may call
        (
            "def test_it(app):\n    @app.route\n    def index():\n        x = 1\n        return x\n\n    def run():\n"
            "        y = 1\n        assert y\n\n    index()\n    run()\n    run()\n" + "    assert load(1)\n" * 2,
            ["index()", "run()"],
            "(app):\n    @app.route\n    def index():\n        x = 1\n        return x\n\n    def run():\n"
            "        y = 1\n        assert y\n\n    run()\n" + "    assert load(1)\n" * 2,
        ),
        # one of two with a name
        (
            "def test_it():\n    def run():\n        x = load(1)\n        assert x\n\n    run()\n"
            "    def run():\n        y = load(2)\n        assert y\n\n    run()\n    assert load(1)\n",
            ["run()"],
            "():\n    def run():\n        y = load(2)\n        assert y\n\n    run()\n    assert load(1)\n",
        ),
    ],
)
def test_functions_that_nothing_calls_any_more_go(test: str, lost: list[str], left: str) -> None:
    files, lines = {"m.py": CODE, "test_m.py": HEAD + test}, [line.strip() for line in (HEAD + test).splitlines()]
    failing = frozenset(lines.index(each) + 1 for each in lost)
    feature = Feature(
        feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=("m.py::parse",), symbols=("m.py::parse",), tests=()
    )
    deleter = Remove(PartsOfTests(failing={"test_m.py::test_it": failing}))
    deletion = deleter.delete(PythonCodebase.from_texts(files), feature, hide=frozenset({"test_m.py::test_it"}))
    assert after(files, deletion).get("test_m.py", "").partition("def test_it")[2] == left


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


def test_a_test_of_which_there_are_two_goes_as_pytest_sees_it() -> None:
    test = "    def test_it():\n        assert load(1)\n        assert parse(2)\n        assert load(3)\n"
    files = {"m.py": CODE, "test_m.py": f"{HEAD}if os.name == 'nt':\n{test}else:\n{test}"}
    deletion = delete(files, "m.py::parse", hide=("test_m.py::test_it",))
    assert deletion.shortened == ()
    assert "test_it" not in after(files, deletion).get("test_m.py", "")


@pytest.mark.parametrize("first", ["TestA", "TestB"])
def test_an_inherited_test_is_shortened_with_that_of_its_base(first: str) -> None:
    base, other = "TestA" if first == "TestA" else "TestZ", "TestB"
    test = "    def test_it(self):\n        assert load(1)\n        assert parse(2)\n        assert load(3)\n"
    files = {"m.py": CODE, "test_m.py": f"{HEAD}class {base}:\n{test}\n\nclass {other}({base}):\n    pass\n"}
    hidden = tuple(f"test_m.py::{name}::test_it" for name in (base, other))
    deletion = delete(files, "m.py::parse", hide=hidden)
    left = after(files, deletion).get("test_m.py", "")
    assert ("def test_it" in left) == bool(deletion.shortened) == (first == "TestA")
    assert "parse" not in left


TABLE = 'import pytest\nfrom m import load\n\nCASES = ["a", "b"]\n\n\n'
ROWS = '@pytest.mark.parametrize("x", CASES)\ndef test_it(x):\n    assert load(x)\n'


@pytest.mark.parametrize(
    ("test", "other", "is_whole"),
    [
        (ROWS, "", False),
        (ROWS, "from test_m import CASES\n", True),  # the list is another file's, too
        (f"{ROWS}\n\n{ROWS}", "", True),  # nothing tells which of the two pytest takes
    ],
)
def test_rows_go_alone_from_a_list_and_a_test_of_their_own(test: str, other: str, *, is_whole: bool) -> None:
    files = {"m.py": CODE, "test_m.py": TABLE + test, "test_n.py": f"{other}def test_n():\n    assert 1\n"}
    deletion = delete(files, "m.py::parse", hide=("test_m.py::test_it[b]",))
    left = after(files, deletion).get("test_m.py", "")
    assert ("test_it" not in left) is is_whole
    assert ('CASES = ["a"]' in left) is not is_whole


@pytest.mark.parametrize(
    "body", ["return [x for x in x]", "return (lambda x: x)(x)", "class A:\n            x = 1\n        return x"]
)
def test_what_scopes_in_a_nested_function_bind_is_not_its_own(body: str) -> None:
    test = (
        f"def test_it():\n    x = [1]\n    y = parse(x)\n    def f():\n        {body}\n    assert y\n"
        "    assert f() == [1]\n    assert load(2)\n    assert load(3)\n"
    )
    assert "    x = [1]\n    def f()" in shortened(test)
