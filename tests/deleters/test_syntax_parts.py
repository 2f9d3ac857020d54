"""Parts of removed code in languages with braces, without one of which its tests are run."""

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

GO_CODE = """package a

func Put(items []int, b *Box) (int, error) {
	if err := b.open(); err != nil {
		return 0, err
	}
	if len(items) > 3 && b.wide {
		b.grow()
	} else {
		b.size = 1
		log.Printf("small")
	}
	for _, item := range items {
		b.add(item)
	}
	for b.size < 9 {
		b.size++
	}
	for i := 0; i < 3; i++ {
		return i, nil
	}
	panic("never")
}

func stays(b *Box) { b.open() }
"""
JAVA_CODE = """class Box {
    private final int size;
    Box(int size) {
        this.size = size;
        check(size);
    }
    String show(List<String> names, boolean loud) {
        StringBuilder out = new StringBuilder();
        for (String name : names)
            out.append(name);
        for (String name : names) {
            out.append(name);
        }
        while (loud) { out.append('!'); loud = false; }
        log.info("shown");
        return loud || names.isEmpty() ? out.toString() : "";
    }
}
"""
RUST_CODE = """pub fn put(items: &[u32], b: &mut Box) -> Result<u32, Error> {
    if let Some(first) = items.first() {
        b.first = *first;
        b.count += 1;
    }
    for item in items {
        if *item > 3 { b.add(*item)?; }
    }
    debug_assert!(b.is_open());
    let size = if b.wide { 2 } else { 1 };
    loop { b.close(); break; }
    return Ok(size);
}
"""
JAVASCRIPT_CODE = """'use strict';
function put(items, options, done) {
    options = options || {};
    if (err) return done(err);
    if (options.debug) { console.log(items); }
    for (const item of items) {
        this.add(item);
        this.size++;
    }
    if (items.length) done();
    return options.wide ? items : null;
}
"""
CODEBASES: dict[str, tuple[Codebase, PartGrammar]] = {
    "m.go": (GoCodebase.from_texts({"m.go": GO_CODE}), GO),
    "m.java": (JavaCodebase.from_texts({"m.java": JAVA_CODE}), JAVA),
    "m.rs": (RustCodebase.from_texts({"m.rs": RUST_CODE}), RUST),
    "m.js": (JavaScriptCodebase.from_texts({"m.js": JAVASCRIPT_CODE}), JAVASCRIPT),
}


def parts(path: str, first: int = 1, last: int = 99) -> dict[str, str]:
    """What each part is, to what stands in its place with the rest of its lines."""
    codebase, grammar = CODEBASES[path]
    source = codebase.modules[path].source
    found = {}
    for part in syntax_parts(codebase, {path: frozenset(range(first, last))}, grammar):
        start, end = source.rfind(b"\n", 0, part.start) + 1, source.find(b"\n", part.end)
        line = source[start : part.start] + part.replacement + source[part.end : end]
        found[part.what] = " ".join(line.decode().split())
        assert part.is_compiled == (path != "m.js")
    return found


def test_go() -> None:
    assert parts("m.go", last=23) == {
        "line 7: if len(items) > 3 && b.wide": "if (len(items) > 3 && b.wide) && false {",
        "line 7: else": "if (len(items) > 3 && b.wide) || true {",
        "line 7: len(items) > 3": "if ((len(items) > 3) || true) && b.wide {",
        "line 7: b.wide": "if len(items) > 3 && ((b.wide) || true) {",
        "line 8": "if false { b.grow() }",
        "line 10": "if false { b.size = 1 }",
        "line 13: all rounds but one": "; break; }",
        "line 14": "if false { b.add(item) }",
    }


def test_java() -> None:
    assert parts("m.java") == {
        "line 5": "if (false) { check(size); }",
        "line 11: all rounds but one": "break; }",
        "line 12": "if (false) { out.append(name); }",
        "line 16: if loud || names.isEmpty()": 'return (loud || names.isEmpty()) && false ? out.toString() : "";',
        "line 16: else": 'return (loud || names.isEmpty()) || true ? out.toString() : "";',
        "line 16: loud": 'return ((loud) && false) || names.isEmpty() ? out.toString() : "";',
        "line 16: names.isEmpty()": 'return loud || ((names.isEmpty()) && false) ? out.toString() : "";',
    }


def test_rust() -> None:
    assert parts("m.rs") == {
        "line 3": "if false { b.first = *first; }",
        "line 4": "if false { b.count += 1; }",
        "line 6: all rounds but one": "; break; }",
        "line 7: if *item > 3": "if (*item > 3) && false { b.add(*item)?; }",
        "line 10: if b.wide": "let size = if (b.wide) && false { 2 } else { 1 };",
        "line 10: else": "let size = if (b.wide) || true { 2 } else { 1 };",
    }


def test_javascript() -> None:
    assert parts("m.js") == {
        "line 3": "if (false) { options = options || {}; }",
        "line 3: options": "options = {};",
        "line 3: {}": "options = options;",
        "line 6: all rounds but one": "break; }",
        "line 7": "if (false) { this.add(item); }",
        "line 8": "if (false) { this.size++; }",
        "line 10: if (items.length)": "if ((items.length) && false) done();",
        "line 11: if options.wide": "return (options.wide) && false ? items : null;",
        "line 11: else": "return (options.wide) || true ? items : null;",
    }


def test_operands_come_last() -> None:
    """However many there are, branches and statements are tried."""
    assert list(parts("m.go", last=23))[-2:] == ["line 7: b.wide", "line 7: len(items) > 3"]
    assert {*list(parts("m.js"))[-2:]} == {"line 3: options", "line 3: {}"}


def test_only_what_is_gone_is_a_part() -> None:
    assert set(parts("m.go", 25)) == {"line 25"}
    assert set(parts("m.js", 7, 9)) == {"line 7", "line 8"}


@pytest.mark.parametrize("path", CODEBASES)
def test_a_part_belongs_to_the_function_around_it(path: str) -> None:
    codebase, grammar = CODEBASES[path]
    found = {part.symbol for part in syntax_parts(codebase, {path: frozenset(range(1, 24))}, grammar)}
    expected = {"m.java": {"Box.show", "Box.Box"}, "m.go": {"Put"}}.get(path, {"put"})
    assert {symbol.partition("::")[2] for symbol in found} == expected


def test_files_that_cannot_be_parsed_and_test_files_have_none() -> None:
    codebase = GoCodebase.from_texts({"a.go": "package a\nfunc {", "a_test.go": GO_CODE})
    removed = {"a.go": frozenset([1, 2]), "a_test.go": frozenset(range(30)), "gone.go": frozenset([1])}
    assert not list(syntax_parts(codebase, removed, GO))


def all_parts(codebase: Codebase, path: str, grammar: PartGrammar) -> set[str]:
    return {part.what for part in syntax_parts(codebase, {path: frozenset(range(1, 99))}, grammar)}


def test_java_keeps_what_the_compiler_asks_for() -> None:
    code = """class A {
    int size(Object o, int[] items) {
        int found;
        found = 1;
        int other = 2;
        other = 3;
        if (!(o instanceof String s)) return 0;
        if (o instanceof String && found > 1) other++;
        for (int item : items) {
            if (item > 1) { return 1; } else { return 2; }
        }
        for (;; found++) { other++; }
    }
}
"""
    assert all_parts(JavaCodebase.from_texts({"m.java": code}), "m.java", JAVA) == {
        "line 6",
        "line 8: if (o instanceof String && found > 1)",
        "line 8: o instanceof String",
        "line 8: found > 1",
        "line 10: if (item > 1)",
        "line 10: else",
    }


@pytest.mark.parametrize(
    ("branch", "is_part"),
    [
        ("panic(err)", True),
        ("return 0", True),
        ('return fmt.Errorf("so: %w", err)', False),
        ("b.c(); return err", False),
    ],
)
def test_an_error_that_is_not_handed_on_is_a_part(branch: str, *, is_part: bool) -> None:
    code = f"package a\n\nfunc A(err error) any {{\n\tif err != nil {{\n\t\t{branch}\n\t}}\n\treturn 1\n}}\n"
    found = all_parts(GoCodebase.from_texts({"m.go": code}), "m.go", GO)
    assert ("line 4: if err != nil" in found) is is_part


def test_cases_that_must_all_be_there_fail_instead() -> None:
    code = (
        "pub fn a(b: Either<u8, u8>) -> Option<u8> {\n    match b {\n        Left(_) => None,\n"
        "        Right(c) => { d(c) }\n    }\n}\n\npub fn e(f: G) -> G {\n    match f {\n        Ok(h) => h.i(),\n"
        "        Err(j) => return Err(j.into()),\n        K => unreachable!(),\n    }\n}\n"
    )
    fails = "if true { unimplemented!() } else { %s }"
    assert lesser("m.rs", code, ": case ") == {
        code.replace(value, fails % value) for value in ("None", "{ d(c) }", "h.i()")
    }


@pytest.mark.parametrize(
    ("path", "code", "call", "value"),
    [
        ("m.java", "class A {\n    byte[] a(String b) {\n        return c(%s);\n    }\n}\n", "D.bytes(b)", "b"),
        ("m.go", "package a\n\nfunc A(b string) int {\n\treturn c(%s, 1)\n}\n", "d.Lower(b)", "b"),
        ("m.rs", "pub fn a(b: &str) -> u8 {\n    c(%s)\n}\n", "b.trim()", "b"),
        ("m.js", "const a = (b) => c(1, %s)\n", "String(b)", "b"),
        ("m.js", "const a = (b) => c(%s)\n", "d(b, 1)", ""),
        ("m.js", "const a = (b) => c(%s) && b\n", "d(b)", ""),
    ],
)
def test_where_there_is_nothing_else_arguments_are_parts(path: str, code: str, call: str, value: str) -> None:
    assert lesser(path, code % call, f": {call}") == ({code % value} if value else set())


def test_rust_keeps_first_values() -> None:
    code = "pub fn a(b: bool) -> u8 {\n    let size;\n    size = 1;\n    let mut n = 2;\n    n = 3;\n    size + n\n}\n"
    assert all_parts(RustCodebase.from_texts({"m.rs": code}), "m.rs", RUST) == {"line 5"}


def test_files_with_types_are_compiled() -> None:
    codebase = JavaScriptCodebase.from_texts(
        {"m.ts": "export function put(x: number) {\n  if (x) { x = 1; x = 2; }\n}\n"}
    )
    assert {part.is_compiled for part in syntax_parts(codebase, {"m.ts": frozenset(range(9))}, JAVASCRIPT)} == {True}


@pytest.mark.parametrize(
    ("path", "code", "value"),
    [
        ("m.rs", "pub fn a(b: u8) -> bool {\n    let c = 1;\n    %s // so\n}\n", "b < c && !(c == 2)"),
        ("m.rs", "pub fn a(b: u8) -> bool {\n    return %s;\n}\n", "b != 0"),
        ("m.go", "package a\n\nfunc A(b int) bool {\n	return %s\n}\n", "b < 3 || !c(b)"),
        ("m.java", "class A {\n    boolean a(int b) {\n        return %s;\n    }\n}\n", "(b >= 3)"),
        ("m.js", "function a(b) {\n  return %s\n}\n", "b === 3"),
        ("m.js", "function a(b) {\n  return %s\n}\n", "!b"),
    ],
)
def test_a_result_tells_two_cases_apart(path: str, code: str, value: str) -> None:
    found = lesser(path, code % value, ": all but ")
    assert found == {code % f"({value}) || true", code % f"({value}) && false"}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("m.rs", "pub fn a(b: u8) -> u8 {\n    !b\n}\n"),
        ("m.rs", "pub fn a(b: u8) -> u8 {\n    if b > 1 { c(b < 2) } else { b == 1; 3 }\n}\n"),
        ("m.go", "package a\n\nfunc A(b int) (bool, error) {\n	return b < 3, nil\n}\n"),
        ("m.java", "class A {\n    int a(int b) {\n        return -b;\n    }\n}\n"),
        ("m.js", "function a(b) {\n  return b.c && b > 3\n}\n"),
    ],
)
def test_other_results_stay(path: str, code: str) -> None:
    assert not lesser(path, code, ": all but ")


def lesser(path: str, code: str, what: str) -> set[str]:
    """A file without each part that is described like this."""
    codebase = type(CODEBASES[path][0]).from_texts({path: code})  # type: ignore[attr-defined]
    found = syntax_parts(codebase, {path: frozenset(range(1, 99))}, CODEBASES[path][1])
    data = code.encode()
    return {(data[: p.start] + p.replacement + data[p.end :]).decode() for p in found if what in p.what}


@pytest.mark.parametrize(
    ("path", "code", "single"),
    [
        ("m.js", "function a(b) {\n  b.c(0, -1)|.forEach(function (d) { e(d) })\n}\n", ".slice(0, 1)"),
        ("m.js", "function a(b) {\n  return b|.reduce((c, d) => c + d, 0)\n}\n", ".slice(0, 1)"),
        ("m.js", "function a(b) {\n  b?.forEach((c) => d(c))\n  e.forEach(b, c, () => d)\n  b.every(c)\n}\n", ""),
        (
            "m.java",
            "class A {\n    boolean a(B b) {\n        return b.c()|.anyMatch(d -> d > 1);\n    }\n}\n",
            ".limit(1)",
        ),
        ("m.rs", "pub fn a(b: &str) -> bool {\n    b.chars()|.all(|c| c > 'd')\n}\n", ".take(1)"),
    ],
)
def test_calls_for_each_item_have_rounds(path: str, code: str, single: str) -> None:
    """``|`` marks where what makes it one round is written."""
    before, _, after = code.partition("|.") if single else (code, "", "")
    expected = {f"{before}{single}.{after}"} if single else set()
    assert lesser(path, f"{before}.{after}" if single else code, ": all rounds but one") == expected


def test_kinds_of_errors_are_parts_of_javascript() -> None:
    code = "function a(b) {\n  throw new RangeError(b)\n}\nfunction c(d) {\n  throw new Error(d)\n}\n"
    assert lesser("m.js", code, ": RangeError") == {code.replace("RangeError", "Error")}
    assert not lesser("m.js", code, ": Error")


def test_each_of_several_functions_returns_its_argument_in_javascript() -> None:
    code = (
        "function a(b, c) {\n  return b + c\n}\nclass D {\n  e(f = 1) {\n    return [f]\n  }\n}\n"
        "const g = (h) => {\n  return h(() => { return 1 })\n}\nfunction i(j) {\n  k(() => { return j })\n}\n"
        "function l({ m }) {\n  return m + 1\n}\nfunction* n(o) {\n  return yield o\n}\n"
    )
    assert lesser("m.js", code, "all but ") == {
        code.replace("(b, c) {", "(b, c) { return b;"),
        code.replace("(f = 1) {", "(f = 1) { return f;"),
        code.replace("(h) => {", "(h) => { return h;"),
    }
    assert not lesser("m.js", "function a(b) {\n  return b + 1\n}\n", "all but ")


def test_functions_that_only_return_their_argument_have_no_lesser_one() -> None:
    code = "function id(x) {\n  // as it is\n  return x;\n}\nfunction up(x) {\n  return x + 1;\n}\n"
    codebase = JavaScriptCodebase.from_texts({"a.js": code})
    found = syntax_parts(codebase, {"a.js": frozenset(range(1, 9))}, JAVASCRIPT)
    assert {each.symbol for each in found} == {"a.js::up"}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("m.rs", "pub fn a(b: &B) -> u8 {\n    c(b.clone())\n}\n"),
        ("m.java", "class A {\n    B a(int b) {\n        return c.append(String.valueOf(b));\n    }\n}\n"),
        ("m.go", 'package a\n\nfunc A(b B) string {\n	return fmt.Sprintf("%s", b.String())\n}\n'),
    ],
)
def test_conversions_without_which_much_is_the_same_are_no_parts(path: str, code: str) -> None:
    assert not lesser(path, code, "line ")
    assert lesser(path, code.replace("clone", "len").replace("valueOf", "hide").replace("String()", "Len()"), "line ")


@pytest.mark.parametrize(
    ("path", "code", "rest"),
    [
        ("m.go", "package a\n\nfunc A(b rune) bool {\n\tswitch b {\n\tcase 'a', 'b', 'c', 'd':\n\t\treturn true\n\t}\n"
         "\treturn false\n}\n", ", 'b', 'c', 'd'"),
        ("m.rs", "pub fn a(b: char) -> bool {\n    match b {\n        'a' | 'b' | 'c' | 'd' => true,\n"
         "        _ => false,\n    }\n}\n", " | 'b' | 'c' | 'd'"),
    ],
)  # fmt: skip
def test_all_but_one_of_many_values_of_a_case_are_a_part(path: str, code: str, rest: str) -> None:
    assert lesser(path, code, ": all values but 'a'") == {code.replace(rest, "")}
    assert not lesser(path, code.replace(rest[-6:], ""), ": all values but")
