"""Details that tests need from removed code: what tests mention and the code supplies."""

from __future__ import annotations

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.language import Python
from excise.types import NeedKind

ACCOUNT = '''
LIMIT = 5000

class Account:
    """Money of one person."""

    kind = "private"

    def __init__(self, owner, start=0):
        self.owner = owner
        self.total = start
        self._log = []

    def book(self, amount, **options):
        """A docstring with the words secret and token."""
        if amount > LIMIT:
            raise OverflowError("amount is above %s" % LIMIT)
        if options.get("silent"):
            return None
        self.total += amount
        return {"amount": amount, "left": 7777}

    def __repr__(self):
        return f"<Account of {self.owner}, {self.total:.2f} left>"

    def code(self):
        return "A-1"
'''


def labels(test: str, source: str = ACCOUNT, removed: tuple[str, ...] = ("bank.py::Account",)) -> dict[str, bool]:
    """Label of each need of the tests of a file, to whether it is the answer."""
    head = "import pytest\nimport bank\nfrom bank import Account\n"
    files = {"bank.py": source, "tests/conftest.py": CONFTEST, "tests/test_bank.py": head + test}
    codebase = PythonCodebase.from_texts(files)
    found = [s for s in codebase.modules["tests/test_bank.py"].symbols if s.name.startswith("test_")]
    tests = ["::".join([s.path, *s.qualname.split(".")]) for s in found]
    needs = Python().find_needs(codebase, removed, tests)
    return {need.label: need.is_answer for need in needs if need.kind is not NeedKind.USED}


CONFTEST = """
import pytest

@pytest.fixture
def account():
    from bank import Account
    return Account("me", start=3)
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("def test_a():\n    assert Account('x').total == 4", {"attribute total"}),
        ("def test_a():\n    assert Account('x')._log == []", {"attribute _log"}),
        ("def test_a():\n    assert Account.kind", {"attribute kind"}),
        ("def test_a():\n    assert getattr(Account('x'), 'total')", {"attribute total"}),
        ("def test_a():\n    assert Account('x', start=4)", {"keyword start"}),
        ("def test_a(account):\n    assert account", {"keyword start"}),
        ("def test_a():\n    Account('x').book(1, silent=True)", {"keyword silent"}),
        ("def test_a():\n    pages.code(page=1)", set()),
        (
            "def test_a():\n    with pytest.raises(OverflowError):\n        Account('x').book(1)",
            {"exception OverflowError", "message amount is above"},
        ),
        (
            "def test_a():\n    with pytest.raises(OverflowError, match='amount is above'):\n        Account().book(1)",
            {"exception OverflowError", "message amount is above"},
        ),
        ("def test_a():\n    with pytest.raises(TypeError):\n        Account()", set()),
        ("def test_a():\n    assert Account('x').book(1)['amount'] == 1", {"key amount"}),
        ("def test_a():\n    assert Account('x').book(1) == {'amount': 1}", {"key amount"}),
        ("def test_a():\n    assert Account('x').book(1) == 7777", set()),
        (
            "def test_a():\n    assert repr(Account('x')) == '<Account of x, 0.00 left>'",
            {"text <Account of", "text left>"},
        ),
        ("def test_a():\n    assert Account('x').code() == 'A-1'", {"text A-1"}),
        ("def test_a():\n    assert Account('x').book('secret token')", set()),
        (
            "class TestA:\n    def setup_method(self):\n        self.a = Account('x')\n"
            "    def check(self):\n        return self.a.total\n    def test_a(self):\n        assert self.check()",
            {"attribute total"},
        ),
        ("class Own(Account):\n    pass\n\ndef test_a():\n    Account('x').book(1, other=True)", set()),
        (
            "def test_a(account):\n    assert 'amount is above' in account.text\n    assert 'left' in account.data",
            {"keyword start", "message amount is above", "key left"},
        ),
        ("CASES = ['silent']\ndef test_a():\n    assert CASES", {"key silent"}),
        ("def other():\n    return Account('x').total\ndef test_a():\n    pass", set()),
    ],
)
def test_a_need_is_what_the_test_mentions_and_the_code_supplies(test: str, expected: set[str]) -> None:
    assert set(labels(test)) == expected


@pytest.mark.parametrize(
    ("written", "wanted", "expected"),
    [
        ("centavo/s", "two centavos", {"text centavo/s"}),
        ("peso/s grande/s", "two pesos grandes", {"text peso/s grande/s"}),
        ("peso/s grande/s", "two pesos", set()),
        ("coin", "two coins", set()),
        ("penny", "two pennyworths", set()),
        ("crown", "two crowns", {"text crown"}),
    ],
)
def test_a_text_is_needed_in_another_form_of_its_words(written: str, wanted: str, expected: set[str]) -> None:
    source = f"def pay(x):\n    y = x\n    z = y\n    return say(z, '{written}')\n"
    assert set(labels(f"def test_a():\n    assert bank.pay(2) == '{wanted}'\n", source, ("bank.py::pay",))) == expected


def test_a_part_of_a_text_comes_with_the_whole() -> None:
    source = (
        "def f(x, y):\n    a = x + 1\n    b = y + 1\n    if a:\n        raise KeyError('no %s in %r' % (a, b))\n"
        "    c = '<a>' + str(a) + '</a>'\n    return f'{a} is not {b}', c, 'say {} twice'.format(a), 'plain text'\n"
    )
    test = (
        "def test_a():\n    with pytest.raises(KeyError, match='no 1 in'):\n        bank.f(0, 1)\n"
        "    assert bank.f(1, 2) == ('2 is not 3', '<a>2</a>', 'say 2 twice', 'plain text')\n"
    )
    files = {"bank.py": source, "tests/test_bank.py": f"import pytest\nimport bank\n{test}"}
    codebase = PythonCodebase.from_texts(files)
    needs = Python().find_needs(codebase, ("bank.py::f",), ["tests/test_bank.py::test_a"])
    assert {need.word.strip(): need.template for need in needs if need.template} == {
        "no": "no %s in %r", "in": "no %s in %r", "is not": "{a} is not {b}", "<a>": "<a>…</a>",
        "</a>": "<a>…</a>", "say": "say {} twice", "twice": "say {} twice",
    }  # fmt: skip
    assert "plain text" in {need.word for need in needs if not need.template}


@pytest.mark.parametrize(
    "raised",
    [
        "KeyError(f'delay(={x:.3f}) must be > 0.')",
        "KeyError('delay(=' + str(x) + ') must be > 0.')",
        "KeyError('delay(=' + f'{x}' + ') must' + ' be > 0.')",
    ],
)
def test_parts_of_a_message_are_no_messages(raised: str) -> None:
    """But a text in what is filled in may be one."""
    source = (
        f"def f(x):\n    if x > 1:\n        raise {raised.replace('x:', '(x or int(chr(49))):')}\n    return x + 1\n"
    )
    files = {
        "bank.py": source,
        "tests/test_bank.py": "import bank, pytest\ndef test_a():\n"
        "    with pytest.raises(KeyError, match='must be'):\n        bank.f(0)\n",
    }
    codebase = PythonCodebase.from_texts(files)
    needs = Python().find_needs(codebase, ("bank.py::f",), ["tests/test_bank.py::test_a"])
    assert len({need.template for need in needs if need.kind is NeedKind.MESSAGE}) == 1


@pytest.mark.parametrize(("expected", "is_told"), [("<li1>3</li>", True), ("<li1>2 3</li>", True), ("none", False)])
def test_a_text_whose_parts_are_those_of_a_longer_one_is_told_too(expected: str, is_told: bool) -> None:
    source = (
        "def f(x, y, z):\n    if y:\n        return '<li{0}>{1} {2}</li>'.format(x, y, z)\n    z = z or 0\n"
        "    return '<li{0}>{1}</li>'.format(x, z)\n"
    )
    files = {
        "bank.py": source,
        "tests/test_bank.py": f"import bank\ndef test_a():\n    assert bank.f() == {expected!r}\n",
    }
    needs = Python().find_needs(PythonCodebase.from_texts(files), ("bank.py::f",), ["tests/test_bank.py::test_a"])
    assert ("<li{0}>{1}</li>" in {need.word for need in needs}) is is_told


def test_parts_of_one_text_are_told_in_their_order() -> None:
    source = "def f(x):\n    raise KeyError(f'zone {x} and area {x}')\n"
    test = "def test_a():\n    with pytest.raises(KeyError, match='zone 1 and area 1'):\n        bank.f(1)\n"
    codebase = PythonCodebase.from_texts(
        {"bank.py": source, "tests/test_bank.py": f"import pytest\nimport bank\n{test}"}
    )
    needs = Python().find_needs(codebase, ("bank.py::f",), ["tests/test_bank.py::test_a"])
    assert [need.word.strip() for need in needs if need.kind is NeedKind.MESSAGE] == ["zone", "and area"]


def test_placeholders_show_names_conversions_and_formats_but_no_code() -> None:
    source = (
        "def f(x, y):\n    if x.lost:\n        pass\n"
        "    return f'<{x.kind!r} at 0x{id(x):x}, width {y:>{x.w}}, {y + 1} more>', '{0.real:.2f} of {\"a\": 1}'\n"
    )
    test = "def test_a():\n    assert bank.f(x, 1) == (\"<'k' at 0x1f, width 1, 2 more>\", '1.00 of {\"a\": 1}')\n"
    codebase = PythonCodebase.from_texts({"bank.py": source, "tests/test_bank.py": f"import bank\n{test}"})
    needs = Python().find_needs(codebase, ("bank.py::f",), ["tests/test_bank.py::test_a"])
    assert {need.template for need in needs if need.template} == {
        "<{x.kind!r} at 0x{…:x}, width {y}, … more>", "{0.real:.2f} of …"
    }  # fmt: skip


def test_a_format_without_words_is_a_need_where_a_test_shows_a_text_of_its_form() -> None:
    source = (
        "def f(x, y, when):\n    a = f'{x}-{y}'\n    b = f'{x}: {y!r}'\n    c = when.strftime('%Y/%m')\n"
        "    d = f'{x}'\n    return a, b, c, d\n\n\ndef small(x, y):\n    return f'{x}/{y}'\n"
    )
    test = "def test_a():\n    assert bank.f(1, 2, day) == ('1', 'a\\nk: 2', '2020/01')\n"
    codebase = PythonCodebase.from_texts({"bank.py": source, "tests/test_bank.py": f"import bank\n{test}"})
    needs = Python().find_needs(codebase, ("bank.py::f", "bank.py::small"), ["tests/test_bank.py::test_a"])
    assert {need.label for need in needs} >= {"text {x}: {y!r}", "text %Y/%m"}
    assert not {need.label for need in needs} & {"text {x}-{y}", "text {x}", "text {x}/{y}"}


def test_what_stands_around_a_value_is_a_need_where_a_test_shows_it() -> None:
    source = "def line(p):\n    text = f'{p.level} of {p.place}'\n    text += f'[{p.rule}] '\n    text += f'<{p.x}>'\n"
    source += "    return text\n"
    found = labels("def test_a():\n    assert bank.line(1) == 'high of 2:3 [spaces] x'\n", source, ("bank.py::line",))
    assert "text [{p.rule}] " in found
    assert "text <{p.x}>" not in found


def test_few_texts_of_tests_are_told_whole_and_the_parts_of_the_others() -> None:
    source = "def f(x, y):\n    a = 'alpha beta ' + x\n    b = ' - gamma delta ' + y\n    c = a + b\n    return c\n"
    tests = "".join(
        f"def test_{n}():\n    assert bank.f('{n}', '{n}') == 'alpha beta {n} - gamma delta {n}'\n\n\n"
        for n in range(9)
    )
    files = {"bank.py": source, "tests/test_bank.py": f"import bank\n\n\n{tests}"}
    names = [f"tests/test_bank.py::test_{n}" for n in range(9)]
    needs = Python().find_needs(PythonCodebase.from_texts(files), ("bank.py::f",), names)
    whole = [need for need in needs if need.word.startswith("alpha beta ") and "gamma" in need.word]
    assert len(whole) == 6
    parts = {need.word: need.tests for need in needs if need not in whole}
    assert {"alpha beta", "- gamma delta"} <= parts.keys()
    assert set(parts["alpha beta"]) == set(names) - {test for need in whole for test in need.tests}


@pytest.mark.parametrize("call", ["re.match(WANTED, bank.f(''))", "case.assertRegex(bank.f(''), WANTED)"])
def test_regular_expressions_of_tests_give_the_texts_that_they_stand_for(call: str) -> None:
    source = "def f(x):\n    a = '<Bank names=[], '\n    b = 'open=0'\n    c = ' at [ab]>'\n    return a + b + c\n"
    wanted = r"r'<Bank names=\[\], open=0 at .*>'"
    files = {
        "bank.py": source,
        "tests/test_bank.py": f"import bank\ndef test_a():\n    {call.replace('WANTED', wanted)}\n",
    }
    needs = Python().find_needs(PythonCodebase.from_texts(files), ("bank.py::f",), ["tests/test_bank.py::test_a"])
    assert [need.label for need in needs] == ["text <Bank names=[], open=0 at"]


def test_a_single_character_is_a_need_unless_it_is_common() -> None:
    source = "def box(text):\n    edge, inner = '\u2551', ','\n    return edge + inner + text + edge\n"
    test = "def test_a():\n    assert bank.box('a') == '\u2551,a\u2551'"
    assert set(labels(test, source, ("bank.py::box",))) == {"text \u2551"}


def test_names_that_nothing_but_the_removed_code_uses() -> None:
    source = (
        "TABLE = {'a': 1}\nSHARED = 2\nOFFERED = 3\nOWN = 4\n\n\n"
        "def f(x):\n    return TABLE[x] + SHARED + OFFERED\n\n\n"
        "def g(x):\n    return SHARED + OWN\n"
    )
    files = {"bank.py": source, "other.py": "from bank import OFFERED\n", "tests/test_bank.py": "import bank\n"}
    codebase = PythonCodebase.from_texts(files)
    found = Python().find_needs(codebase, ["bank.py::f"], ["tests/test_bank.py::test_a"])
    assert {need.label: need.tests for need in found} == {"used TABLE": ("tests/test_bank.py::test_a",)}
    assert {need.word for need in Python().find_needs(codebase, ["bank.py"], ["tests/test_bank.py::test_a"])} == set()


def test_a_constant_that_is_all_that_a_function_returns_is_the_answer() -> None:
    found = labels("def test_a():\n    assert Account('x').code() == 'A-1'\n    assert Account('x').total")
    assert found == {"text A-1": True, "attribute total": False}


def test_names_and_numbers_of_a_removed_module_are_needs() -> None:
    test = "def test_a():\n    assert bank.LIMIT == 5000"
    assert set(labels(test, removed=("bank.py",))) == {"name LIMIT", "number 5000"}


def test_a_number_that_an_attribute_gets_is_told_with_its_name() -> None:
    lines = ["class Box:", "    def __init__(self):", *(f"        self.{n}" for n in ("a = 25", "b = 37", "c = 37"))]
    test = "import bank\ndef test_a():\n    assert bank.Box().a == 25 and bank.Box().c == 37\n"
    codebase = PythonCodebase.from_texts({"bank.py": "\n".join(lines), "tests/test_bank.py": test})
    needs = Python().find_needs(codebase, ("bank.py::Box.__init__",), ("tests/test_bank.py::test_a",))
    found = {need.word: need.template for need in needs if need.kind is NeedKind.NUMBER}
    assert found == {"25": "a = 25", "37": ""}


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("return sorted(x.keys())", "sorted(…)"),
        ("x.sort(key=len, reverse=True)", "sorted(…, key=len, reverse=True)"),
        ("return sorted(x, key=lambda n: -n)", "sorted(…, key=…)"),
    ],
)
def test_how_code_sorts_is_a_need(code: str, word: str) -> None:
    test = "def test_a():\n    assert bank.names({}) == []\n"
    assert f"order {word}" in labels(test, f"def names(x):\n    {code}\n", ("bank.py::names",))


@pytest.mark.parametrize(
    ("body", "check", "is_need"),
    [
        ("if x:\n        return 1", "assert bank.find(0) is None", True),
        ("if x:\n        return 1\n    return None", "found = bank.find(0)\n    assert found is None", True),
        ("if x:\n        return 1", "t.assertIsNone(bank.find(0))", True),
        ("if x:\n        return 1\n    raise KeyError(x)", "assert bank.find(0) is None", False),
        ("if x:\n        return 1\n    else:\n        return 2", "assert bank.find(0) is None", False),
        ("return None", "assert bank.find(0) is None", False),
        ("if x:\n        return 1", "assert bank.find(0) is not None", False),
        ("if x:\n        return 1", "assert bank.other(0) is None", False),
        ("if x:\n        yield 1", "assert bank.find(0) is None", False),
    ],
)
def test_none_in_some_cases_is_a_need_if_a_test_asks_for_it(body: str, check: str, *, is_need: bool) -> None:
    found = labels(f"def test_a():\n    {check}\n", f"def find(x):\n    {body}\n", ("bank.py::find",))
    assert ("result find None" in found) is is_need


@pytest.mark.parametrize(
    ("text", "is_need"),
    [('{"a": 1}', True), ("{\\n  'a'", True), ("a, b", False)],
)
def test_how_code_writes_values_is_a_need_of_tests_that_look_at_the_layout(text: str, *, is_need: bool) -> None:
    source = "import json\n\ndef show(x):\n    print(json.dumps(x, indent=2, default=str))\n"
    test = f"def test_a():\n    bank.show(1)\n    assert {text!r} in out\n".replace("\\\\n", "\\n")
    assert ("format dumps(…, indent=2)" in labels(test, source, ("bank.py::show",))) is is_need


def test_none_for_an_item_is_a_need() -> None:
    source = "class Bank:\n    def __getitem__(self, key):\n        for each in self.all:\n            return each\n"
    found = labels("def test_a():\n    assert bank.Bank()['a'] is None\n", source, ("bank.py::Bank.__getitem__",))
    assert "result __getitem__ None" in found


def test_a_long_text_is_an_answer() -> None:
    text = "word and " * 30
    found = labels(
        f"def test_a():\n    assert bank.f() == {text!r}",
        f"def f(x=1):\n    print({text!r})\n    return x\n",
        ("bank.py::f",),
    )
    assert list(found.values()) == [True]


RAISING = """
def check(low, high):
    assert low <= high, "low is above high"
    if low == high:
        raise ValueError("a range must have its ends apart")


def main(words):
    try:
        run(words)
    except KeyboardInterrupt:
        sys.exit(-1)
    except (OSError, ValueError):
        raise SystemExit(3)
    sys.exit(0)


def table(rows):
    parts = ["rows={}".format(len(rows)), "widest={}".format(max(rows))]
    return "<Table {}>".format(", ".join(parts))
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (
            "    with pytest.raises(AssertionError):\n        bank.check(2, 1)",
            {"exception AssertionError", "message low is above high"},
        ),
        (
            "    with pytest.raises(AssertionError, match='above'):\n        bank.check(2, 1)",
            {"exception AssertionError", "message above"},
        ),
        (
            "    with pytest.raises(ValueError, match=r'(?=.*\\bends\\b)(?=.*\\brange\\b)'):\n        bank.check(1, 1)",
            {"exception ValueError", "message a range must have its ends apart"},
        ),
        (
            "    with pytest.raises(ValueError, match='ran.e must'):\n        bank.check(1, 1)",
            {"exception ValueError", "message a range must have its ends apart"},
        ),
        (
            "    assert bank.table([3, 9]) == '<Table rows=2, widest=9>'",
            {"text <Table rows=2, widest=9>"},
        ),
        ("    assert 'rows=' in bank.table([3, 9])", {"text rows="}),
        (
            "    with pytest.raises(SystemExit) as error:\n        bank.main([])\n    assert error.value.code == -1",
            {
                "exception SystemExit(-1) for KeyboardInterrupt",
                "exception SystemExit(0)",
                "exception SystemExit(3) for OSError",
                "exception SystemExit(3) for ValueError",
            },
        ),
    ],
)
def test_what_is_raised_and_whole_texts(test: str, expected: set[str]) -> None:
    assert (
        set(labels(f"def test_a():\n{test}", RAISING, ("bank.py::check", "bank.py::main", "bank.py::table")))
        == expected
    )


def test_a_text_keeps_its_blanks() -> None:
    source = "def branch(name):\n    mark = '|-- '\n    name = name.strip()\n    return mark + name\n"
    codebase = PythonCodebase.from_texts(
        {
            "bank.py": source,
            "tests/test_bank.py": "import bank\ndef test_a():\n    assert bank.branch('a') == '|-- a'\n",
        }
    )
    (need,) = Python().find_needs(codebase, ["bank.py::branch"], ["tests/test_bank.py::test_a"])
    assert (need.word, need.template) == ("|--", "|-- ")


@pytest.mark.parametrize(
    ("body", "check", "is_need"),
    [
        ("if x:\n        return True\n    return False", "assert not bank.find(0)", True),
        ("if x:\n        return True\n    return False", "t.assertFalse(bank.find(0))", True),
        ("if x:\n        return True\n    return False", "assert bank.find(1) is True", True),
        ("if x:\n        return True\n    return False", "found = bank.find(1)\n    assert found", True),
        ("if x:\n        return True\n    return False", "bank.find(1)", False),
        ("if x:\n        return True\n    return 2", "assert bank.find(1)", False),
        ("return x > 1", "assert bank.find(1)", False),
    ],
)
def test_truth_is_a_need_if_a_test_asks_for_it(body: str, check: str, *, is_need: bool) -> None:
    found = labels(f"def test_a():\n    {check}\n", f"def find(x):\n    {body}\n", ("bank.py::find",))
    assert ("result find bool" in found) is is_need


@pytest.mark.parametrize(
    ("handler", "word"),
    [
        ("except OSError:\n        return []", "OSError: []"),
        ("except (KeyError, os.error) as e:\n        log(e)\n        return", "(KeyError, os.error): None"),
        ("except OSError:\n        return fallback(x)", ""),
        ("except OSError:\n        return [1]", ""),
        ("except OSError:\n        raise", ""),
        ("except:\n        return 1", ""),
    ],
)
def test_handled_exceptions_that_give_a_constant_are_needs(handler: str, word: str) -> None:
    source = f"def names(x):\n    try:\n        return os.listdir(x)\n    {handler}\n"
    found = labels("def test_a():\n    assert bank.names('') == []\n", source, ("bank.py::names",))
    assert [label.partition(" ")[2] for label in found if label.startswith("handled ")] == ([word] if word else [])


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('"password" in x or "passwd" in x or "pwd" in x', {"text passwd", "text password", "text pwd"}),
        ('x in ("password", "pwd")', {"text password", "text pwd"}),
        ('"password" in x and "pwd" in x', {"text password"}),
        ('x in ("secret", "pwd")', set()),
        ('x == "password" or x.startswith("pwd:")', {"text password", "text pwd:"}),
    ],
)
def test_texts_beside_one_that_tests_need_are_needed(condition: str, expected: set[str]) -> None:
    source = f"def hide(x):\n    if {condition}:\n        return 1\n    return x\n"
    test = "def test_hide():\n    assert bank.hide('password')\n"
    found = labels(test, source, removed=("bank.py::hide",))
    assert {label for label in found if label.startswith("text ")} == expected


def test_a_table_that_only_removed_code_reads_is_told_though_the_file_sorts_it() -> None:
    source = (
        "table = [['b', 1], ['a', 2]]\ntable.sort()\nother = {}\nother['a'] = 1\nused = []\nused.append(1)\n"
        "app = make()\nhooks = {}\n\n\n"
        "def find(x):\n    return table, other, used, x, app, hooks\n\n\ndef all_used():\n    return used\n\n\n"
        "app.run()\nhooks['a']()\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source, "test_m.py": "import m\n\n\ndef test_a():\n    m.find(1)\n"})
    needs = Python().find_needs(codebase, ("m.py::find",), ["test_m.py::test_a"])
    assert {need.word for need in needs if need.kind is NeedKind.USED} == {"table", "other"}


def test_the_usual_encoding_is_no_text() -> None:
    source = "def read(x):\n    return x.decode('UTF-8') or 'none at all'\n"
    assert labels("def test_a():\n    assert bank.read('UTF-8') == 'none at all'", source, ("bank.py::read",)) == {
        "text none at all": False
    }


def test_attributes_of_what_tests_make_of_keywords_are_needs() -> None:
    source = "def bump(args):\n    return args.number + 1 if args.part == 'major' else args.number\n"
    test = "def test_bump():\n    assert bank.bump({}(part='major', number=3, other=1)) == 4\n"
    found = labels(test.format("Namespace"), source + "def add(number):\n    return number\n", ("bank.py::bump",))
    assert {"attribute part", "attribute number"} == {label for label in found if label.startswith("attribute")}
    assert not any(label.startswith("attribute") for label in labels(test.format("Args"), source, ("bank.py::bump",)))
