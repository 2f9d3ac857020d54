"""Lifted tests: which tests can be divided, and what each form contains."""

from __future__ import annotations

import pytest

from excise.extractors.python.lifting.lifted_tests import lifted

HEAD = """\"\"\"About.\"\"\"
import datetime
import json
import re
import unittest
import pytest
from project import Kind, code, other

LIMIT = 17
TABLE = [("abc", 41), ("d", 42)]
UNUSED = {"answer": 43}


def check_all(value):
    assert value == 44


def prepared():
    return [45]


def naive(value):
    return 991


@pytest.fixture
def given():
    return 46


"""

DIVIDED = {
    "a literal": ("def test_it():\n    assert code(1) == 990", ["code(1)"], ["990"]),
    "a literal on the left": ("def test_it():\n    assert 990 <= code(1) < 991", ["code(1)"], ["990", "991"]),
    "membership": ("def test_it():\n    assert 'ninety' in code(1)", ["code(1)"], ["ninety"]),
    "identity": ("def test_it():\n    assert code(1) is None", ["code(1)"], ["None"]),
    "a truth": ("def test_it():\n    assert not code(1).ready, 'message'", ["code(1).ready"], ["message"]),
    "several": ("def test_it():\n    assert code(1) and code(2) == 992", ["code(1)", "code(2)"], ["992"]),
    "a type": ("def test_it():\n    assert isinstance(code(1), Kind)", ["type(code(1))"], ["Kind"]),
    "a constant of the file": ("def test_it():\n    assert code(1) == LIMIT", ["code(1)"], ["LIMIT", "17"]),
    "the standard library": (
        "def test_it():\n    assert code(1) == datetime.date(1990, 1, 2)", ["code(1)"], ["1990"]),
    "a local value": (
        "def test_it():\n    wanted = [993]\n    assert code(1) == wanted", ["code(1)"], ["993", "wanted"]),
    "an exception": (
        "def test_it():\n    with pytest.raises(KeyError, match='ninety') as caught:\n        code(1)\n"
        "    assert caught.value.args == (994,)\n    caught.match('four')",
        ["code(1)", "caught.value.args"], ["KeyError", "ninety", "994", "four"]),
    "a method": (
        "class TestIt(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(code(1), 995, 'why')\n"
        "        with self.assertRaises(KeyError):\n            code(2)\n"
        "        self.assertRaises(LookupError, code, 3, named=4)\n        self.assertNotIsInstance(code(5), str)",
        ["code(1)", "code(2)", "code(3, named=4)", "type(code(5))"], ["995", "why", "KeyError", "LookupError", "str"]),
    "a table": (
        "@pytest.mark.parametrize('text, wanted', [('a', 996), pytest.param('b', 997, id='ninety')])\n"
        "def test_it(text, wanted):\n    assert code(text) == wanted",
        ["code(text)", "'a'", "'b'"], ["996", "997", "ninety"]),
    "a table of the file": (
        "@pytest.mark.parametrize('text, wanted', TABLE)\ndef test_it(text, wanted):\n    assert code(text) == wanted",
        ["code(text)", "'abc'"], ["41", "42"]),
    "a loop": (
        "def test_it():\n    for text, wanted in [('a', 998), ('b', 999)]:\n        assert code(text) == wanted",
        ["code(text)", "'a'", "'b'"], ["998", "999"]),
    "a loop over expectations alone": (
        "def test_it():\n    output = code(1)\n    for word in 'debug', 'info':\n        assert word.upper() in output",
        ["code(1)", "(None, None)"], ["debug", "info", "upper"]),
    "a loop over rows that are indexed": (
        "def test_it():\n    rows = (('a', [998]), ('b', [999]))\n    for row in rows:\n"
        "        found = code(row[0])\n        assert found == row[1]",
        ["code(row__0)", "'a'", "'b'"], ["998", "999", "row[1]"]),
    "a loop over rows of which one column is expected": (
        "def test_it():\n    for given, wanted in [(other(1), 998), (other(2), 999)]:\n"
        "        assert code(given) == wanted",
        ["code(given)", "other(1)", "other(2)"], ["998", "999"]),
    "a table that comprehensions make": (
        "@pytest.mark.parametrize('text, wanted', [[t, t * 998] for t in 'ab'] + [('c', 999)], ids=['x', 'y', 'z'])\n"
        "def test_it(text, wanted):\n    assert code(text) == wanted",
        ["code(text)", "'ab'", "'c'"], ["998", "999", "t * ", "'x'"]),
    "a search in a text": (
        "def test_it():\n    assert re.match('9.8', code(1))\n    assert not re.search(r'9.9', str(code(2)), re.I)",
        ["see__(1, code(1))", "see__(2, str(code(2)))"], ["9.8", "9.9", "re.I"]),
    "a search with a pattern of the code": (
        "def test_it():\n    assert re.match(code(1), code(2))", ["see__(1, not not re.match(code(1), code(2)))"], []),
    "a condition on each item": (
        "def test_it():\n    assert all(len(x) > 990 for x in code(1) if x)\n"
        "    assert not any(y > LIMIT for y in code(2))",
        ["see__(1, list(code(1)))", "see__(2, list(code(2)))"], ["990", "LIMIT"]),
    "the beginning of a text": (
        "def test_it():\n    assert code(1).text.startswith('nine')", ["see__(1, code(1).text)"], ["nine"]),
    "a docstring": ("def test_it():\n    '''It is 990.'''\n    assert code(1) == 990", ["code(1)"], ["990"]),
    "another function as reference": (
        "def test_it():\n    assert code(1) == naive(990)", ["code(1)"], ["naive", "990", "991"]),
    "a reference that is computed before": (
        "def test_it():\n    part = naive(990)\n    wanted = [part]\n    assert code(1) == wanted",
        ["code(1)"], ["naive", "990", "991", "wanted"]),
    "a reference in a table": (
        "@pytest.mark.parametrize('text, wanted', [('a', other(996)), ('b', other(997))])\n"
        "def test_it(text, wanted):\n    assert code(text) == wanted", ["code(text)", "'a'", "'b'"], ["996", "997"]),
    "an input as reference": (
        "def test_it():\n    given = [1, 2]\n    assert code(given * 2) == given", ["given = [1, 2]"], ["== given"]),
    "mostly references": (
        "def test_it():\n    assert code(1) == 990\n    assert code(2) == other(2)\n    assert code(3) == other(3)",
        ["code(2)", "code(3)"], ["990", "other"]),
    "an object that is written out": (
        "def test_it():\n    it = code(1)\n    assert it == Kind(990)", ["see__(1, it)"], ["990"]),
    "no checks": ("def test_it():\n    code(1)", ["code(1)", "__excise_see__(1, True)"], []),
    "no checks but an error": (
        "def test_it():\n    try:\n        code(1)\n    except KeyError:\n        pass\n    else:\n"
        "        raise AssertionError", ["code(1)", "(1, True)"], []),
    "an error of its own": (
        "def test_it():\n    assert code(1) == 990\n    if not code(2):\n        raise AssertionError('ninety')",
        ["code(1)", "raise AssertionError"], ["990"]),
    "a constant of the class": (
        "class TestIt(unittest.TestCase):\n    LIMITS = [990]\n    _kept = 1\n\n    def test_it(self):\n"
        "        self.assertEqual(self.LIMITS, code(1))", ["code(1)", "_kept"], ["990", "LIMITS"]),
    "a benchmark": ("def test_it(benchmark):\n    benchmark(code, 1)", ["benchmark(code, 1)"], []),
    "a nested function": (
        "def test_it():\n    def inner(value):\n        '''Kept.'''\n        assert value == 990\n    code(inner)\n"
        "    assert code(1) == 991", ["Kept.", "__excise_see__(-1, value)"], ["990", "991"]),
    "a call that must raise": (
        "def test_it():\n    caught = pytest.raises(KeyError, code, 1, named=2)\n"
        "    assert str(caught.value) == 'ninety'\n    pytest.raises(LookupError, code, 3)",
        ["code(1, named=2)", "str(caught.value)", "code(3)"], ["KeyError", "LookupError", "ninety"]),
    "a helper that tells what was raised": (
        "def test_it():\n    assert raises(KeyError, lambda: code(1))", ["code(1)"], ["KeyError"]),
    "a block that must raise in others": (
        "def test_it():\n    with pytest.raises(KeyError), code(1) as it:\n        it.run()",
        ["with code(1) as it", "it.run()"], ["KeyError"]),
    "an assertion that must raise": (
        "def test_it():\n    with pytest.raises(KeyError):\n        assert code(1) == 990", ["code(1)"], ["KeyError"]),
    "checks in a block that must raise": (
        "def test_it():\n    with pytest.raises(KeyError):\n        assert code(1) == 990\n        code(2)",
        ["code(1)", "code(2)"], ["KeyError", "990"]),
    "an identity": ("def test_it():\n    assert code(1) is Kind.mark", ["see__(1, code(1), True)"], ["Kind"]),
    "two names of the project": ("def test_it():\n    assert Kind.mark == LIMIT", ["Kind.mark"], ["LIMIT", "17"]),
    "blocks without an else": (
        "def test_it():\n    try:\n        assert code(1) == 990\n    finally:\n        code(2)",
        ["code(1)", "code(2)"], ["990"]),
    "an assertion that has nothing to do with the code": (
        "def test_it():\n    d = Kind(1)\n    assert other(d) is d or other(d) == 990\n    assert code(d) == 991",
        ["d = Kind(1)", "code(d)"], ["991"]),
    "a helper that checks": (
        "def test_it():\n    assert code(1) == 990\n    for each in code(2):\n        check_all(each)",
        ["code(1)", "in code(2)", ", each)"], ["990", "check_all"]),
    "a helper with expected arguments": (
        "def check_it(value, wanted, more=3):\n    \"\"\"Ninety.\"\"\"\n    found = code(value, more)\n"
        "    assert found == wanted\n    return found\n\n"
        "def test_it():\n    found = check_it(5, wanted=[990])\n    check_it(6, 991)\n    assert found.x == 992",
        ["code(5, 3)", "code(6, 3)", "found.x"], ["990", "991", "992", "Ninety"]),
    "a method that checks": (
        "class TestIt(unittest.TestCase):\n    def check(self, value, wanted):\n"
        "        self.assertEqual(code(value), wanted)\n\n"
        "    def test_it(self):\n        for value in 7, 8:\n            self.check(value, 990)\n",
        ["code(value)", "in (7, 8)"], ["990"]),
    "a helper of a helper": (
        "def check_it(value):\n    with pytest.raises(KeyError):\n        code(value)\n    check_all(value + 1)\n\n"
        "def test_it():\n    check_it(code(1))", ["code(1)", "+ 1"], ["KeyError"]),
    "two values of the code beside another check": (
        "def test_it():\n    assert code(1) == 990\n    assert str(code(2)) == str(code(3))",
        ["str(code(2))", "str(code(3))"], ["990"]),
    "a local input": (
        "def test_it():\n    x = 5\n    assert code(x) == 990", ["code(x)", "x = 5"], ["990"]),
}  # fmt: skip

REFUSED = {
    "hashes": ("def test_it():\n    assert hash(code(1)) == hash(other(1))", "two values of the code"),
    "two values that may depend on the code": (
        "def test_it():\n    assert other(1) == Kind(2)", "two values of the code"),
    "a round trip": (
        "def test_it():\n    it = code(1)\n    assert str(it.copy()) == str(it)", "two values of the code"),
    "a helper that calls the code": (
        "def make():\n    return code(1)\n\ndef test_it():\n    assert code(2) == make()", "two values of the code"),
    "a fixture of the code": (
        "@pytest.fixture\ndef made():\n    return code(1)\n\ndef test_it(made):\n    assert made == Kind(code(2))",
        "two values of the code"),
    "two values of the code by identity": ("def test_it():\n    assert code(1) is other(1)", "two values of the code"),
    "a reference that is used elsewhere": (
        "def test_it():\n    wanted = [1, 2]\n    assert code(wanted[0]) == wanted",
        "expected value that is used elsewhere"),
    "a reference that is passed to a function of the test": (
        "def test_it():\n    def inner(value, wanted):\n        assert code(value) == wanted\n    inner(1, 990)",
        "expected value that is given to a function of the test"),
    "a fixture": ("def test_it(given):\n    assert code(1) == given", "expected value of a fixture"),
    "a condition on each item by the code": (
        "def test_it():\n    assert code(1) == 2\n    assert all(each > code(3) for each in code(2))",
        "comparison within an operand"),
    "two values of the code beside truth values": (
        "def test_it():\n    assert code(1)\n    assert code(2) is None\n    assert str(code(2)) == str(code(3))",
        "two values of the code"),
    "two values of the code beside what tells little": (
        "def test_it():\n    assert code(2) in (True, False)\n    assert len([1, 2]) == 2\n"
        "    assert type(code(1)) == int\n    assert str(code(2)) == str(code(3))", "two values of the code"),
    "three values of the code": ("def test_it():\n    assert code(1) == other(1) == code(2)", "two values of the code"),
    "nothing but by a fixture": ("def test_it(given):\n    given.run(code)", "nothing is expected but by a helper"),
    "nothing but by a method": (
        "def test_it(self):\n    self.run_all(code)", "nothing is expected but by a helper"),
    "nothing but by a helper": (
        "from .tools import run_all\ndef test_it():\n    run_all(code)", "nothing is expected but by a helper"),
    "any error, with checks": (
        "def test_it():\n    with pytest.raises(Exception):\n        assert code(1) == 2\n        code(3)",
        "checks in a block that must raise"),
    "a block that must raise within another": (
        "def test_it():\n    with code(1), pytest.raises(KeyError):\n        code(3)",
        "block that must raise within another one"),
    "a helper that ends early": (
        "def check_it(value):\n    if not value:\n        return\n    assert value == 3\n\n"
        "def test_it():\n    assert code(1) == 2\n    check_it(code(2))", "checks by check_it"),
    "a helper with any arguments": (
        "def check_it(**given):\n    assert code(**given) == 3\n\n"
        "def test_it():\n    assert code(1) == 2\n    check_it(a=1)", "checks by check_it"),
    "a helper that is called within an expression": (
        "def test_it():\n    assert code(1) == 2\n    [check_all(each) for each in code(2)]", "checks by check_all"),
    "a helper whose names mean something else in the test": (
        "def test_it():\n    code = other\n    check_it(1)\n\ndef check_it(value):\n    assert code(value) == 3",
        "checks by check_it"),
    "a helper that is passed on": (
        "def test_it():\n    assert code(1) == 2\n    code(check_all)", "checks by a helper"),
    "a mock": (
        "def test_it(mocker):\n    assert code(1) == 2\n    mocker.it.assert_called_with(3)",
        "checks by assert_called_with"),
    "a failure": (
        "def test_it():\n    assert code(1) == 2\n    if code(3):\n        pytest.fail('4')", "checks by fail"),
    "an assertion within an expression": (
        "def test_it():\n    assert code(1) == 2\n    code(lambda it: self.assertTrue(it))", "checks by assertTrue"),
    "a loop over other values": (
        "def test_it():\n    for text, wanted in zip(['a'], [5]):\n        assert code(text) == wanted",
        "loop over expected values"),
    "a table whose loops go through what is expected": (
        "@pytest.mark.parametrize('text, wanted', [[t, w] for t, w in [('a', 998), ('b', 999)]])\n"
        "def test_it(text, wanted):\n    assert code(text) == wanted", "table whose rows are not written out"),
    "a test elsewhere": ("def test_other():\n    pass", "not written in this file"),
}  # fmt: skip


@pytest.mark.parametrize("name", DIVIDED)
def test_what_is_expected_is_in_the_judging_form_only(name: str) -> None:
    text, kept, dropped = DIVIDED[name]
    function = "TestIt::test_it" if "class TestIt" in text else "test_it"
    found = lifted((HEAD + text).encode(), [function], ["code"])
    assert found is not None
    assert (found.functions, found.refused) == ((function,), {})
    observing, judging = found.observing.decode(), found.judging.decode()
    assert [part for part in kept if part not in observing] == [], observing
    assert [part for part in dropped if part in observing] == [], observing
    assert not {"44", "UNUSED", "About"} & set(observing.split())
    compile(observing, "observing", "exec")
    compile(judging, "judging", "exec")
    constants = [part for part in dropped if part.isdigit() or part in {"KeyError", "Kind", "LookupError"}]
    assert [part for part in constants if part not in judging] == [], judging


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_divided_is_refused_with_a_reason(name: str) -> None:
    text, reason = REFUSED[name]
    found = lifted((HEAD + text).encode(), ["test_it"], ["code"])
    assert found is not None
    assert (found.functions, found.refused) == ((), {"test_it": reason})


def test_a_file_that_cannot_be_parsed_has_no_forms() -> None:
    assert lifted(b"def test_it(:\n", ["test_it"]) is None


def test_other_tests_and_what_only_they_use_are_left_out() -> None:
    text = "def test_it():\n    assert code(prepared()) == 1\n\ndef test_more():\n    assert code(UNUSED) == 990\n"
    found = lifted((HEAD + text).encode(), ["test_it"], ["code"])
    assert found is not None
    observing = found.observing.decode()
    assert "prepared" in observing
    assert not any(part in observing for part in ("test_more", "UNUSED", "990", "check_all", "given"))


def test_tests_of_a_base_class_are_lifted_once_for_all_classes() -> None:
    text = "class Base:\n    def test_it(self):\n        assert code(1) == 990\n\nclass TestIt(Base):\n    pass\n"
    found = lifted((HEAD + text).encode(), ["TestIt::test_it", "Base::test_it", "TestIt::test_other"])
    assert found is not None
    assert found.functions == ("Base::test_it", "TestIt::test_it")
    assert found.refused == {"TestIt::test_other": "not written in this file"}
    assert "class TestIt(Base)" in found.observing.decode()
    assert "990" not in found.observing.decode()


def test_fixtures_that_are_named_like_tests_stay() -> None:
    fixture = "@pytest.fixture\ndef test_client(given):\n    return given\n\n\n"
    test = "def test_it(test_client):\n    assert code(test_client) == 990\n"
    forms = lifted((HEAD + fixture + test).encode(), ["test_it"])
    assert forms is not None
    assert b"def test_client(given)" in forms.observing
    assert b"def given" in forms.judging


def test_the_judging_form_changes_objects_that_it_goes_on_with() -> None:
    test = (
        "def test_it(made):\n    stack = code([1, 2])\n    assert stack.pop() == 2\n    assert next(made) == 3\n"
        "    assert len(stack) == 1\n    stack.clear()\n    with pytest.raises(IndexError):\n        stack.pop()\n"
    )
    forms = lifted((HEAD + test).encode(), ["test_it"])
    assert forms is not None
    judging = forms.judging.decode().partition("def test_it")[2]
    assert "    stack.pop()\n    assert __excise_seen__(1) == 2\n" in judging
    assert "next(made)" not in judging, "nothing else uses it"
    assert "len(stack)" not in judging, "it changes nothing"
    assert forms.observing.decode().count("stack.pop()") == 2


def test_the_judging_form_makes_nothing_of_the_stand_in_for_an_exception() -> None:
    test = (
        "def test_it():\n    with pytest.raises(KeyError) as caught:\n        other(1)\n"
        "    text = code(caught.value)\n    assert 'nine' in text\n    kept = code(2)\n    assert len(kept) == 3\n"
    )
    forms = lifted((HEAD + test).encode(), ["test_it"], ["code"])
    assert forms is not None
    assert "text = code(caught.value)" in forms.observing.decode()
    judging = forms.judging.decode().partition("def test_it")[2]
    assert "text =" not in judging
    assert "kept = code(2)" in judging


def test_where_a_special_method_is_removed_any_assertion_may_call_it() -> None:
    text = HEAD + "def test_it():\n    d = Kind(1)\n    assert other(d) is d\n    assert code(d) == 991"
    found = lifted(text.encode(), ["test_it"], ["code", "__getattr__"])
    assert found is not None
    assert found.refused == {"test_it": "two values of the code"}


def test_code_under_test_that_is_named_like_a_check_is_none() -> None:
    text = HEAD + "def test_it():\n    check_code(1)\n    assert other.check_code(2) == 990"
    found = lifted(text.encode(), ["test_it"], ["check_code"])
    assert found is not None
    assert found.functions == ("test_it",)
    assert b"see__(1, other.check_code(2))" in found.observing
    again = lifted(text.encode(), ["test_it"], ["code"])
    assert again is not None
    assert again.refused == {"test_it": "checks by check_code"}


def test_what_a_test_reports_does_not_depend_on_which_others_are_lifted() -> None:
    source = (
        b"from project import code\n\n\ndef test_a():\n    assert code(1) == 11\n    assert code(2) == 12\n\n\n"
        b"def test_b():\n    def called(x):\n        assert x == 13\n    code(called)\n    assert code(4) == 14\n"
    )
    both, alone = lifted(source, ["test_a", "test_b"]), lifted(source, ["test_b"])
    assert both is not None
    assert alone is not None
    for form in ("observing", "judging"):
        text = getattr(alone, form).decode()
        assert text[text.index("def test_b") :] in getattr(both, form).decode()


def test_attributes_that_only_other_tests_read_are_not_set_up() -> None:
    text = (
        "class TestIt:\n    def setup_method(self):\n        self.size = 3\n        self.wanted = 990\n"
        "        self.made = code(4)\n    def test_it(self):\n        assert code(self.size) == 991\n"
        "    def test_other(self):\n        assert code(1) == self.wanted\n"
    )
    found = lifted((HEAD + text).encode(), ["TestIt::test_it"], ["code"])
    assert found is not None
    assert found.functions == ("TestIt::test_it",)
    observing = found.observing.decode()
    assert "self.size = 3" in observing
    assert "self.made = code(4)" in observing
    assert "990" not in observing
