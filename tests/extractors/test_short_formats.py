"""Formats of removed code that are little more than what is filled in."""

from __future__ import annotations

import re

import pytest

from excise.extractors.expected_texts import WrittenText, expected_texts
from excise.extractors.go import needs as go_needs
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java import needs as java_needs
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.find_needs import find_needs
from excise.extractors.python.needs.test_uses import uses_in
from excise.extractors.rust import needs as rust_needs
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.types import NeedKind

JAVA = "src/{}/java/a/{}.java"
CODE = {
    "java": (
        JAVA.format("main", "A"), JAVA.format("test", "ATest"), "ATest::g",
        "package a;\nclass A {{ void f() {} }}\n", "package a;\n{imports}\nclass ATest {{ @Test void g() {} }}\n",
    ),
    "go": ("a.go", "a_test.go", "TestG", "package a\n\nfunc f() {}\n", "package a\n\nfunc TestG(t *testing.T) {}\n"),
    "rust": ("src/lib.rs", "src/tests.rs", "g", "fn f() {}\n#[cfg(test)]\nmod tests;\n", "#[test]\nfn g() {}\n"),
}  # fmt: skip
"""Of a language the paths of a source and of its test, the test, and both as formats of their bodies."""
VERB = re.compile(r"%[-+# 0]*(?:\d+|\*)?(?:\.\d+)?[a-zA-Z]")


def words_of_needs(language: str, code: str, test: str, imports: str = "") -> list[str]:
    """The details of a function with the body ``code`` that a test with the body ``test`` needs."""
    path, test_path, name, function, first = CODE[language]
    files = {path: function.format(f"{{ {code} }}"), test_path: first.format(f"{{ {test} }}", imports=imports)}
    if language == "java":
        needs = java_needs.find_needs(JavaCodebase.from_texts(files), [f"{path}::A.f"], [f"{test_path}::{name}"])
    elif language == "go":
        codebase = GoCodebase.from_texts(files, import_paths=["example.com/a"])
        needs = go_needs.find_needs(codebase, [f"{path}::f"], [f"{test_path}::{name}"])
    else:
        needs = rust_needs.find_needs(RustCodebase.from_texts(files), [f"{path}::f"], [f"{test_path}::{name}"])
    return [need.word for need in needs]


def told(text: str, *literals: str) -> list[str]:
    written = [WrittenText("a.go::F", text, NeedKind.TEXT, is_all=False)]
    return [need.word for need in expected_texts(written, {"a_test.go::TestF": literals}, VERB)]


@pytest.mark.parametrize(
    ("text", "literal", "expected"),
    [
        ("%s %s", "bar foo", ["%s %s"]),
        ("%s %s", "barfoo", []),
        ("%d-%d", "1-2", ["%d-%d"]),
        ("[%s]", "[a]", ["[%s]"]),
        ("[%s]", "[]", []),
        ("[%s]", "[a", []),
        ("%s, %s and %d", "a, b and 3", ["%s, %s and %d"]),
        ("%s, %s and %d", "a, b or 3", []),
        ("%s", "a", []),
        ("%s%s", "ab", []),
        ("%s:%s:%s:%s:%s:%s:%s", "a:b:c:d:e:f:g", []),  # too many to be told from other texts
        ("%s not found: %s", "a not found: b", [" not found: "]),
    ],
)
def test_a_format_is_told_if_a_test_expects_a_text_of_its_form(text: str, literal: str, expected: list[str]) -> None:
    assert told(text, "other", literal) == expected


@pytest.mark.parametrize(
    ("text", "literal", "expected"),
    [
        (r"'\\''", r"''\\'''", [r"'\\''"]),
        ("...", "more...", ["..."]),
        ("; ", "a; b", []),
        ("more...", "...", []),
        ("100", "1000", []),
        ("   ", "a    b", []),
    ],
)
def test_signs_that_code_writes_and_a_test_expects_are_a_detail(text: str, literal: str, expected: list[str]) -> None:
    assert told(text, literal) == expected


@pytest.mark.parametrize(
    ("language", "code", "test", "expected"),
    [
        ("java", "char[] marks = { '=', '%' };", 'check(" =====");', ["="]),
        ("java", "add('\\\\');", "check('\\\\');", ["\\"]),
        ("java", "add('=');", 'check("a == b");', []),
        ("java", "add('a'); add(',');", "check('a', \"aaa\", ',');", []),
        ("go", "marks := []rune{'=', '%'}", 'check(" =====")', ["="]),
        ("go", "add('=')", "check('=')", ["="]),
        ("rust", "let marks = ['=', '%'];", 'check(" =====");', ["="]),
        ("rust", "add('\\''); add('\"');", "check('\\'', b'\"');", ['"', "'"]),
    ],
)
def test_characters_that_a_test_expects_are_details(language: str, code: str, test: str, expected: list[str]) -> None:
    assert words_of_needs(language, code, test) == expected


@pytest.mark.parametrize(
    ("language", "imports", "test", "is_needed"),
    [
        ("go", "", 't.Fatalf("two values, got " + "more")', False),
        ("go", "", 't.Error(a, "two values")', False),
        ("go", "", 'check(errors.Errorf("two values"))', True),
        ("go", "", 't.Error(call("two values"))', True),
        ("go", "", 'assert.Equal(t, a, b, "two values")', False),
        ("go", "", 'assert.Equal(t, "two values", b)', True),
        ("go", "", 'require.NoErrorf(t, err, "two values %d", 1)', False),
        ("go", "", 'require.ErrorContains(t, err, "two values")', True),
        ("java", "org.junit.Assert", 'assertEquals("two values", a, b);', False),
        ("java", "org.junit.Assert", 'assertEquals("two values", a);', True),
        ("java", "org.junit.Assert", 'Assert.assertTrue("two " + "two values", a);', False),
        ("java", "org.junit.jupiter.api.Test", 'assertEquals("two values", a, b);', True),
        ("java", "org.junit.jupiter.api.Test", 'assertEquals(a, b, "two values");', False),
        ("java", "org.junit.jupiter.api.Test", 'assertTrue(use("two values"), a);', True),
        ("java", "org.own.Assert", 'assertEquals("two values", a, b);', True),
        ("java", "org.own.Assert", 'fail("two values");', False),
    ],
)
def test_what_tests_report_is_no_detail(language: str, imports: str, test: str, *, is_needed: bool) -> None:
    code = 'add("two values")' + ";" * (language == "java")
    assert words_of_needs(language, code, test, f"import {imports};") == (["two values"] if is_needed else [])


def test_long_texts_of_tests_take_no_time() -> None:
    assert told("%s:%s:%s:%s:%s", ":a" * 500_000) == ["%s:%s:%s:%s:%s"]


@pytest.mark.parametrize(
    ("text", "literal", "is_all", "expected"),
    [
        ("N", " -a N", True, ["N"]),
        ("N", " -a NAME", True, []),
        ("N", " -a N", False, []),  # a letter of longer code
        ("px", "1 px", True, ["px"]),
        (", ", "a, b", True, []),
        (", ", ", ", True, [", "]),
        ("", "", True, []),
        ("s", "it's fine", True, []),
        ("a", "this is a test", True, []),
        ("1", "line 1", True, []),
        ("1", "1", True, ["1"]),
        ("→", "a → b", True, ["→"]),
    ],
)
def test_a_short_text_that_is_all_of_a_function_is_a_detail(
    text: str, literal: str, expected: list[str], *, is_all: bool
) -> None:
    """Nothing but the code tells it."""
    needs = expected_texts([WrittenText("a.go::F", text, NeedKind.TEXT, is_all)], {"a_test.go::TestF": [literal]}, VERB)
    assert [need.word for need in needs] == expected
    assert all(need.is_answer for need in needs)


@pytest.mark.parametrize("code", ['print("%s: %s" % (a, b))', 'print("{}: {}".format(a, b))', 'return f"{a}: {b}"'])
def test_formats_of_python_are_told_however_they_are_filled_in(code: str) -> None:
    source = f"def f(a, b):\n    if a is None:\n        return None\n    {code}\n"
    test = "def test_f(capsys):\n    f(1, 2)\n    assert capsys.readouterr().out == '1: 2'\n"
    codebase = PythonCodebase.from_texts({"m.py": source, "test_m.py": test})
    needs = find_needs(codebase, uses_in(codebase), ["m.py::f"], ["test_m.py::test_f"])
    assert [need.word for need in needs if need.kind is NeedKind.TEXT] in (["%s: %s"], ["{}: {}"], ["{a}: {b}"])
