"""What hidden tests in Rust need besides names, and which of their checks can be watched."""

from __future__ import annotations

import pytest

from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.extractors.rust.analysis.grammar import descendants, parse_tree
from excise.extractors.rust.execution.checks import checked_values
from excise.extractors.rust.needs import find_needs


def test_texts_that_tests_expect_are_details() -> None:
    files = {
        "src/lib.rs": "pub fn f(n: i32) -> Result<i32, String> {\n    if n < 0 {\n"
        '        return Err(format!("bad: {} is negative", n));\n    }\n    use_it("unseen");\n    Ok(n)\n}\n\n'
        'pub fn g() -> &\'static str {\n    "the answer"\n}\n\n#[cfg(test)]\nmod tests;\n',
        "src/tests.rs": 'const TABLE: [&str; 1] = ["bad: -1 is negative"];\n\n'
        "#[test]\nfn f_fails() { check(TABLE) }\n\n"
        '#[test]\nfn g_answers() { assert_eq!(g(), "the answer"); }\n',
    }
    codebase = RustCodebase.from_texts(files)
    tests = ["src/tests.rs::f_fails", "src/tests.rs::g_answers"]
    needs = find_needs(codebase, ["src/lib.rs::f", "src/lib.rs::g"], tests)
    assert [(n.word, n.owner, n.tests, n.template, n.is_answer) for n in needs] == [
        (" is negative", "src/lib.rs::f", ("src/tests.rs::f_fails",), "bad: {} is negative", False),
        ("bad: ", "src/lib.rs::f", ("src/tests.rs::f_fails",), "bad: {} is negative", False),
        ("the answer", "src/lib.rs::g", ("src/tests.rs::g_answers",), "", True),
    ]


def test_panics_of_other_code_that_tests_expect_are_details() -> None:
    files = {
        "src/lib.rs": "pub fn grow(n: usize) -> Vec<u8> {\n    Vec::with_capacity(n)\n}\n\n#[cfg(test)]\nmod tests;\n",
        "src/tests.rs": '#[test]\n#[should_panic(expected = "capacity overflow")]\n'
        "fn too_large() { grow(usize::MAX); }\n",
    }
    needs = find_needs(RustCodebase.from_texts(files), ["src/lib.rs::grow"], ["src/tests.rs::too_large"])
    assert [(str(n.kind), n.word, n.owner) for n in needs] == [("message", "capacity overflow", "src/lib.rs::grow")]


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ('assert_eq!(f(), "a?");', 2),
        ('assert_eq!(f(), r#"a?"#);', 2),
        ("assert_eq!(f(), '?');", 2),
        ('assert_eq!(f()?, "a");', 0),
    ],
)
def test_checks_that_may_end_a_function_are_none(call: str, values: int) -> None:
    source = f"fn t() {{ {call} }}".encode()
    tree = next(n for n in descendants(parse_tree(source).root_node) if n.type == "token_tree")
    assert len(checked_values("assert_eq", tree, source)) == values
