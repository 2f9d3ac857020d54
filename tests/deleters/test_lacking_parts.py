"""Parts of removed code, without one of which its tests are run."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable

import pytest

from excise.deleters.python.function_shortcuts import function_shortcuts
from excise.deleters.python.lacking_parts import lacking_parts
from excise.extractors.python.analysis.codebase import PythonCodebase

ONCE = "__import__('sys')._getframe(1).f_code is __import__('sys')._getframe().f_code"
"""Whether a function was called by itself."""
CODE = """import logging

log = logging.getLogger()


class Box:
    @property
    def name(self):
        'Its name.'
        import re
        if self.lid:
            return re.sub('a', 'b', self.lid,
                          count=1)
        elif self.base:
            log.debug('base')
            return None
        else:
            assert self.side
        try:
            self.open(mode='r', size=2)
        except OSError:
            self.size = 0
        while self.size:
            self.size -= 1
        return f'{self.show(plain=True)}'


def put(box, size=3, *, mode='w', kind=None, other=Box):
    width = size
    @log
    def inner():
        return mode
    inner(width)
    return inner, other


def stays(x):
    return x
"""


def parts(code: str = CODE, first: int = 1, last: int = 99) -> dict[tuple[str, str], str]:
    codebase = PythonCodebase.from_texts({"m.py": code})
    source = codebase.modules["m.py"].source
    found = lacking_parts(codebase, {"m.py": frozenset(range(first, last)), "gone.txt": frozenset([1])})
    return {
        (each.symbol, each.what): (source[: each.start] + each.replacement + source[each.end :]).decode()
        for each in found
    }


def test_statements_arguments_and_parameters_are_parts() -> None:
    found = parts(last=35)
    assert {what for _, what in found} == {
        "line 11", "line 12", "line 13: count", "line 14", "line 19", "line 20", "line 20: mode", "line 20: size",
        "line 22", "line 23", "line 23: all rounds but one", "line 25", "line 29", "line 32", "line 33", "line 34",
        "all but box", "mode", "size",
    }  # fmt: skip
    assert all(ast.parse(text) for text in found.values())
    name = "m.py::Box.name"
    assert "return re.sub('a', 'b', self.lid)\n" in found[name, "line 13: count"]
    assert "self.open(mode='r')\n" in found[name, "line 20: size"]
    assert "        if self.lid:\n            pass\n        elif" in found[name, "line 12"]
    assert "        pass\n        try:" in found[name, "line 11"]
    assert "        except OSError:\n            pass\n" in found[name, "line 22"]
    assert "        pass\n        return f'" in found[name, "line 23"]


def test_only_what_is_gone_is_a_part() -> None:
    assert {what for _, what in parts(first=12, last=14)} == {"line 12", "line 13: count"}
    assert {what for _, what in parts(first=34, last=40)} == {"line 34", "line 38", "all but box"}
    assert parts("def f(:\n    return 1\n") == {}


def test_a_parameter_has_its_default_before_anything_is_done() -> None:
    source = "def f(a, b=1):\n    'Add.'\n    c = a + b\n    return c\n"
    assert parts(source)["m.py::f", "b"] == source.replace("    c =", "    b = 1\n    c =")
    assert ("m.py::f", "b") not in parts("def f(a, b=1): return a + b\n")


@pytest.mark.parametrize(
    ("head", "calls", "expected"),
    [
        ("f(a, b)", "f(1, 'x'), f(2, b='x')", {"a": "0", "b": "'x'"}),
        ("f(a, b)", "f(0, 'x')", {"a": "1", "b": "''"}),  # other than in the only call
        ("f(a, b)", "f(y, None), f(*y, 2)", {}),
        ("f(a: int, b: 'str')", "", {"a": "0", "b": "''"}),
        ("f(a: bool, *, b)", "f(False, b=-2)", {"a": "True", "b": "0"}),
        ("_f(a: int, b: str)", "", {}),
    ],
)
def test_a_parameter_that_calls_have_to_give_has_one_constant(head: str, calls: str, expected: dict[str, str]) -> None:
    source = f"def {head}:\n    c = a + b\n    return c\n\n\nx = [{calls}]\n"
    codebase = PythonCodebase.from_texts({"m.py": source})
    found = [each for each in lacking_parts(codebase, {"m.py": frozenset([1, 2, 3])}) if each.parameter]
    lines = {each.parameter: each.replacement.decode().strip() for each in found}
    assert lines == {name: f"{name} = {value}" for name, value in expected.items()}
    assert all(each.is_required for each in found)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a, b=1): return g(a, (b), k=a)\n", {"line 1"}),  # without k, a parenthesis would not be closed
        ("def f(a,\n      b=1): return a + b\n", {"line 2"}),
        ("def f(a, b=1):\\\n    return a + b\n", {"line 2"}),
        ("# -*- coding: latin-1 -*-\ndef f(a):\n    return a + 1\n", set()),
        ("# -*- coding: utf-8 -*-\ndef f(a):\n    return a + 1\n", {"line 3"}),
        ("def f(a):\n    x: int\n    del a\n    for y in z:\n        continue\n    return None\n", {"line 4"}),
        pytest.param("def f(a):\n    return g(" + "a + " * 400 + "a, k=1)\n", {"line 2", "line 2: k"}, id="deep"),
        ("try:\n    def f(a):\n        return g(k=a,)\nexcept* E:\n    pass\n", {"line 3"}),
        ("def f(a):\n    if a:\n        return g(1, k=2, **a)\n", {"line 2", "line 3", "line 3: k"}),
        (
            "def f(a):\n    return (a or b) and c or d\n",
            {"line 2", "line 2: a", "line 2: b", "line 2: (a or b) and c", "line 2: d"},
        ),
        (
            "def f(a):\n    debug and log.info(a)\n    while a and b:\n        a()\n",
            {"line 3", "line 3: all rounds but one"},
        ),
        ("while a:\n    def f(b):\n        while b: b()\n        while b:\n            break\n", {"line 3", "line 4"}),
    ],
)
def test_a_part_leaves_what_can_be_parsed(source: str, expected: set[str]) -> None:
    found = parts(source)
    assert {what for _, what in found} == expected
    assert all(ast.parse(text) for text in found.values())


def test_rounds_operands_and_choices_are_parts() -> None:
    loop = "def f(a):\n    for x in a:\n        if x:\n            g(x)  # all\n    return 1\n"
    assert parts(loop)["m.py::f", "line 2: all rounds but one"] == loop.replace("# all\n", "# all\n        break\n")
    choice = "def f(a, b):\n    return a if b and\\\n        a.ok else [b,\n    1]\n"
    found = {key: re.sub(r" +(?=[\n\[a])", " ", text).replace(" \n", "\n") for key, text in parts(choice).items()}
    assert found["m.py::f", "line 2: else"] == "def f(a, b):\n    return a\n"
    assert found["m.py::f", "line 2: if"].endswith("return [b,\n    1]\n")
    assert "return a if a.ok else [b" in found["m.py::f", "line 2: b"]
    assert "return a if b  else [b" in found["m.py::f", "line 3: a.ok"].replace("b else", "b  else")


def test_rounds_that_never_come_and_what_nobody_sees_are_no_parts() -> None:
    ends = (
        ["return x"], ["if x:", "    return 1", "else:", "    break"], ["with x:", "    return 1"],
        ["try:", "    return x", "except E:", "    continue"],
    )  # fmt: skip
    for end in ends:
        found = parts("\n".join(["def f(a):", "    for x in a:", *(f"        {line}" for line in end), ""]))
        assert ("m.py::f", "line 2: all rounds but one") not in found, end
    assert parts("def f(a):\n    if a or b:\n        log.info(a)\n    x: A or B\n    return None\n") == {}
    code = "def f(a):\n    y: A or B = 1\n    def g(x: c or d = 3) -> (c or d):\n        return y\n    return g\n"
    assert {what for _, what in parts(code)} == {"line 2", "line 3", "line 4", "line 5"}
    assert "m.py::f" not in {symbol for symbol, _ in parts("def f():\n" + "    x = (a)if b else(c)\n" * 2000)}


def test_a_function_has_no_more_parts_than_can_be_looked_at() -> None:
    arguments = ", ".join(f"k{n}={n}" for n in range(600))
    assert len(parts(f"def f():\n    return dict({arguments})\n")) == 60


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("{'a', 'b', 'c', 'd', 'e'}",
         {"'a'": "{'b', 'c', 'd', 'e'}", "'c'": "{'a', 'b', 'd', 'e'}", "'e'": "{'a', 'b', 'c', 'd'}"}),
        ("[1, 2,\n  3, 4, 5,\n ]",
         {"1": "[2,\n  3, 4, 5,\n ]", "3": "[1, 2,\n  4, 5,\n ]", "5": "[1, 2,\n  3, 4,\n ]"}),
        ("{1: a, 2: b, 3: c, 4: d, 5: e}",
         {"1": "{2: b, 3: c, 4: d, 5: e}", "3": "{1: a, 2: b, 4: d, 5: e}", "5": "{1: a, 2: b, 3: c, 4: d}"}),
        ("{1: a, **x, 2: b, 3: c, 4: d, 5: e}", {}),
        ("(1, 2, 3, 4)", {}),
        ("[a, b, c, d, e]", {}),
        ("(1, 1, 1, 1, 1)", {}),
        ("Literal['a', 'b', 'c', 'd', 'e']", {}),
    ],
)  # fmt: skip
def test_elements_of_tables_are_parts(table: str, expected: dict[str, str]) -> None:
    code = "def f(x):\n    return x in %s\n"
    found = parts(code % table)
    elements = {what.partition(": ")[2]: text for (_, what), text in found.items() if ": " in what}
    assert elements == {element: code % text for element, text in expected.items()}


def lesser(code: str, what: str) -> list[str]:
    """What the lines are without the parts of one kind of description, each without the spaces around it."""
    lines = code.split("\n")
    found = [(name, text) for (_, name), text in parts(code).items() if what in name]
    return [new.strip() for _, text in found for old, new in zip(lines, text.split("\n"), strict=False) if old != new][
        :9
    ]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(a):\n    a()\n    return 0 < a\n", ["return True", "return False"]),
        ("def f(a):\n    a()\n    return not a or a.is_open()\n", ["return True", "return False"]),
        ("def f(a) -> bool:\n    a()\n    return a.b\n", ["return True", "return False"]),
        ("def f(a):\n    if a: return False\n    return a.b\n", ["return True", "return False"]),
        ("def f(a):\n    a()\n    return a.b or a.is_open()\n", []),
        ("def f(a):\n    'Stand-ins of a whole function are tried.'\n    return 0 < a\n", []),
        ("def f(a):\n    def g():\n        return not a\n    return g\n", []),
        ("def f(a):\n    yield a\n    return not a\n", []),
    ],
)
def test_a_result_tells_two_cases_apart(code: str, expected: list[str]) -> None:
    found = lesser(code, "all but")
    assert sorted(found) == sorted(expected)


def test_arguments_that_a_function_hands_on_are_parts() -> None:
    found = parts("def f(a, *args, **kwargs):\n    return g(a, *args, **kwargs) or h(*a, **a)\n")
    assert {name: "".join(found["m.py::f", f"line 2: {name}"].split()) for name in ("*args", "**kwargs")} == {
        "*args": "deff(a,*args,**kwargs):returng(a,**kwargs)orh(*a,**a)",
        "**kwargs": "deff(a,*args,**kwargs):returng(a,*args)orh(*a,**a)",
    }
    assert not any(what.endswith("*a") for _, what in found)


def test_a_described_parameter_and_the_rounds_of_the_only_loop_are_essential() -> None:
    head = "def f(a, size=1, kind=2):\n    'At most ``size``.'\n    for x in a:\n        g(x, size, kind)\n"

    def essential(more: str) -> set[tuple[str, str]]:
        codebase = PythonCodebase.from_texts({"m.py": f"{head}{more}    return 1\n"})
        found = lacking_parts(codebase, {"m.py": frozenset(range(1, 9))})
        return {(each.what, each.parameter) for each in found if each.is_essential}

    assert essential("") == {("size", "size"), ("line 3: all rounds but one", "")}
    assert essential("    while a:\n        a()\n") == {("size", "size")}
    assert essential("    def h():\n        for y in a:\n            g(y)\n") == {("size", "size")}


@pytest.mark.parametrize(
    ("text", "is_essential"),
    [
        ("Return the name of a.", False),
        (":param str name: It.", True),
        ("Args:\n        name: It.", True),
        ("With *name* alone.", True),
        ("With name (str): it.", False),
        ("Like search(text[:name]).", True),
    ],
)
def test_parameters_are_essential_where_they_are_documented(text: str, *, is_essential: bool) -> None:
    source = f'def f(a, name=1):\n    """{text}"""\n    while a:\n        g(name)\n    return a\n'
    codebase = PythonCodebase.from_texts({"m.py": source})
    found = lacking_parts(codebase, {"m.py": frozenset(range(1, 9))})
    assert any(each.is_essential for each in found) is is_essential


def test_the_last_side_of_a_range_is_a_part() -> None:
    code = "def f(a):\n    if 0 <= a.b <= 9: return a\n"
    assert lesser(code, " side") == ["if 0 <= a.b: return a"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("class A:\n    def f(self, a):\n        self.f(a.b)\n", ["(None if ONCE else self.f(a.b))"]),
        ("def f(a):\n    return [f(b) for b in a]\n", ["return [(b) for b in a]"]),
        ("def f(a, b):\n    return g(f(a.x, b))\n", ["return g((a.x))", "return g(((a.x) if ONCE else f(a.x, b)))"]),
        ("def f(a):\n    yield from f(*a)\n", ["yield from ()", "yield from (() if ONCE else f(*a))"]),
        ("def f(a):\n    for x in f(a): g(x)\n", ["for x in (): g(x)", "for x in (() if ONCE else f(a)): g(x)"]),
        (
            "def f(a):\n    def g(b):\n        return g()\n    return g(a)\n",
            ["return None", "return (None if ONCE else g())"],
        ),
        ("@cached\ndef f(a):\n    return f(a)\n", []),
        ("async def f(a):\n    return await f(a)\n", []),
        ("class A:\n    def f(self, a):\n        return f(a) + a.f(a) + super().f(a)\n", []),
    ],
)
def test_calls_of_the_function_itself_are_parts(code: str, expected: list[str]) -> None:
    names = {what for _, what in parts(code) if re.search(r": (?:all of )?[fg]\b", what)}
    found = {line.replace(ONCE, "ONCE") for name in names for line in lesser(code, name) if "pass" not in line}
    assert found == set(expected)


def test_only_the_first_of_two_levels_is_done() -> None:
    code = "def f(a):\n    return a + f(a - 1) if a else 0\n"
    (text,) = (text for (_, what), text in parts(code).items() if "but once" in what)
    space: dict[str, Callable[[int], int]] = {}
    exec(text, space)
    assert space["f"](5) == 5 + (4 + 3)


def test_each_of_several_functions_returns_its_argument() -> None:
    code = (
        "class A:\n    def f(self, x):\n        'F.'\n        return x + 1\n    def g(self, x: int) -> str:\n"
        "        return str(x)\n    def h(self, x):\n        self.x = x\n    def i(self):\n        return 1\n"
        "    def __eq__(self, x):\n        return x.a\n    def j(self, x):\n        yield x\n"
    )
    found = {key: text for key, text in parts(code).items() if key[1] == "all but x"}
    assert found == {("m.py::A.f", "all but x"): code.replace("return x + 1", "return x\n        return x + 1")}
    assert not lesser("def f(x):\n    x()\n    return x + 1\n", "all but")


def test_kinds_and_functions_take_turns() -> None:
    code = "".join(
        f"def f{n}(a, mode=1, kind=2):\n    'Do it by kind.'\n    a = g(a, mode=mode, kind=kind, x=1)\n"
        "    for x in a:\n        b(x)\n    return a or x\n" for n in range(2)
    )  # fmt: skip
    found = list(parts(code))[:8]
    assert [re.sub(r"^line \d+:? ?", "", what) for _, what in found] == [
        "kind", "kind", "", "all rounds but one", "all but a", "a", "", "mode"
    ]  # fmt: skip
    assert Counter(symbol for symbol, _ in found[:6]) == {"m.py::f0": 3, "m.py::f1": 3}


def test_an_argument_that_may_be_the_default_is_no_better_than_a_statement() -> None:
    code = "def f(a, b):\n    g(1, c=1)\n    h(2, d=2)\n    return i(a, b=b)\n"
    found = [what for _, what in parts(code)]
    assert (found[0], sorted(found[4:])) == ("line 4: b", ["line 2: c", "line 3: d"])


def test_parts_of_one_line_come_late() -> None:
    code = "def f(a, b):\n" + "".join(f"    if a or b: g({n})\n" for n in range(6))
    lines = [what.partition(":")[0] for _, what in parts(code) if ":" in what]
    assert len({*lines[:6]}) == 6


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    'Give it.'\n    log.debug(x)\n    return x\n\n\ndef g():\n    return 1\n",
        "class A:\n    def f(this, x):\n        y = f(x)\n        return [y]\n",
        "def f(x):\n    from m import f\n    return [f(x)]\n",
    ],
    ids=["returns_it", "function_of_the_file", "imported"],
)
def test_what_does_the_same_is_no_part(code: str) -> None:
    assert not {what for _, what in parts(code) if "all " in what or what.endswith((": f", "once"))}


def test_long_chains_of_conditions_have_no_parts() -> None:
    chain = "".join(f"    elif x == {i}:\n        y = 1\n" for i in range(1200))
    found = parts(f"def f(x):\n    if x:\n        return 1\n{chain}\n\ndef g(x):\n    return [x]\n", last=9999)
    assert {symbol for symbol, _ in found} == {"m.py::g"}


def test_a_result_stays_apart_from_the_word_before_it() -> None:
    found = parts("def f(x):\n    x = g(x)\n    return'a' in x\n")
    assert found["m.py::f", "line 3: all but True"].endswith("return True\n")


def test_rounds_that_only_write_into_a_log_are_no_parts() -> None:
    found = parts("def f(x):\n    for each in x:\n        if each:\n            log.info(each)\n    return len(x)\n")
    assert found.keys() == {("m.py::f", "line 5")}


BESIDE = """def fifo_cache(size):
    'Docs.'
    return cached(Fifo, size)


def lru_cache(size):
    cache = Lru(size)
    return cached(cache)


"""


def shortcuts(code: str, *lines: int) -> dict[str, str]:
    """What goes to the text of the file without it, for lesser bodies of the functions of some lines."""
    codebase = PythonCodebase.from_texts({"m.py": code})
    source = codebase.modules["m.py"].source
    found = function_shortcuts(codebase, {"m.py": frozenset(lines), "gone.txt": frozenset([1])})
    return {
        f"{each.symbol}, {each.what}{'!' * each.is_essential}": (
            source[: each.start] + each.replacement + source[each.end :]
        ).decode()
        for each in found
    }


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (BESIDE, ""),  # trivial programs call it
        (BESIDE + "def fifo_caches(a):\n    pass\n", "    cache = Lru(size)\n    return cached(cache)\n"),
        (BESIDE.replace("def", "@property\ndef"), "    cache = Lru(size)\n    return cached(cache)\n"),
        (BESIDE.replace("def fifo", "@property\ndef fifo"), ""),
        (BESIDE.replace("Fifo, size", "lru_cache").replace("def", "@property\ndef"), ""),
        (BESIDE.replace("lru_cache(size)", "lru_cache(n)"), ""),
    ],
    ids=["called", "another_is_called", "decorated", "other_decorator", "calls_it", "other_parameters"],
)
def test_the_body_of_a_similar_function_is_tried(code: str, body: str) -> None:
    found = shortcuts(code, *range(1, 5))
    assert found.keys() == ({"m.py::fifo_cache, all that `lru_cache` does not do!"} if body else set())
    assert all(f"'Docs.'\n{body}\n\n" in text for text in found.values())


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("def f(a):\n    return a.b", ["return None!"]),
        ("def f(a) -> 'list[int]':\n    return a.b", ["return []!"]),
        ("def f(a):\n    if a: return ''\n    return a.b", ["return ''!"]),
        ("def f(a):\n    if a:\n        return\n    a()", ["return None"]),
        ("def f(a):\n    yield a", ["return!"]),
        ("def _f(a): return a.b", ["return None"]),
        ("def f(a):\n    @a\n    def g(): pass\n    return g", ["return None!"]),
        ("def f(a):\n    return 1", []),
        ("def f(a):\n    raise E", []),
        ("def f(a):\n    log.info(a)", []),
        ("def __len__(a):\n    return a.b", []),
    ],
)
def test_each_of_several_functions_returns_a_constant(function: str, expected: list[str]) -> None:
    code = f"{function}\n\n\ndef other(a, *b):\n    return a.c\n"
    found = {name: text for name, text in shortcuts(code, *range(1, 99)).items() if "f, " in name or "len" in name}
    assert [name.partition("all but ")[2].replace("`", "") for name in found] == expected
    assert all(ast.parse(text) for text in found.values())
    assert not shortcuts(code, *range(1, 5))
