"""Lifted tests in Rust: their observing forms, what is not divided, and what they report when they run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from excise.extractors.reported_texts import as_json, judged, what_is_reported
from excise.extractors.rust.execution.lifted_tests import lifted
from excise.extractors.rust.execution.neutral_values import neutral_value
from excise.protocols import LiftedRun, ReportedValues
from excise.types import Status

from .reporting_programs import reported

SHOWN = re.compile(
    r"match &\((.*?)\) \{ lifted_seen => \{ (?:let _ = \|\| \{ (.*?) \}; )?\(&[\w:]+Seen\(lifted_seen\)\)"
)


def divided(body: str, *, before: str = "") -> list[tuple[str, str]]:
    """What a test with this body reports: each value, and what it is compared with in a closure."""
    form = lifted(f"{before}\n#[test]\nfn t() {{\n{body}\n}}\n".encode(), ["t"], ())
    assert form is not None
    assert form.functions == ("t",), form.refused
    return [(value, compared) for value, compared in SHOWN.findall(form.observing.decode())]


def reason(body: str, *, before: str = "", attributes: str = "", depending: tuple[str, ...] = ()) -> str:
    """Why a test with this body is not divided; empty if it is."""
    form = lifted(f"{before}\n#[test]\n{attributes}\nfn t() {{\n{body}\n}}\n".encode(), ["t"], depending)
    assert form is not None
    return form.refused.get("t", "")


@pytest.mark.parametrize(
    ("check", "reports"),
    [
        ("assert_eq!(f(2), 4, \"of {}\", 2);", [("f(2)", "let _ = *lifted_seen == 0;")]),
        ('assert_eq!(Ok("ab".to_string()), f(2));', [("f(2)", 'let _ = *lifted_seen == Ok("".to_string());')]),
        ("assert_eq!(f(2), vec![4u8, 5]);", [("f(2)", "let _ = *lifted_seen == vec![0u8, 0];")]),
        ("assert_eq!(f(2), (-1.5, 'x', b\"ab\", true));",
         [("f(2)", "let _ = *lifted_seen == (0.0, ' ', b\"xx\", false);")]),
        ("assert!(f(2) == Some(4));", [("f(2)", "let _ = *lifted_seen == Some(0);")]),
        ("assert!(!(f(2) != 4) && !g(3));", [("f(2)", "let _ = *lifted_seen == 0;"), ("g(3)", "")]),
        ("assert_eq!(f(2).is_empty(), false);", [("f(2).is_empty()", "")]),
        ("assert!(bits.contains(3));", [("bits.contains(3)", "")]),
        ("let found = f(2);\n    let four: u8 = 4;\n    assert_eq!(found, four, \"{}\", four);",
         [("found", "let four: u8 = 0; let _ = *lifted_seen == four;")]),
        ("for (n, twice) in &[(1, 2), (2, 4)] { assert_eq!(f(*n), *twice); }",
         [("f(*n)", "let _ = *lifted_seen == *twice;")]),
    ],
)  # fmt: skip
def test_a_check_becomes_a_report_of_what_it_looks_at(check: str, reports: list[tuple[str, str]]) -> None:
    assert divided(check) == reports


def test_the_form_holds_nothing_of_what_is_expected() -> None:
    source = b"""
const ROWS: &[(&str, u8)] = &[("a", 11), ("b", 12)];
#[test]
fn t() {
    let wanted = vec!["thirteen", "fourteen"];
    assert_eq!(names(), wanted, "{:?}", wanted);
    for &(text, number) in ROWS.iter() {
        assert_eq!(parse(text), number, "{} is not {}", text, number);
    }
}

mod inner {
    #[test]
    fn other() -> Result<(), E> { assert_eq!(super::parse("a"), 11); Ok(()) }
}
"""
    form = lifted(source, ["t"], ())
    assert form is not None
    text = form.observing.decode().partition("mod lifted_values")[0]
    assert not re.search(r"11|12|teen|\{:\?\}|is not", text)
    assert '&[("a", 0), ("b", 0)]' in text
    assert "fn other() -> Result<(), E> { unimplemented!() }" in text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("f(2);", "test without a check"),
        ("assert_eq!(f(2), g(4));", "expected value that is computed"),
        ("let four = 4; assert_eq!(f(four), four);", "expected value that is computed"),
        ("let four = g(); assert_eq!(f(2), four);", "expected value that is computed"),
        ("let four = 4; println!(\"{four}\"); assert_eq!(f(2), four);", "expected value that is computed"),
        ("assert_eq!(f(2), FOUR);", "expected value that is computed"),
        ("for (n, found) in &[(1, None), (2, Some(4))] { assert_eq!(f(*n), *found); }",
         "expected value that is computed"),
        ("for (n, found) in &[(1, None), (2, None)] { assert_eq!(f(*n), *found); }",
         "expected value that is computed"),
        ("if let Some(n) = f(2) { assert_eq!(n, 4); }", "check under a condition"),
        ("let n = f(2); if n > 3 { assert_eq!(f(3), 6); }", "comparison outside a check"),
        ("for x in f(3) { assert_eq!(x, 6); }", "check under a condition"),
        ("while let Some(x) = f(3) { assert_eq!(x, 6); }", "check under a condition"),
        ("sort(|a, b| { assert!(ok(a)); assert!(ok(b)); a.cmp(b) });", "check under a condition"),
        ("if done() { return; } assert_eq!(f(3), 6);", "test that may end early"),
        ("assert_eq!(f(3).iter().filter(|x| **x == 44).count(), 3);", "comparison within an operand"),
        ("let r = [f(2) == 44, f(3) == 45]; assert_eq!(r, [true, true]);", "comparison outside a check"),
        ("let n = match f(2) { 44 => 1, _ => 0 }; assert_eq!(n, 1);", "comparison outside a check"),
        ("assert_ne!(f(2), 5);", "check of an inequality"),
        ("assert!(f(2) > 3);", "condition that cannot be divided"),
        ("assert!(!(f(2) == 3));", "condition that cannot be divided"),
        ("assert!(f(2).starts_with(\"a\"));", "condition that cannot be divided"),
        ("assert!(f(2).contains(&4));", "condition that cannot be divided"),
        ("assert!(matches!(f(2), Some(4)));", "macro that may check or fail"),
        ("let right = f(2) == 4; assert!(right);", "comparison outside a check"),
        ("let mut n = 0; if let Some(44) = f(2) { n = 1; } assert_eq!(n, 1);", "comparison outside a check"),
        ("let n = vec![matches!(f(2), Some(44))]; assert!(n[0]);", "macro that may check or fail"),
        ("assert_eq!(f(2) == 4, false);", "condition that cannot be divided"),
        ("if f(2) != 4 { panic!(\"no\"); } assert_eq!(f(3), 6);", "comparison outside a check"),
        ("assert_eq!(run(|| { let n = f(1); assert_eq!(n, 2); n }), 6);", "macro that may check or fail"),
        ("own_check!(f(2), 4); assert_eq!(f(3), 6);", "macro that may check or fail"),
        ("helper(2, 4); assert_eq!(f(3), 6);", "helper that checks"),
        ("common::run(2, 4); assert_eq!(f(3), 6);", "helper that checks"),
        ("more(2, 4); assert_eq!(f(3), 6);", "helper that checks"),
        ("assert_same(f(2), 4); assert_eq!(f(3), 6);", "helper that checks"),
        ("std::thread::spawn(|| f(2)); assert_eq!(f(3), 6);", "threads or caught panics"),
    ],
)  # fmt: skip
def test_other_tests_are_not_divided(body: str, why: str) -> None:
    before = "mod common;\nuse common::more;\nfn helper(n: u8, m: u8) { assert_eq!(f(n), m); }\n"
    assert reason(body, before=before) == why


def test_expected_panics_are_not_divided_and_the_code_under_test_is_no_helper() -> None:
    assert reason("assert_eq!(f(2), 4);", attributes="#[should_panic]") == "expected panic"
    assert reason("assert!(check_digits(2));") == "helper that checks"
    assert reason("assert!(check_digits(2));", depending=("check_digits",)) == ""
    assert lifted(b"fn t( {", ["t"], ()) is None


@pytest.mark.parametrize(
    ("expected", "neutral"),
    [
        ("3u8", "0u8"), ("-5", "0"), ("1e3f32", "0.0f32"), ("[7; 4]", "[0; 4]"), ('r#"a"b"#', '""'),
        (r'b"a\x00\n"', 'b"xxx"'), ("u8::MAX", "u8::MAX"), ("Some(Kind::Small)", "Some(Kind::Small)"),
        ("vec![vec![1], vec![]]", "vec![vec![0], vec![]]"), ("Version::new(1, 2)", "Version::new(0, 0)"),
        ("f(7)", None), ("LIMIT", None), ("Self::LIMIT", None), ("a.len()", None), ("vec![f(1)]", None),
    ],
)  # fmt: skip
def test_neutral_values_have_the_type_and_no_value(expected: str, neutral: str | None) -> None:
    found = neutral_value(expected)
    assert (found.text if found else None) == neutral


CODE = """
use std::collections::HashMap;
use std::rc::Rc;

#[derive(Debug, PartialEq)]
struct Own(u8);
struct NoText;
impl PartialEq<u8> for NoText { fn eq(&self, _: &u8) -> bool { true } }

#[test]
fn plain() -> Result<(), std::num::ParseIntError> {
    assert_eq!("5".parse(), Ok(5u8));
    assert_eq!("7".parse::<u8>()?, 7);
    assert_eq!(&[1u8, 2][..], b"\\x01\\x02");
    assert_eq!(Some(Rc::new(vec![String::from("a")])), Some(Rc::new(vec!["a".to_string()])));
    for n in 0..3 { assert_eq!((n / 4, -0.0), (0, 0.0)); }
    assert!(!"a".is_empty() && 1 + 1 == 2);
    Ok(())
}

#[test]
fn own() { assert_eq!(Some(Own(3)), Some(Own(3))); }

#[test]
fn no_text() { assert!(NoText == 4); }

#[test]
fn unordered() {
    let mut found = HashMap::new();
    found.insert(1, 2);
    let made: HashMap<_, _> = vec![(1, 2)].into_iter().collect();
    assert!(made == HashMap::from([(1, 2)]));
}
"""


@pytest.mark.parametrize("edition", ["2015", "2018", "2021"])
def test_values_of_common_types_are_reported_as_texts(tmp_path: Path, edition: str) -> None:
    names = ["plain", "own", "no_text", "unordered"]
    form = lifted(CODE.encode(), names, ())
    assert form is not None
    assert set(form.functions) == set(names), form.refused
    (tmp_path / "form.rs").write_bytes(form.observing)
    command = ["/usr/bin/rustc", "--test", f"--edition={edition}", "--cap-lints=allow", "form.rs", "-o", "form"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    found = {name: reported(tmp_path / "form", ["--exact", name]) for name in names}
    assert found["plain"] == [
        "1 Ok(5)", "2 7", "3 [1, 2]", '4 Some(["a"])', "5 (0, -0.0)", "6 false", "7 2",
    ]  # fmt: skip
    assert [found[name] for name in names[1:]] == [["OPAQUE"]] * 3


def test_values_are_right_if_they_are_the_originals() -> None:
    def values(*texts: str, returned: bool = True, key: str = "") -> str:
        return as_json({"returned": returned, "values": [[str(n), key, text] for n, text in enumerate(texts)]})

    def status(original: str, seen: str) -> Status:
        run = LiftedRun(functions=(), seen={"t": seen}, originals={"t": what_is_reported(original)})
        return judged(run)[0].status

    assert status(values("3", "0.0"), values("3", "-0.0")) is Status.PASSED
    assert status(values("3", "4"), values("4", "3")) is Status.FAILED
    assert status(values("3"), values("3", returned=False)) is Status.FAILED
    assert status(values("3", returned=False), values("3", returned=False)) is Status.FAILED
    texts = [(), ("true", "true"), ("true", "false"), ("3",)]
    assert [what_is_reported(values(*each)).telling for each in texts] == [False, False, True, True]
    assert judged(LiftedRun(functions=(), seen={"t": values("3")}, originals={"t": ReportedValues()}))[0].status is (
        Status.FAILED
    )
