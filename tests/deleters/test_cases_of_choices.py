"""Cases of choices, and their values, are parts of removed code that tests must notice."""

from __future__ import annotations

import pytest

from excise.deleters.go.parts import PARTS as GO
from excise.deleters.java.parts import PARTS as JAVA
from excise.deleters.javascript.parts import PARTS as JAVASCRIPT
from excise.deleters.rust.parts import PARTS as RUST
from excise.deleters.syntax_parts import PartGrammar, syntax_parts
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.protocols import Codebase


def parts(codebase: Codebase, grammar: PartGrammar) -> dict[str, str]:
    """What each part is, to the code without it, white space folded."""
    ((path, module),) = codebase.modules.items()
    found = syntax_parts(codebase, {path: frozenset(range(1, 99))}, grammar)
    return {
        each.what: " ".join(
            (module.source[: each.start] + each.replacement + module.source[each.end :]).decode().split()
        )
        for each in found
    }


def test_rust() -> None:
    head, tail = "pub fn f(c: char) -> u8 { match c {", "_ => 3 } }"
    code = f"{head}\n    '|' | '&' | ';' => 1,\n    'a' => 2,\n    {tail}\n"
    assert parts(RustCodebase.from_texts({"m.rs": code}), RUST) == {
        "line 2: case '|' | '&' | ';'": f"{head} 'a' => 2, {tail}",
        "line 3: case 'a'": f"{head} '|' | '&' | ';' => 1, {tail}",
        "line 2: '|'": f"{head} '&' | ';' => 1, 'a' => 2, {tail}",
        "line 2: ';'": f"{head} '|' | '&' => 1, 'a' => 2, {tail}",
    }
    exhaustive = "pub fn f(c: Side) -> u8 { match c {\n    Side::Left => 1,\n    Side::Right => 2,\n} }\n"
    found = parts(RustCodebase.from_texts({"m.rs": exhaustive}), RUST)
    assert set(found) == {"line 2: case Side::Left", "line 3: case Side::Right"}
    assert all("if true { unimplemented!() } else { " in each for each in found.values()), "else it is not compiled"


def test_go() -> None:
    head, tail = "package a func F(c int) int { switch c {", "default: return 3 } }"
    code = (
        "package a\n\nfunc F(c int) int {\n\tswitch c {\n\tcase 1, 2:\n\t\treturn 1\n\tdefault:\n\t\treturn 3\n\t}\n}\n"
    )
    assert parts(GoCodebase.from_texts({"m.go": code}), GO) == {
        "line 5: case 1, 2": f"{head} {tail}",
        "line 5: 1": f"{head} case 2: return 1 {tail}",
        "line 5: 2": f"{head} case 1: return 1 {tail}",
    }


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ("case 1, 2 -> 5;\ndefault -> 3;", {"line 2: case 1, 2", "line 2: 1", "line 2: 2"}),
        ("case 1:\ncase 2: return 5;\ndefault: return 3;", {"line 2: case 1", "line 3: case 2"}),
        ("case 1: return 5;", {"line 2: case 1"}),
        ("case 1 -> g(5);", set()),  # of an expression, none may be missing
    ],
)
def test_java(cases: str, expected: set[str]) -> None:
    code = f"class A {{ int f(int c) {{ switch (c) {{\n{cases}\n}}\nreturn 0; }} }}\n"
    assert set(parts(JavaCodebase.from_texts({"A.java": code}), JAVA)) == expected


def test_javascript() -> None:
    code = "function f (c) { switch (c) {\n  case 1:\n  case 2: return 1\n} }\n"
    assert parts(JavaScriptCodebase.from_texts({"m.js": code}), JAVASCRIPT) == {
        "line 2: case 1": "function f (c) { switch (c) { case 2: return 1 } }",
        "line 3: case 2": "function f (c) { switch (c) { case 1: } }",
    }


def test_where_go_has_no_case_for_all_else_cases_are_parts() -> None:
    code = "package a\nfunc F(c byte) int {\n\tswitch c {\n\tcase 'a', 'b':\n\t\tG()\n\tcase 'c':\n\t}\n\treturn 2\n}\n"
    found = parts(GoCodebase.from_texts({"m.go": code}), GO)
    assert set(found) == {"line 4: case 'a', 'b'", "line 6: case 'c'", "line 4: 'a'", "line 4: 'b'", "line 5"}


def test_each_operand_is_a_part() -> None:
    code = "function f(c) {\n  return g(c.size ?? c.length ?? 1)\n}\n"
    head, tail = "function f(c) { return g(", ") }"
    assert parts(JavaScriptCodebase.from_texts({"m.js": code}), JAVASCRIPT) == {
        "line 2: c.size": f"{head}c.length ?? 1{tail}",
        "line 2: c.length": f"{head}c.size ?? 1{tail}",
        "line 2: 1": f"{head}c.size ?? c.length{tail}",
    }
