"""Assertions of hidden tests that statements show: plain ones of functions without recorded calls, few of them."""

from __future__ import annotations

import pytest

from excise.deleters.code_editors import editor_of
from excise.deleters.statement.test_assertions import assertions_of_tests, chosen_assertions
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.protocols import Assertion, Codebase
from excise.types import Visibility

RUST = (
    "pub fn quote(s: &str) -> String {{ s.into() }}\n\n#[cfg(test)]\n"
    "mod tests {{\n    use super::*;\n\n    #[test]\n    fn t() {{\n{}    }}\n}}\n"
)
JAVA = "class ATest {{\n    @Test\n    public void t() {{\n{}    }}\n}}\n"
GO = 'package a\n\nimport (\n\t"strings"\n\t"testing"\n)\n\nfunc TestT(t *testing.T) {{\n{}}}\n'
JS = (
    "const test = require('node:test');\nconst assert = require('assert');\n"
    "const f = require('../a');\n\ntest('t', () => {{\n{}}});\n"
)


def _codebase(language: str, lines: list[str]) -> tuple[Codebase, str, str]:
    """A codebase with one test of these lines, the id of the function that it tests, and of the test."""
    if language == "rust":
        body = "".join(f"        {line}\n" for line in lines)
        return RustCodebase.from_texts({"src/lib.rs": RUST.format(body)}), "src/lib.rs::quote", "src/lib.rs::tests.t"
    if language == "java":
        code = "class A {\n    static String f(String s) { return s; }\n}\n"
        files = {"A.java": code, "ATest.java": JAVA.format("".join(f"        {line}\n" for line in lines))}
        return JavaCodebase.from_texts(files), "A.java::A.f", "ATest.java::ATest.t"
    body = "".join(f"\t{line}\n" for line in lines)
    if language == "go":
        files = {"a.go": "package a\n\nfunc F(s string) string { return s }\n", "a_test.go": GO.format(body)}
        return GoCodebase.from_texts(files), "a.go::F", "a_test.go::TestT"
    files = {"a.js": "module.exports = function (s) { return s; };\n", "test/a.js": JS.format(body)}
    return JavaScriptCodebase.from_texts(files), "", "test/a.js::t"


@pytest.mark.parametrize(
    ("language", "line", "shown"),
    [
        ("rust", r"""assert_eq!(quote("'"), "''\\'''");""", True),
        ("rust", 'assert_eq!(quote("a").len(), vec![1][0]);', True),
        ("rust", 'assert!(quote("").is_empty());', True),
        ("rust", 'assert_eq!(quote("a"), expected);', False),
        ("rust", "assert_eq!(quote(given), other(1));", False),
        ("rust", 'assert_eq!(Other::quote("a"), "b");', False),
        ("java", 'assertEquals("b", A.f("a"));', True),
        ("java", 'Assert.assertEquals("b", A.f("a"));', True),
        ("java", 'assertThat(A.f("a")).isEqualTo("b");', True),
        ("java", "assertNull(A.f(null));", True),
        ("java", 'assertEquals("b", B.f("a"));', False),
        ("java", 'assertEquals("b", made.f("a"));', False),
        ("java", 'assertEquals(EXPECTED, A.f("a"));', False),
        ("go", 'if got := F("a"); got != "b" {\n\t\tt.Errorf("got %s", got)\n\t}', True),
        ("go", 'if F("a") != strings.Repeat("b", 2) {\n\t\tt.Fatal("no")\n\t}', True),
        ("go", 'assert.Equal(t, "b", F("a"))', True),
        ("go", 'if got := F("a"); got != want {\n\t\tt.Errorf("got %s", got)\n\t}', False),
        ("go", 'if got := F("a"); got != "b" {\n\t\tcount++\n\t}', False),
        ("js", "assert.strictEqual(f('a'), 'b');", True),
        ("js", "expect(f('a')).toBe('b');", True),
        ("js", "assert.strictEqual(f('a'), made);", False),
        ("js", "assert.strictEqual(f('a'), 'b', { skip: 'not yet' });", False),
        ("js", "assert.strictEqual(f(() => g()), 'b');", False),
    ],
)
def test_assertions_of_literals_are_shown(language: str, line: str, shown: bool) -> None:
    codebase, removed, test = _codebase(language, [line, line.replace('"a"', "x + y, A").replace("'a'", "x + y")])
    symbol = codebase.symbols()[removed] if removed else next(s for s in codebase.symbols().values() if s.is_callable)
    words = editor_of({"js": "javascript"}.get(language, language)).words
    found = words.assertions(codebase, test, symbol)
    head = line.partition("{\n")[0] + "{ … }" if "{\n" in line else line
    assert list(dict.fromkeys(each.text for each in found if each.text)) == ([head] if shown else [])
    tests = {test: found}
    assert [each.text for each in chosen_assertions(tests)] == ([head] if shown else [])
    text = assertions_of_tests(codebase, tests, words, Visibility.DOCSTRING, [symbol], [symbol])
    assert (f"```{words.fence}\n{head}\n```" in text) is shown
    assert not assertions_of_tests(codebase, tests, words, Visibility.DOCSTRING, [symbol], [])
    assert not assertions_of_tests(codebase, tests, words, Visibility.SIGNATURE, [symbol], [symbol])


def _made(*texts: str) -> list[Assertion]:
    return [Assertion(("a", number), text, (text,) if text else ()) for number, text in enumerate(texts)]


def test_one_assertion_of_three_is_shown_and_none_is_all_of_a_test() -> None:
    found = {"t": _made('"a"', '"b"', '""', '"c"', "", '"!"')}
    assert [each.text for each in chosen_assertions(found)] == ['""', '"!"']
    many = {"t": _made(*(f'"{sign}"' for sign in "abcdefghijklmnopqrstuvwxyz"))}
    assert len(chosen_assertions(many)) == 4
    alone = {str(number): [Assertion((str(number), 0), f'"{number}"', ("1",))] for number in range(6)}
    assert chosen_assertions(alone) == []
    twice = {"t": _made('"a"', '"b"'), "u": [Assertion(("u", 0), '"a"', ('"a"',))]}
    assert [each.text for each in chosen_assertions(twice)] == ['"b"']
