"""Details that tests need of removed code: names that they replace, blanks, returned objects, exceptions, and
how these are chained."""

from __future__ import annotations

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.language import Python
from excise.types import NeedKind


def labels(test: str, source: str, removed: tuple[str, ...]) -> set[str]:
    """Label of each need of the tests of a file."""
    files = {"bank.py": source, "tests/test_bank.py": f"import bank\n{test}"}
    codebase = PythonCodebase.from_texts(files)
    found = [s for s in codebase.modules["tests/test_bank.py"].symbols if s.name.startswith("test_")]
    needs = Python().find_needs(codebase, removed, [f"{s.path}::{s.qualname}" for s in found])
    return {need.label for need in needs if need.kind is not NeedKind.USED}


def test_a_replaced_name_is_a_need_if_the_code_uses_it() -> None:
    source = "import time\n\ndef wait():\n    time.sleep(3)\n"
    test = "from unittest import mock\n\ndef test_a():\n    with mock.patch('bank.time.{}'):\n        bank.wait()\n"
    assert (labels(test.format("sleep"), source, ("bank.py::wait",))) == {"replaced bank.time.sleep"}
    named = test.replace("with mock.patch('bank.time.{}')", "name = 'bank.time.{}'\n    with mock.patch(name, print)")
    assert (labels(named.format("sleep"), source, ("bank.py::wait",))) == {"replaced bank.time.sleep"}
    assert not labels(test.format("monotonic"), source, ("bank.py::wait",))


@pytest.mark.parametrize(
    ("owner", "is_told"), [("sys", True), ("box", False), ("made", False)], ids=["module", "parameter", "own"]
)
def test_what_a_test_sets_is_replaced_unless_it_made_it(owner: str, *, is_told: bool) -> None:
    source = f"import sys\n\ndef wait(x):\n    return x is {owner}.__stdout__\n"
    test = f"import sys\n\ndef test_a(box):\n    made = box()\n    {owner}.__stdout__ = 1\n    assert bank.wait(1)\n"
    assert (f"replaced {owner}.__stdout__" in labels(test, source, ("bank.py::wait",))) is is_told


@pytest.mark.parametrize(
    ("replaced", "code", "is_told"),
    [
        ("'bank.limit'", "def wait():\n    return limit\n", True),
        ("'bank.limit'", "def wait(limit):\n    return limit\n", False),
        ("'shop.limit'", "def wait():\n    return limit\n", False),
        ("'shop.plugin.limit'", "def wait():\n    return settings.limit\n", False),
        ("'shop.settings.limit'", "def wait():\n    return _settings.limit\n", True),
        ("'builtins.open'", "def wait():\n    return open('x')\n", True),
        ("bank.settings, 'limit'", "def wait():\n    return settings.limit\n", True),
    ],
)
def test_what_is_replaced_must_be_what_the_code_reads(replaced: str, code: str, *, is_told: bool) -> None:
    call = f"patch({replaced})" if replaced.startswith("'") else f"patch.object({replaced})"
    found = labels(
        f"from unittest import mock\n\ndef test_a():\n    with mock.{call}:\n        bank.wait()\n",
        code,
        ("bank.py::wait",),
    )
    assert any(label.startswith("replaced") for label in found) == is_told


def test_a_variable_of_a_test_may_be_the_object_itself() -> None:
    code = "class Account:\n    def wait(self):\n        return self.limit()\n"
    replaced = "monkeypatch.setattr(account, 'limit', None)"
    test = f"def test_a(monkeypatch):\n    account = bank.Account()\n    {replaced}\n    account.wait()\n"
    assert "replaced account.limit" in labels(test, code, ("bank.py::Account.wait",))


@pytest.mark.parametrize(
    ("imported", "told"),
    [
        ("import bank.clock as k", "bank.clock.now"),
        ("from bank import clock as k", "clock.now"),
        ("from bank import k", "k.now"),
    ],
)
def test_an_alias_of_a_test_is_told_as_the_module_that_it_is(imported: str, told: str) -> None:
    test = f"{imported}\n\ndef test_a(monkeypatch):\n    monkeypatch.setattr(k, 'now', None)\n    bank.wait()\n"
    for name in ("k", told.split(".")[-2]):  # the code may have the same alias, or the module's name
        found = labels(test, f"def wait():\n    return {name}.now()\n", ("bank.py::wait",))
        assert f"replaced {told}" in found


def test_blanks_that_tests_expect_are_needs() -> None:
    code = "def lines(text):\n    return text.replace('\\n', '\\r\\n').replace(' ', '').replace('|', '\\t')\n"
    found = labels("def test_a():\n    assert bank.lines('a b') == 'a\\r\\nb'\n", code, ("bank.py::lines",))
    assert "text \r\n" in found
    assert "text \t" not in found
    assert not any(label in {"text  ", "text \n"} for label in found)


@pytest.mark.parametrize(
    ("last", "is_told"), [("return self", True), ("return None", False), ("return (self, 1)", False)]
)
def test_a_method_that_returns_its_object_says_so(last: str, *, is_told: bool) -> None:
    code = f"class Account:\n    def each(self, function):\n        function(self)\n        {last}\n"
    found = labels("def test_a():\n    bank.Account().each(print)\n", code, ("bank.py::Account.each",))
    assert ("result each self" in found) == is_told


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise errors.TooBig('x')", {"TooBig"}),
        ("raise errors.Refused('x')", {"Refused"}),
        ("raise errors.Other('x')", set()),
        ("raise errors.Refused(errors.TooBig('x'))", {"Refused"}),
    ],
)
def test_an_exception_is_told_where_a_test_expects_a_base_class_of_it(code: str, told: set[str]) -> None:
    source = f"import errors\n\ndef pay(x):\n    try:\n        return int(x)\n    except TypeError:\n        {code}\n"
    errors = "".join(
        f"class {name}: ...\n" for name in ("Refused(Exception)", "Small(Refused)", "TooBig(Small)", "Other(Exception)")
    )
    test = (
        "import bank, errors\ndef test_a():\n    try:\n        bank.pay([])\n    except errors.Refused:\n        pass\n"
    )
    codebase = PythonCodebase.from_texts({"bank.py": source, "errors.py": errors, "test_bank.py": test})
    needs = Python().find_needs(codebase, ("bank.py::pay",), ("test_bank.py::test_a",))
    assert {need.word for need in needs if need.kind is NeedKind.EXCEPTION} == told


@pytest.mark.parametrize(
    ("given", "replacing"),
    [
        ("bank, 'datetime', Other", "monkeypatch.setattr"),
        ("'bank.datetime', Other", "monkeypatch.setattr"),
        ("'bank.datetime', new=Other", "mock.patch"),
        ("bank, 'datetime', print", ""),
    ],
)
@pytest.mark.parametrize("indent", ["", "    "], ids=["of the file", "local"])
def test_members_of_a_class_that_takes_the_place_of_a_name(given: str, replacing: str, indent: str) -> None:
    made = "class Other(bank.datetime):\n    limit = 1\n    def today(self):\n        return self.now()\n"
    made = "".join(f"{indent}{line}\n" for line in made.splitlines())
    head, inner = ("", made) if indent else (made, "")
    call = f"    {replacing or 'monkeypatch.setattr'}({given})\n    assert bank.wait() == 1\n"
    test = f"from unittest import mock\n{head}\ndef test_a(monkeypatch):\n{inner}{call}"
    source = "from datetime import datetime\n\ndef wait():\n    return datetime.today().year\n"
    members = {"replaced bank.datetime.today"} if replacing else set()
    assert labels(test, source, ("bank.py::wait",)) == {"replaced bank.datetime", *members}


_IS_CHAINED = "    assert caught.value.__cause__ is None\n"


@pytest.mark.parametrize(
    ("handler", "read", "told"),
    [
        (
            "except OSError:\n        raise Shut('x') from None",
            _IS_CHAINED,
            {"except OSError: raise Shut(…) from None"},
        ),
        (
            "except OSError as e:\n        if x:\n            raise Shut from e",
            _IS_CHAINED,
            {"except OSError as e: raise Shut from e"},
        ),
        ("except OSError as e:\n        raise Shut(e)", _IS_CHAINED, {"except OSError: raise Shut(…)"}),
        ("except OSError:\n        raise Other('x') from None", _IS_CHAINED, set()),
        ("except OSError as e:\n        raise e\n    x = Shut()", _IS_CHAINED, set()),
        ("except OSError:\n        raise Shut('x') from None", "", set()),
    ],
    ids=["from none", "from the handled one", "implicitly", "another exception", "the same one", "not read"],
)
def test_how_an_exception_is_chained_is_told_where_a_test_reads_it(handler: str, read: str, told: set[str]) -> None:
    source = f"class Shut(Exception): ...\n\ndef wait(x):\n    try:\n        x()\n    {handler}\n    raise Shut\n"
    test = f"import pytest\n\ndef test_a():\n    with pytest.raises(bank.Shut) as caught:\n        bank.wait(1)\n{read}"
    found = labels(test, source, ("bank.py::wait",))
    assert {label.removeprefix("chained ") for label in found if label.startswith("chained ")} == told


@pytest.mark.parametrize(
    "body",
    [
        "monkeypatch.setattr(bank, 'clock', types.SimpleNamespace(now=int))",
        "made = types.SimpleNamespace(now=int)\n    monkeypatch.setattr(bank, 'clock', made)",
        "made = mock.Mock()\n    made.now.return_value = 1\n    monkeypatch.setattr('bank.clock', made)",
        "with mock.patch('bank.clock') as made:\n        made.now.return_value = 1",
        "bank.clock = Other",
        "bank.clock = types.SimpleNamespace(now=int)",
    ],
)
def test_members_of_other_replacements_that_a_test_makes(body: str) -> None:
    head = "import types\nfrom unittest import mock\n\n\nclass Other:\n    now = today = int\n\n\n"
    test = f"{head}def test_a(monkeypatch):\n    {body}\n    assert bank.wait() == 1\n"
    source = "import clock\n\ndef wait():\n    return clock.now()\n"
    told = {label for label in labels(test, source, ("bank.py::wait",)) if label.startswith("replaced ")}
    assert told == {"replaced bank.clock", "replaced bank.clock.now"}
