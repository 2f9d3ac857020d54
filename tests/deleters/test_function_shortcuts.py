"""Lesser bodies of functions in languages with braces, which tests have to notice."""

from __future__ import annotations

import pytest

from excise.deleters.function_shortcuts import function_shortcuts
from excise.deleters.go.parts import PARTS as GO
from excise.deleters.java.parts import PARTS as JAVA
from excise.deleters.javascript.parts import PARTS as JAVASCRIPT
from excise.deleters.rust.parts import PARTS as RUST
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase

GO_CODE = """package a

// ByParts splits at the given sep.
func ByParts(s, sep string) []string { return strings.Split(s, sep) }
"""
GO_TEST = 'package a\n\nfunc TestByParts(t *testing.T) {\n\tByParts(%s)\n\tByParts("d, (e", %s)\n}\n'
JAVA_CODE = """class A {
    /** Splits.
     * @param sep what stands between
     */
    String[] split(String text, char sep) {
        return null;
    }
    String[] split(String text) { return split(text, 'x'); }
}
"""
RUST_CODE = """/// Splits at `sep`.
pub fn split(text: &str, sep: char) -> Vec<char> {
    vec![sep]
}
#[cfg(test)]
mod tests {
    #[test]
    fn splits() { assert_eq!(super::split("a,b", ',').len(), 1); }
}
"""
SCRIPT_CODE = """/**
 * Splits.
 * @param {string} sep  what stands between
 */
export function split(text, sep) {
  return text
}
"""
SCRIPT_TEST = "import { split } from './m.js'\nit('splits', () => { split('a', ',') })\n"


def changes(files: dict[str, str], name: str) -> dict[str, str]:
    """What a shortcut leaves out, to what stands in its place, where a function of the first file is gone."""
    path = next(iter(files))
    codebase, grammar = {
        "go": (GoCodebase.from_texts(files), GO),
        "java": (JavaCodebase.from_texts(files), JAVA),
        "rs": (RustCodebase.from_texts(files), RUST),
        "js": (JavaScriptCodebase.from_texts(files), JAVASCRIPT),
    }[path.rpartition(".")[2]]
    gone = next(symbol for symbol in codebase.symbols().values() if symbol.name == name and symbol.path == path)
    removed = {path: frozenset(range(gone.start_line, gone.end_line + 1))}
    found = [*function_shortcuts(codebase, removed, grammar)]
    assert all(part.symbol == gone.symbol_id and not part.is_essential for part in found)
    return {part.what: part.replacement.decode() for part in found}


@pytest.mark.parametrize(
    ("files", "name", "text"),
    [
        ({"a.go": GO_CODE, "a_test.go": GO_TEST % ('"a,b", ","', '","')}, "ByParts", ' sep = ",";'),
        ({"a.go": GO_CODE, "a_test.go": GO_TEST % ('"a,b", ","', '"."')}, "ByParts", ""),
        ({"a.go": GO_CODE, "a_test.go": GO_TEST % ('"a,b", ","', "c()")}, "ByParts", ""),
        ({"a.go": GO_CODE.replace("given sep", "dot"), "a_test.go": GO_TEST % ('"", ","', '","')}, "ByParts", ""),
        (
            {
                "a.go": GO_CODE.replace("// ByParts splits at the given sep.", ""),
                "a_test.go": GO_TEST % ('"a,b", ","', '","'),
            },
            "ByParts",
            ' sep = ",";',
        ),
        ({"A.java": JAVA_CODE}, "split", " sep = 'x';"),
        ({"src/lib.rs": RUST_CODE}, "split", " let sep = ',';"),
        ({"m.js": SCRIPT_CODE, "m.test.js": SCRIPT_TEST}, "split", " sep = ',';"),
        ({"m.js": SCRIPT_CODE, "m.test.js": SCRIPT_TEST.replace("})", "; split('b') })")}, "split", ""),
    ],
)
def test_a_documented_parameter_is_what_every_call_gives(files: dict[str, str], name: str, text: str) -> None:
    assert list(changes(files, name).values()) == ([text] if text else [])


def test_the_body_of_the_function_beside_it_that_is_most_alike() -> None:
    code = """package a

func ToKebab(s Text) Text { return By(s, '-') }

func ToSnake(s Text) Text { return By(s, '_') }

func ToUpperKebab(s Text) Text { return Up(s, '-') }

func ToKebabOf(s Text, n int) Text { return s }
"""
    expected = {"all that `ToUpperKebab` does not do": "{ return Up(s, '-') }"}
    assert changes({"a.go": code}, "ToKebab") == expected
    for same in ("ToKebab(s)", "By(s, '-')"):
        assert not changes({"a.go": code.replace("Up(s, '-')", same)}, "ToKebab")
    assert not changes({"a.go": code.replace("By(s, '-')", "ToUpperKebab(s)")}, "ToKebab")


def test_the_body_of_another_one_that_is_gone_is_tried_as_well() -> None:
    code = "package a\n\nfunc Up(s Text) Text { return By(s, 1) }\n\nfunc UpTo(s Text) Text { return By(s, 2) }\n"
    codebase = GoCodebase.from_texts({"a.go": code})
    found = {part.symbol: part.replacement for part in function_shortcuts(codebase, {"a.go": frozenset(range(9))}, GO)}
    assert found == {"a.go::Up": b"{ return By(s, 2) }", "a.go::UpTo": b"{ return By(s, 1) }"}


@pytest.mark.parametrize("other", ["async function splits", "function * splits", "async function * splits"])
def test_bodies_of_other_kinds_of_functions_are_none(other: str) -> None:
    code = "export function split(text) { return text }\nexport %s(text) { return 1 }\n"
    assert changes({"m.js": code % "function splits"}, "split")
    assert not changes({"m.js": code % other}, "split")


@pytest.mark.parametrize(
    ("path", "code", "texts"),
    [
        (
            "a.go",
            "package a\n\nfunc f(s string) bool { return s > g }\n",
            [" if true { return true; }", " if true { return false; }"],
        ),
        (
            "a.go",
            "package a\n\nfunc f(s string) string { return s + g }\n",
            [" if true { return s; }", ' if true { return ""; }'],
        ),
        ("a.go", "package a\n\nfunc f(s string) (string, bool) { return s, g }\n", []),
        ("a.go", "package a\n\nfunc f() bool { return true }\n", [" if true { return false; }"]),
        (
            "A.java",
            "class A {\n    int f(int n) { return n + g; }\n}\n",
            [f" if (true) {{ return {v}; }}" for v in "n10"],
        ),
        ("src/lib.rs", "fn f(n: usize) -> usize { n + 1 }\n", [f" if true {{ return {v}; }}" for v in "n10"]),
        (
            "src/lib.rs",
            "fn f(s: String) -> String { s + G }\n",
            [f" if true {{ return {v}; }}" for v in ("s", "String::new()")],
        ),
        (
            "a.go",
            "package a\n\nfunc f(s, t string) string { return s + t }\n",
            [" if true { return s; }", ' if true { return ""; }'],
        ),
        (
            "a.go",
            "package a\n\nfunc f(n uint8, s string) string { return s + g }\n",
            [' if true { return ""; }'],
        ),
        ("a.go", "package a\n\nfunc f() uint8 { return g }\n", [f" if true {{ return {v}; }}" for v in "10"]),
        ("m.js", "export function f(s) { return s + 1 }\n", []),
    ],
)
def test_constants_and_the_first_parameter_are_tried(path: str, code: str, texts: list[str]) -> None:
    assert list(changes({path: code}, "f").values()) == texts


def test_of_each_function_one_constant_is_tried_first_and_the_truth_that_tests_expect() -> None:
    code = "package a\n\nfunc F(s string) bool { return s > g }\n\nfunc G(n int) int { return n + g }\n"
    test = "package a\n\nfunc TestF(t *testing.T) {\n\tis(F(a), false)\n\tis(F(b), false)\n\tis(F(c), true)\n}\n"
    codebase = GoCodebase.from_texts({"a.go": code, "a_test.go": test})
    found = [*function_shortcuts(codebase, {"a.go": frozenset(range(1, 6))}, GO)]
    values = [(part.symbol.rpartition("::")[2], part.what.removeprefix("all but ")) for part in found]
    expected = [("F", "false"), ("G", "n"), ("F", "true"), ("G", "1"), ("G", "0")]
    assert values == [(name, f"`return {value}`") for name, value in expected]
