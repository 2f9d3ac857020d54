"""Variants of tests tell which of their statements fail, and these alone go."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from excise.deleters.python.probed_tests import ShorteningTests
from excise.deleters.python.remove import Remove
from excise.deleters.python.stub import Stub
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Feature, FeatureKind

from .test_remove_details import after

CODE = "def load(text):\n    return text + 1\n\n\ndef keep(text):\n    return text\n"
TEST = """import pytest
from m import load, keep, other

VALUE = other()


def test_it():
    \"\"\"Told.\"\"\"
    assert keep(1) == 1
    assert load(1) == 2
    for value in (1, 2):
        assert keep(value)
        assert load(value)
    with pytest.raises(KeyError):
        raise KeyError
    with pytest.raises(TypeError):
        load(None)
    found = load(3)
    assert found == 4


def test_other():
    assert load(1)
"""
TEST_ID, LOAD = "test_m.py::test_it", ("m.py::load",)


def codebase_of(test: str) -> PythonCodebase:
    return PythonCodebase.from_texts({"m.py": CODE, "test_m.py": test})


def message_of(variant: bytes, name: str = "test_it", **given: object) -> str:
    """What a test function of a variant fails with, beside a module whose ``load`` has no code."""

    def load(text: object) -> object:
        raise NotImplementedError(text)

    names: dict[str, object] = {"__name__": "test_m"}
    module = SimpleNamespace(load=load, keep=lambda text: text)
    code = compile(variant.replace(b"from m import", b"from tests_of_m import"), "test_m.py", "exec")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "tests_of_m", module)
        exec(code, names)
    function = names[name]
    assert callable(function)
    with pytest.raises(AssertionError) as raised:
        function(**given)
    return f"AssertionError: {raised.value}"


def test_the_statements_that_fail_are_told_at_the_end() -> None:
    codebase, deleter = codebase_of(TEST), Stub()
    variants = deleter.probing(codebase, [TEST_ID, "test_m.py::test_other", "test_m.py::test_none", "m.py::keep"])
    assert list(variants) == ["test_m.py"]
    assert variants["test_m.py"].startswith(b'"""PYTEST_DONT_REWRITE"""\n')
    assert b"test_other" not in variants["test_m.py"], "too short to lose a part"
    message = message_of(variants["test_m.py"])
    assert re.fullmatch(r"AssertionError: excise:[0-9a-f]+:[0-9a-f]+:", message)
    shorter = deleter.losing(codebase, {TEST_ID: message, "test_m.py::test_other": "AssertionError: 3"})
    lines = TEST.splitlines()
    failed = [lines[line - 1].strip() for line in sorted(shorter.parts.failing[TEST_ID])]
    assert failed == [
        "assert load(1) == 2", "assert load(value)", "with pytest.raises(TypeError):", "found = load(3)",
        "assert found == 4",
    ]  # fmt: skip
    assert list(shorter.parts.failing) == [TEST_ID]


def test_lists_of_names_lose_those_that_are_gone_alone() -> None:
    test = TEST.replace(
        "VALUE = other()", "BOTH = (keep, other)\nALL = [other, keep, pytest.raises]\nVALUE = (other(), 1)"
    )
    variant = Stub().probing(codebase_of(test), [TEST_ID])["test_m.py"]
    names: dict[str, object] = {"__name__": "test_m"}
    module = SimpleNamespace(keep=print)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "tests_of_m", module)
        exec(compile(variant.replace(b"from m import", b"from tests_of_m import"), "test_m.py", "exec"), names)
    assert names["BOTH"] == (print,)
    assert names["ALL"] == [print, pytest.raises]
    assert "VALUE" not in names


def test_what_a_variant_keeps() -> None:
    test = '"""How it is used."""\n' + TEST + "\n\nclass TestIt:\n    def test_more(self):\n        test_other()\n"
    variant = Stub().probing(codebase_of(test), [TEST_ID])["test_m.py"].decode()
    assert variant.startswith('"""How it is used.\n\nPYTEST_DONT_REWRITE"""\n')
    assert "def test_other" in variant, "it is called"
    assert "class TestIt:\n        pass\n" in variant
    told = codebase_of(f"{TEST}    assert __doc__ is None\n")
    assert "DONT_REWRITE" not in Stub().probing(told, [TEST_ID])["test_m.py"].decode()


@pytest.mark.parametrize("make", [Stub, Remove])
def test_they_go_and_the_others_stay(make: type[ShorteningTests]) -> None:
    checks = "".join(f"    assert keep({number})\n" for number in range(1, 6))
    test = TEST.replace("    found = load(3)\n", checks + "    found = load(3)\n")
    codebase = codebase_of(test)
    deleter = make()
    shorter = deleter.losing(codebase, {TEST_ID: message_of(deleter.probing(codebase, [TEST_ID])["test_m.py"])})
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=LOAD, symbols=LOAD, tests=())
    deletion = shorter.delete(codebase, feature, hide=frozenset({TEST_ID}))  # type: ignore[attr-defined]
    left = after({"m.py": CODE, "test_m.py": test}, deletion)["test_m.py"]
    body = left.partition('"""Told."""\n')[2].partition("\n\n\n")[0]
    assert body.rstrip() == (
        "    assert keep(1) == 1\n    for value in (1, 2):\n        assert keep(value)\n"
        f"    with pytest.raises(KeyError):\n        raise KeyError\n{checks.rstrip()}"
    )
    assert TEST_ID in deletion.hidden
    assert deletion.shortened == (TEST_ID,)
    assert (
        shorter.hiding_whole([TEST_ID])
        .delete(  # type: ignore[attr-defined]
            codebase, feature, hide=frozenset({TEST_ID})
        )
        .shortened
        == ()
    )


@pytest.mark.parametrize(
    "test",
    [
        "def test_it():\n    assert keep(1)\n    assert load(1)\n",
        "def test_it(:\n",
        "def test_it():\n    assert keep(1)\n    yield\n    assert load(1)\n    assert keep(3)\n",
    ],
)
def test_tests_that_cannot_be_divided_have_no_variant(test: str) -> None:
    variants = Stub().probing(codebase_of(test), [TEST_ID])
    assert not any(b"excise:" in data for data in variants.values())


NESTED = """from m import load, keep


@pytest.mark.parametrize("value", [1, 2])
def test_it(value):
    def told(x):
        assert keep(x)
        assert load(x)
        return x

    class Told:
        def make(self, x):
            found = load(x)
            return found

    if value:
        assert keep(value)
        load(value)
    assert told(3) == 3
    assert keep(4)
    Told().make(5)
    assert keep(6)
"""


def test_checks_in_functions_of_a_test_and_statements_under_conditions_go_alone() -> None:
    ids = ["test_m.py::test_it[1]", "test_m.py::test_it[2]"]
    codebase, deleter = codebase_of(f"import pytest\n{NESTED}"), Stub()
    variant = deleter.probing(codebase, ids)["test_m.py"]
    messages = {test: message_of(variant, value=number) for number, test in enumerate(ids, 1)}
    lines = f"import pytest\n{NESTED}".splitlines()
    shorter = deleter.losing(codebase, messages)
    assert [lines[line - 1].strip() for line in sorted(shorter.parts.failing[TEST_ID])] == [
        "assert load(x)", "load(value)", "Told().make(5)",
    ]  # fmt: skip
    assert not deleter.losing(codebase, {**messages, ids[1]: "KeyError: 3"}).parts.failing
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=LOAD, symbols=LOAD, tests=())
    deletion = shorter.delete(codebase, feature, hide=frozenset(ids))
    left = after({"m.py": CODE, "test_m.py": f"import pytest\n{NESTED}"}, deletion)["test_m.py"]
    unused = NESTED[NESTED.index("    class Told") : NESTED.index("    if value")]
    gone = ("        assert load(x)\n", "        load(value)\n", "    Told().make(5)\n", unused)
    expected = NESTED
    for each in gone:
        expected = expected.replace(each, "")
    assert left.partition("def test_it")[2].split() == expected.partition("def test_it")[2].split()
    assert set(deletion.shortened) == set(ids)


LOOPS = """from m import load, keep


@pytest.mark.parametrize("value", [1, 2])
def test_it(value):
    found = []
    try:
        found = [load(value)]
    except Exception:
        pass
    assert keep(1)
    for each in found:
        assert keep(each)
    for each in (1, 2):
        assert keep(each)
    assert load(value)
    assert keep(4)
    assert keep(5)
"""


def test_loops_without_anything_to_check_go_unless_a_row_passes() -> None:
    source = f"import pytest\n{LOOPS}"
    ids = ["test_m.py::test_it[1]", "test_m.py::test_it[2]"]
    codebase, deleter = codebase_of(source), Stub()
    variant = deleter.probing(codebase, ids)["test_m.py"]
    messages = {test: message_of(variant, value=number) for number, test in enumerate(ids, 1)}
    lines = source.splitlines()

    def failing(told: dict[str, str]) -> list[str]:
        found = deleter.losing(codebase, told).parts.failing[TEST_ID]
        return [lines[line - 1].strip() for line in sorted(found)]

    assert failing(messages) == ["for each in found:", "assert load(value)"]
    assert failing({**messages, ids[1]: ""}) == ["assert load(value)"]
