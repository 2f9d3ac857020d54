"""What a problem statement tells of removed code: the data of classes and functions, and the private methods of a class
that its base class calls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.deleters.planned_deletions import REPO, delete_symbol

from excise.deleters.python.function_data import function_data
from excise.deleters.statement.details import lines_by_symbol, locate, place_of
from excise.deleters.statement.problem_statement import write_statement
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.language import Python
from excise.types import GivenBy, Need, NeedKind

FRAMES = '''
class Frame:
    """A frame."""

    kind = 0
    flags = ()

    def __repr__(self):
        return self._body()

    def _body(self):
        return ""

    def _other(self):
        return 1


class Ping(Frame):
    """Asks whether the other side is there, and how long it takes."""

    #: The byte that tells its type.
    kind = 0x02

    flags = (1, 2)
    """Those that it may have."""

    # noqa: E501
    _seen = {}
    order = [n for n in range(3)]

    def __init__(self, a, b, c):
        self.a, self.b, self.c = a, b, c

    def _body(self):
        return f"left={self.a}, right={self.b}, both={self.c}"

    def _helper(self):
        return 2
'''
TEST = "from m import Ping\n\n\ndef test_ping():\n    assert repr(Ping(1, 2, 3)) == 'left=1, right=2, both=3'\n"


def test_a_removed_class_is_told_with_its_data_and_what_its_base_class_calls() -> None:
    codebase, tests = PythonCodebase.from_texts({"m.py": FRAMES, "test_m.py": TEST}), ("test_m.py::test_ping",)
    needs = Python().find_needs(codebase, ["m.py::Ping"], tests)
    deletion = delete_symbol(codebase, "m.py::Ping", tests)
    text = write_statement(codebase, deletion, REPO, tests, needs=needs).text
    assert "```python\nkind = 0x02\n```\n(in `Ping`)\n> The byte that tells its type." in text
    assert "```python\nflags = (1, 2)\n```\n(in `Ping`)\n> Those that it may have." in text
    assert "the name `Ping.order`\n" in text
    assert "(in `Ping`)\nImplements or overrides `Frame._body`.\n\n- Texts that it reads or writes: " in text
    assert "`'left=1, right=2, both=3'`" in text
    assert "_seen" not in text
    assert "_helper" not in text
    assert "noqa" not in text


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("    table = 'TRWAGMYFPDXBNJZSQVHLCKE'\n    a = table[x % 23]\n    return a\n", "`'TRWAGMYFPDXBNJZSQVHLCKE'`"),
        ("    a = {'X': 0, 'Y': 1}\n    b = (7, 9, -10)\n    return a, b, x\n", "`{'X': 0, 'Y': 1}`, `(7, 9, -10)`"),
        ("    a = [(1, 'a'), (2, 'b'), (3, 'c')]\n    b = x\n    return a, b\n", "`[(1, 'a'), (2, 'b'), (3, 'c')]`"),
        ("    a = re.compile('[ABCDEFGHIJ]')\n    b = x\n    return a.match(b)\n", ""),
        ("    a = (0, 1, 2)\n    b = {'X': x, 'Y': 1}\n    return a, b, 'a text of words'\n", ""),
        ("    if x:\n        raise ValueError('TRWAGMYFPDXBNJZSQVHLCKE')\n    a = 1\n    return a\n", ""),
        ("    return [7, 9, 10, 5][x]\n", ""),
        ("    a = typing.cast('PointKind12', x)\n    b = 'MULTIPOLYGON', 'PointType'\n    return a, b\n", ""),
        (
            "    a = 'ACDEFHJKLMNPRTUVWXY'\n    b = 'ABCDEFGH'\n    return a[x], b[x]\n",
            "`'ACDEFHJKLMNPRTUVWXY'`, `'ABCDEFGH'`",
        ),
        (
            "    a = x.strip().lower() not in ('', 'no', 'off')\n    b = str(x) in ('a', 'b', 'c')\n    return a, b\n",
            "`….strip().lower() not in ('', 'no', 'off')`, `('a', 'b', 'c')`",
        ),
        ("    if x:\n        a = 1\n        b = a\n    return {'a': 1, 'b': 2}\n", ""),
    ],
)
def test_data_in_functions_is_told(body: str, told: str) -> None:
    source = f'import re\n\n\ndef letter(x):\n    """The letter that proves it."""\n{body}'
    test = "from m import letter\n\n\ndef test_letter():\n    assert letter(1) == 2\n"
    codebase, tests = PythonCodebase.from_texts({"m.py": source, "test_m.py": test}), ("test_m.py::test_letter",)
    text = write_statement(codebase, delete_symbol(codebase, "m.py::letter", tests), REPO, tests).text
    lines = [line for line in text.splitlines() if line.startswith("- Data that it uses")]
    assert lines == ([f"- Data that it uses: {told}."] if told else [])


ERRORS = '''
def parse(text):
    """Read a number. Raises `ValueError` for anything else."""
    if not text:
        raise ValueError("nothing")
    return _checked(float(text))


def ratio(left, right):
    """Divide one number by another."""
    if right == 0:
        raise ValueError(right)
    return _limited(left / right)


def _checked(number):
    return number


def _limited(number):
    if number > 9:
        raise OverflowError
    return number
'''
ERROR_TESTS = """
from dataclasses import replace

import pytest
from m import parse, ratio


def test_errors():
    with pytest.raises(ValueError):
        parse("")
    with pytest.raises(ValueError):
        ratio(1, 0)
    with pytest.raises(OverflowError):
        ratio(99, 1)
"""


def test_an_exception_is_told_of_each_function_that_raises_it() -> None:
    """That one function's docstring names it says nothing of another. Messages tell when it is raised."""
    codebase, tests = PythonCodebase.from_texts({"m.py": ERRORS, "test_m.py": ERROR_TESTS}), ("test_m.py::test_errors",)
    names = [f"m.py::{name}" for name in ("parse", "ratio", "_checked", "_limited")]
    needs = Python().find_needs(codebase, names, tests)
    deletion = replace(delete_symbol(codebase, names[0], tests), removed=tuple(names))
    text = write_statement(codebase, deletion, REPO, tests, needs=needs).text
    parse, ratio = text.split("def ratio")
    assert "- Raises `ValueError`; the message contains `'nothing'`." in parse.rpartition("def parse")[2]
    assert (
        ratio.index("- Raises `ValueError`.") < ratio.index("def _limited") < ratio.index("- Raises `OverflowError`.")
    )


def test_what_a_helper_needs_stands_below_the_function_that_calls_it() -> None:
    codebase = PythonCodebase.from_texts({"m.py": ERRORS})
    shown = [codebase.symbols()[f"m.py::{name}"] for name in ("parse", "ratio")]
    assert place_of("m.py::_limited", shown, codebase) == "m.py::ratio"
    assert place_of("m.py::_checked", shown, codebase) == "m.py::parse"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("    x = 1\n    result = {'X': 7, 'Y': 9}\n    return result\n", []),
        ("    if x:\n        result = [7, 8, 9]\n    else:\n        result = [4, 5, 6]\n    return result\n", []),
        ("    result = [7, 8, 9]\n    result.append(x)\n    return result\n", ["[7, 8, 9]"]),
        ("    result = [7, 8, 9]\n\n    def inner():\n        return result\n\n    return inner\n", ["[7, 8, 9]"]),
        ("    result = [7, 8, 9]\n    x = 1\n    return result, x\n", ["[7, 8, 9]"]),
        ("    x = 1\n    y = 2\n    yield [7, 8, 9]\n", []),
        ("    x = 1\n    y = 2\n    yield from (7, 8, 9)\n", []),
        ("    x = [7, 8, 9]\n    y = 2\n    yield x\n", []),
        ("    a = [7, 8, 9]\n    b = x\n    return a[b] + x" + " + x" * 1200 + "\n", ["[7, 8, 9]"]),
    ],
)
def test_answers_are_no_data(body: str, told: list[str]) -> None:
    codebase = PythonCodebase.from_texts({"m.py": f"def letter(x):\n{body}"})
    assert list(function_data(codebase.modules["m.py"], codebase.symbols()["m.py::letter"])) == told


@pytest.mark.parametrize(("text", "is_told"), [("Give the names.", False), ("Give the names in order.", True)])
def test_how_code_sorts_is_told_where_nothing_speaks_of_order(text: str, *, is_told: bool) -> None:
    codebase = PythonCodebase.from_texts({"m.py": "def f(x):\n    return sorted(x)\n"})
    need = Need(kind=NeedKind.ORDER, word="sorted(…)", owner="m.py::f", tests=("t",))
    found = locate([need], text, "", codebase)
    lines = lines_by_symbol(found, list(codebase.symbols().values()), codebase)
    assert lines == ({} if is_told else {"m.py::f": ["- Sorts what it returns or goes through: `sorted(…)`."]})


@pytest.mark.parametrize(
    ("kind", "word", "docstring", "line"),
    [
        (
            NeedKind.HANDLED,
            "OSError: []",
            "Names.",
            "- Exceptions inside it, and what it returns then: `OSError: []`.",
        ),
        (NeedKind.HANDLED, "OSError: []", "Names; none after an OSError.", ""),
        (
            NeedKind.CHAINED,
            "except OSError: raise E(…) from None",
            "Raises E for an OSError.",
            "- How exceptions are chained: `except OSError: raise E(…) from None`.",
        ),
        (NeedKind.RESULT, "f bool", "Waits.", "- Returns `True` or `False`."),
        (NeedKind.RESULT, "f bool", "Tell whether it is open.", ""),
    ],
)
def test_results_are_told_unless_the_docstring_does(kind: NeedKind, word: str, docstring: str, line: str) -> None:
    source = f'def f(x):\n    """{docstring}"""\n    return g(x)\n'
    codebase = PythonCodebase.from_texts({"m.py": source, "t.py": "def t(): f(1)\n"})
    need = Need(kind=kind, word=word, owner="m.py::f", tests=("t",))
    text = write_statement(
        codebase, delete_symbol(codebase, "m.py::f", ("t.py::t",)), REPO, ("t.py::t",), needs=[need]
    ).text
    assert (line in text) if line else ("Returns" not in text)
    (found,) = locate([replace(need, given=None)], text, "", codebase)
    assert found.given is GivenBy.STATEMENT, "what the statement tells is found in it"


@pytest.mark.parametrize(
    ("exception", "line"),
    [
        ("emit of Error", "- Calls `emit` with an `Error`; the message contains `'is shut'`."),
        ("return of RangeError", "- Returns a `RangeError`; the message contains `'is shut'`."),
        ("new of Error", "- Makes an `Error`; the message contains `'is shut'`."),
    ],
)
def test_an_error_that_is_passed_on_is_not_raised(exception: str, line: str) -> None:
    codebase = PythonCodebase.from_texts({"m.py": "def shut():\n    emit(Error('it is shut'))\n"})
    need = Need(kind=NeedKind.MESSAGE, word="is shut", owner="m.py::shut", tests=(), exception=exception)
    kind = Need(kind=NeedKind.EXCEPTION, word=line.split("`")[-4], owner="m.py::shut", tests=(), exception=exception)
    needs = locate([need, kind], "", "", codebase)
    assert lines_by_symbol(needs, [codebase.symbols()["m.py::shut"]], codebase) == {"m.py::shut": [line]}


def test_options_of_a_command_line_are_told_without_their_help() -> None:
    source = (
        "def main(argv):\n    parser = ArgumentParser()\n"
        "    parser.add_argument('-f', '--filter', nargs=2, type=float, action='append', help='between two')\n"
        "    parser.add_argument('--exclude', default=[], help='none of these')\n"
        "    parser.add_argument('files', help='paths')\n"
        "    parser.add_argument(*OTHERS, default=1)\n"
        "    parser.add_argument('--y', default=secret(1), type=lambda s: s, nargs='*')\n"
        "    return parser.parse_args(argv)\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source})
    assert list(function_data(codebase.modules["m.py"], codebase.symbols()["m.py::main"])) == [
        "add_argument('-f', '--filter', nargs=2, type=float, action='append')",
        "add_argument('--exclude', default=[])",
        "add_argument('--y', nargs='*')",
    ]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return (280.46 + 0.9856474 * x) % 360 + x / 2", ["280.46", "0.9856474"]),
        ("return x * 0.5 + 1.5", []),
        ("return x * 86400 + 3600", []),
        ("return (x * 1103515245 + 12345) % 2147483648", ["1103515245", "12345", "2147483648"]),
        ("return x * 1_000_000", []),
        ("y = 23.4393\n    return x - y", ["23.4393"]),
        ("return 23.4393", []),
        ("return x & 0xFFFFFFFF", ["0xFFFFFFFF"]),
        ("return x.strftime('%Y-%m-%d'), f'{x:%Y-%m-%d}', '%d items' % x, x.replace('%2F', '/')", []),
        ("raise ValueError('%05d' % x)", []),
        (f"return x * 0x{'f' * 5000}", []),
        ("return '{:f} {:f}'.format(x, x)", ["'{:f} {:f}'"]),
        ("return f'{x:.2f}|{x:>10}'", ["'{…:.2f}|{…:>10}'"]),
        ("return f'{x} of {x:05d}'", ["'{…:05d}'"]),
        ("return 'a %.3g b' % x", ["'%.3g'"]),
        ("return '%s %r' % (x, x), f'{x}', 'rate 5% of all', f'{x:{x}}'", []),
    ],
)
def test_numbers_and_their_formats_that_nobody_could_guess_are_told(body: str, told: list[str]) -> None:
    codebase = PythonCodebase.from_texts({"m.py": f"def f(x):\n    {body}\n"})
    assert list(function_data(codebase.modules["m.py"], codebase.symbols()["m.py::f"])) == told


def test_a_table_is_told_with_what_fills_it_and_the_function_that_makes_it() -> None:
    source = (
        "def _reversed(d):\n    'Turn it round.'\n    return {v: k for k, v in d.items()}\n\n\n"
        "CODES = {'b': 'a'}\n\n_NAMES = _reversed(CODES)\n_NAMES['c'] = 'd'\n_NAMES['e'] = 'f'\n\n\n"
        "def find(code):\n    'The name of a code.'\n    return _NAMES[code]\n\n\ndef other():\n    return CODES\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source, "test_m.py": "def test_m():\n    assert 1\n"})
    tests = ("test_m.py::test_m",)
    text = write_statement(codebase, delete_symbol(codebase, "m.py::find", tests), REPO, tests).text
    assert "```python\n_NAMES = _reversed(CODES)\n_NAMES['c'] = 'd'\n_NAMES['e'] = 'f'\n```" in text
    assert "```python\ndef _reversed(d)\n```\n> Turn it round." in text
