"""Rust: symbols and references, test modules in files of their own, mirrored tests, the reader in the sandbox."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from excise.envs.sandbox.mount_points import SHARED_PROGRAMS
from excise.extractors.fetch.trees import list_files
from excise.extractors.languages import detect_language, get_language
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.extractors.rust.analysis.inline_tests import separate_tests, separated
from excise.extractors.rust.execution.mirrored_tests import mirrored
from excise.extractors.rust.execution.rust_grading import RustGrading
from excise.types import Symbol, SymbolKind
from excise.verifiers.leaks.decoders.rust_objects import RustObjects
from excise.verifiers.leaks.fragments import DecodingLimits
from excise.verifiers.shipped_tree import scrub, scrubbed

REPO = Path(__file__).parents[1] / "repos" / "lengths"
FILES = {
    "src/lib.rs": """//! A crate.
mod more;

/// Holds things.
#[derive(Clone)]
pub struct Bag<T> {
    items: Vec<T>,
}

impl<T: Clone> Bag<T> {
    /// Says how many.
    ///
    /// Always.
    #[inline]
    pub fn size(&self) -> usize {
        if self.items.is_empty() && true { more::none() } else { self.items.len() }
    }

    const fn limit() -> usize { 3 }
}

impl<T> std::fmt::Display for Bag<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { write!(f, "{}", helper(1)) }
}

impl<T> std::fmt::Debug for Bag<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { Ok(()) }
}

fn helper(n: usize) -> usize { n + Bag::<u8>::limit() }

pub fn all() -> impl Iterator<Item = u8> { 0..3 }

#[cfg(test)]
mod tests;
""",
    "src/more.rs": "pub(crate) fn none() -> usize { 0 }\n\npub mod inner {\n    pub fn deep() {}\n}\n",
    "src/tests.rs": "use super::*;\nmod util;\n\n#[test]\nfn sizes() { let b = Bag { items: vec![1] }; b.size(); }\n",
    "src/tests/util.rs": "pub fn check() {}\n",
    "src/other.rs": "",
    "tests/api.rs": "#[test]\nfn works() {}\n",
    "benches/b.rs": "",
}


@pytest.fixture
def codebase() -> RustCodebase:
    return RustCodebase.from_texts(FILES, names=["bags"])


def symbol(codebase: RustCodebase, name: str) -> Symbol:
    return codebase.symbols()[f"src/lib.rs::{name}"]


def inside(name: str) -> ModuleType:
    """A program of the sandbox."""
    if name in sys.modules:
        return sys.modules[name]
    folders = (get_language("rust").inside, SHARED_PROGRAMS)
    path = next(path for folder in folders if (path := folder / f"{name}.py").is_file())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_signature_on_several_lines_is_spelled_on_one() -> None:
    source = "pub fn cut(\n    text: &str,\n    ends: (usize, usize),\n) -> String {\n    text.to_string()\n}\n"
    codebase = RustCodebase.from_texts({"src/lib.rs": source}, names=["kit"])
    assert symbol(codebase, "cut").signature == "pub fn cut(text: &str, ends: (usize, usize)) -> String"


def test_symbols_have_spans_signatures_and_documentation(codebase: RustCodebase) -> None:
    size = symbol(codebase, "Bag.size")
    assert (size.kind, size.signature, size.docstring, size.complexity, size.is_public) == (
        SymbolKind.METHOD, "pub fn size(&self) -> usize", "Says how many.\n\nAlways.", 3, True,
    )  # fmt: skip
    source = codebase.modules["src/lib.rs"].source
    assert source[size.code_start :].startswith(b"if self.items")
    assert (symbol(codebase, "Bag").signature, symbol(codebase, "Bag").docstring) == (
        "pub struct Bag<T>", "Holds things.",
    )  # fmt: skip
    assert symbol(codebase, "Bag.fmt#2").is_callable
    assert "src/more.rs::inner.deep" in codebase.symbols()


def test_names_are_resolved_by_name_module_and_type(codebase: RustCodebase) -> None:
    assert codebase.callees("src/lib.rs::Bag.size") >= {"src/more.rs::none"}
    assert codebase.callees("src/lib.rs::Bag.fmt") >= {"src/lib.rs::helper"}
    assert "src/tests.rs::sizes" in codebase.callers("src/lib.rs::Bag.size")


def test_what_is_run_while_rust_compiles_and_what_has_no_known_type_stays(codebase: RustCodebase) -> None:
    kept = {s.qualname for s in codebase.symbols().values() if s.is_callable and not codebase.is_removable(s.symbol_id)}
    assert kept == {"Bag.limit", "all"}
    assert codebase.compiled_name("src/lib.rs::Bag.fmt#2") == "bags::Bag::fmt"


def test_modules_that_only_tests_have_are_tests_and_so_are_theirs(codebase: RustCodebase) -> None:
    found = {path for path in FILES if codebase.is_test(path)}
    assert found == {"src/tests.rs", "src/tests/util.rs", "tests/api.rs", "benches/b.rs"}
    assert codebase.is_vendored("vendor/x/src/lib.rs")


def test_test_modules_move_into_files_of_their_own() -> None:
    source = (
        b'fn f() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn a() {\n        let x = "b\n'
        b'  c";\n    }\n}\n\nmod inner {\n    #[cfg(test)]\n    mod more { #[test] fn b() {} }\n}\nfn g() {}\n'
    )
    after, moved = separated("src/deep/part.rs", source, set())
    assert after == (
        b"fn f() {}\n\n#[cfg(test)]\nmod tests;\n\nmod inner {\n    #[cfg(test)]\n    mod more;\n}\nfn g() {}\n"
    )
    assert moved == {
        "src/deep/part/tests.rs": b'use super::*;\n\n#[test]\nfn a() {\n    let x = "b\n  c";\n}\n',
        "src/deep/part/inner/more.rs": b"#[test] fn b() {}\n",
    }
    assert separated("src/lib.rs", source, set())[1].keys() == {"src/tests.rs", "src/inner/more.rs"}
    bench = b'#[cfg(all(feature = "slow", any(a, b), test))]\nmod speed { #[bench] fn a(b: &mut Bencher) {} }\n'
    assert separated("src/lib.rs", bench, set())[1].keys() == {"src/speed.rs"}
    assert separated("src/lib.rs", bench.replace(b"all(", b"any("), set())[1] == {}
    by_macro = (
        b"#[cfg(test)]\nmod tests {\n    macro_rules! t { ($n:ident) => { #[test] fn $n() {} } }\n    t!(a);\n}\n"
    )
    assert separated("src/lib.rs", by_macro, set())[1].keys() == {"src/tests.rs"}


def test_tests_in_no_module_move_into_one() -> None:
    source = (
        b"//! A crate.\n#[cfg(test)]\nuse std::fmt;\n\npub fn one() -> u32 { 1 }\n\n// It is.\n#[test]\n"
        b"fn is_one() { assert_eq!(one(), 1); }\n\n#[test]\n#[should_panic]\nfn fails() { panic!() }\n\n"
        b"fn two() -> u32 { 2 }\n\n#[test]\nfn relative() { assert_eq!(self::one(), 1); }\n"
    )
    after, moved = separated("src/lib.rs", source, set())
    assert after == (
        b"//! A crate.\n#[cfg(test)]\nuse std::fmt;\n\npub fn one() -> u32 { 1 }\n\nfn two() -> u32 { 2 }\n\n"
        b"#[test]\nfn relative() { assert_eq!(self::one(), 1); }\n\n#[cfg(test)]\nmod tests;\n"
    )
    assert moved == {
        "src/tests.rs": (
            b"use super::*;\n\n// It is.\n#[test]\nfn is_one() { assert_eq!(one(), 1); }\n\n"
            b"#[test]\n#[should_panic]\nfn fails() { panic!() }\n"
        )
    }
    assert separated("src/lib.rs", source, {"src/tests.rs"})[1].keys() == {"src/loose_tests.rs"}
    assert separated("src/lib.rs", after, {"src/tests.rs", "src/loose_tests.rs"}) == (after, {})
    for other in (b"fn a() {} #[test] fn b() { a() }\n", b"#[test]\nfn b() {}\n\n#[cfg(test)]\nfn c() { b() }\n"):
        assert separated("src/lib.rs", other, set()) == (other, {})


@pytest.mark.parametrize(
    ("path", "is_moved"),
    [
        ("src/lib.rs", True), ("src/unit.rs", False), ("src/inc.rs", False), ("x/tests/it.rs", False),
        ("data/x.rs", False), ("x/src/lib.rs", True),
    ],
)  # fmt: skip
def test_only_files_with_code_of_a_crate_lose_loose_tests(tmp_path: Path, path: str, is_moved: bool) -> None:
    test = "#[test]\nfn works() {}\n"
    files = {"src/other.rs": '#[cfg(test)]\n#[path = "unit.rs"]\nmod tests;\ninclude!("inc.rs");\n', path: test}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    separate_tests(tmp_path)
    assert ((tmp_path / path).read_text() != test) is is_moved


@pytest.mark.parametrize(
    ("code", "present"),
    [
        ('    #[test]\n    fn a() { include_str!("x"); }\n', set()),
        ("    mod other;\n    #[test]\n    fn a() {}\n", set()),
        ("    fn helper() {}\n", set()),
        ("    #[test]\n    fn a() {}\n", {"src/tests/mod.rs"}),
    ],
    ids=["reads a file", "has files", "no tests", "is there"],
)
def test_a_module_that_would_mean_something_else_stays(code: str, present: set[str]) -> None:
    source = f"#[cfg(test)]\nmod tests {{\n{code}}}\n".encode()
    assert separated("src/lib.rs", source, present) == (source, {})


def test_scrubbing_separates_tests_once(tmp_path: Path) -> None:
    root = tmp_path / "lengths"
    shutil.copytree(REPO, root)
    scrub(root, "rust")
    first = {path: (root / path).read_bytes() for path in list_files(root)}
    assert {"src/tests.rs", "src/units/tests.rs"} <= first.keys()
    scrub(root, "rust")
    assert {path: (root / path).read_bytes() for path in list_files(root)} == first


def with_plain_names(form: bytes | None) -> str:
    """A mirrored form with the same names each time."""
    text = (form or b"").decode()
    name = re.search(r"mod (n[0-9a-f]{10}) ", text)
    return text.replace(name[1], "notes") if name else text


def test_wrong_literals_and_checks_turned_round_make_mirrored_tests() -> None:
    source = b"""use super::*;

fn check(text: &str, n: u8) {
    assert_eq!(parse(text), n);
}

#[test]
fn literals() {
    assert_eq!(f(2), vec![4, 5], "why {}", 1);
    assert!(g(1));
    assert_eq!(f(3), h(4));
}

#[test]
#[should_panic]
fn panics() { f(0); }

mod inner {
    #[test]
    fn by_a_helper() -> Result<(), E> { super::check("1", 1); Ok(()) }

    #[test]
    fn without() { f(1); }
}
"""
    text = with_plain_names(mirrored(source, ["literals", "panics", "inner::by_a_helper"]))
    assert "self::notes::differs(!(*notes_left == *notes_right), || self::notes::differing(false, notes_left" in text
    assert "match (&(f(2)), &(vec![0, 5]))" in text
    assert 'self::notes::holds(!!(g(1)), || self::notes::Message::Plain("assertion failed: g(1)"));' in text
    assert "mirror" not in text
    assert "#[should_panic]" not in text
    assert "fn notes_run() -> Result<(), E> {" in text
    assert "self::super::notes::begin(false);" in text
    assert "self::notes::are_alike(notes_left, notes_right)" in text
    assert mirrored(source, ["inner::without"]) is None


@pytest.mark.parametrize(
    ("expected", "other"),
    [
        ("3u8", "0u8"), ("0", "1"), ("-5", "-0"), ("true", "false"), ('"ab"', '"~ab"'), ('b"ab"', 'b"xb"'),
        ("'x'", "'y'"), ("1.5", "0.75"), ("Some(Ok(7))", "Some(Ok(0))"), ('"a".to_string()', '"~a".to_string()'),
        ("Version::new(1, 2)", "Version::new(0, 2)"), ("[1; 4]", "[0; 4]"), ("&[1, 2][..]", "&[0, 2][..]"),
        ("f(7)", ""), ("expected", ""), ("a.len()", ""), ("None", ""),
    ],
)  # fmt: skip
def test_only_plain_expected_values_get_other_literals(expected: str, other: str) -> None:
    text = with_plain_names(mirrored(f"#[test]\nfn t() {{ assert_eq!(got(), {expected}); }}\n".encode(), ["t"]))
    assert f"match (&(got()), &({other or expected})) " in text
    assert ("differs(!(*notes_left == *notes_right)," in text) == bool(other)


def test_canaries_are_five_tests_that_depend_on_the_seed() -> None:
    name, canaries = RustGrading().canaries("seed", b"")
    assert name.endswith(".rs")
    assert len(set(canaries.tests)) == 5
    assert (name, canaries) == RustGrading().canaries("seed", b"x")
    assert name != RustGrading().canaries("other", b"")[0]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("Cargo.toml", "manifest"), ("Cargo.lock", "manifest"), ("build.rs", "manifest"), (".cargo/config", "manifest"),
        ("rust-toolchain.toml", "manifest"), ("vendor/a/src/lib.rs", "manifest"), ("tests/api.rs", "test"),
        ("benches/b.rs", "test"), ("src/data.inc", "no_source"), ("README.md", "no_source"),
        (".git/config", "version_control"), ("src/lib.rs", ""), ("src/a/b.rs", ""),
    ],
)  # fmt: skip
def test_only_sources_of_a_solution_count(path: str, reason: str) -> None:
    assert RustGrading().forbidden(path, ours=False) == reason


def test_languages_are_told_by_files(tmp_path: Path) -> None:
    assert detect_language(REPO) == "rust"
    (tmp_path / "a.rs").write_text("fn f() {}\n")
    assert detect_language(tmp_path) == "rust"


def test_what_cargo_makes_is_no_source() -> None:
    paths = [
        "target/CACHEDIR.TAG",
        "target/debug/x",
        "src/target/mod.rs",
        "a.rlib",
        ".cargo-checksum.json",
        "src/lib.rs",
    ]
    assert scrubbed(paths, "rust") == {"target/CACHEDIR.TAG", "target/debug/x", "a.rlib", ".cargo-checksum.json"}


def test_the_sandbox_finds_tests_and_modules_in_tokens() -> None:
    source = """#![allow(x)]
//! Text with fn a() {}
/* /* nested */ #[test] fn no() {} */
use a::{b, c};
const TEXT: &str = r#"mod no; "fn" {"#;
const X: [u8; 2] = { [b'{', b'\\''] };
#[cfg(test)] #[path = "other.rs"] pub mod far;
pub(crate) mod near;
macro_rules! m { () => { #[test] fn no() {} } }
fn life<'a>(x: &'a str) -> &'a str where { x }
#[test] #[should_panic(expected = "no \\"parts\\"")] fn one() { let f = |x: char| x == '}'; f('{'); }
mod inner { #[test] #[ignore] async fn two() {} mod deep { #[core::prelude::v1::test] fn three() {} } }
#[test]
fn last() { assert_eq!(std::assert!(1), assert!(2)); }
"""
    file = inside("excise_rust_source").SourceFile(source)
    assert [(t.name, t.modules) for t in file.tests] == [
        ("one", ()), ("two", ("inner",)), ("three", ("inner", "deep")), ("last", ()),
    ]  # fmt: skip
    assert [t.is_ignored for t in file.tests] == [False, True, False, False]
    assert file.tests[0].expected_panic == '"no \\"parts\\""'
    assert file.files == [((), "far", "other.rs"), ((), "near", "")]
    assert source[file.ends["inner", "deep"] :].startswith("} }\n#[test]")
    assert [source[t.start : t.end + 3] for t in file.calls_of({"assert", "assert_eq"})] == [
        "assert_eq!(s",
        "assert!(2",
    ]


def test_sources_that_may_read_tests_are_told(tmp_path: Path) -> None:
    grade = importlib_grade()
    (tmp_path / "src").mkdir()
    (tmp_path / "README.md").write_text("")
    library = tmp_path / "src" / "lib.rs"
    for text, is_told in (
        ('#![doc = include_str!("../README.md")]', False),
        ('const T: &str = include_str!("tests.rs");', True),
        ('const T: &str = include_str!("../nothing.md/../tests/x.txt");', True),
        ("use core::include_str as read;", True),
        ('core::arch::global_asm!("");', True),
        ("// a wasm module includes strings", False),
    ):
        library.write_text(text)
        assert bool(grade.problem_of_sources(str(tmp_path), set())) == is_told, text


def test_a_file_that_a_solution_declares_below_the_tests_is_no_helper(tmp_path: Path) -> None:
    for path, text in {
        "src/lib.rs": "#[cfg(any())]\nmod tests { mod more; }\n#[cfg(test)]\nmod tests;\n"
        '#[path = "tests/more.rs"]\nmod more;\n',
        "src/tests.rs": "#[test]\nfn works() {}\n",
        "src/tests/more.rs": 'const T: &str = include_str!("../tests.rs");\n',
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    restored = {str(tmp_path / "src/tests.rs")}
    found = importlib_grade().problem_of_sources(str(tmp_path), restored)
    assert found == "src/tests/more.rs: include_str may read the tests"


def importlib_grade() -> ModuleType:
    for name in ("excise_rust_source", "excise_rust_build", "excise_test_process"):
        inside(name)
    return inside("excise_rust_grade")


def test_names_of_functions_are_read_from_both_manglings() -> None:
    paths = (
        "lengths units factor", "bags Bag$LT$T$GT$ size", "lengths parse _$u7b$$u7b$closure$u7d$$u7d$",
        "_$LT$lengths..Length$u20$as$u20$core..fmt..Display$GT$ fmt",
    )  # fmt: skip
    mangled = ["".join(f"{len(part)}{part}" for part in (*path.split(), "h0123456789abcdef")) for path in paths]
    symbols = [*(f"_ZN{each}E" for each in mangled), "_RNvNtCs4fqI2P2rA04_6strsim6jaroes4jaro"]
    data = b"\x7fELF\0" + "\0".join(symbols).encode()
    assert RustObjects().fits(data)
    names = {shape.name for shape in RustObjects().parts(data, DecodingLimits())}
    assert names >= {"lengths::factor", "lengths::units::factor", "lengths::Length::fmt", "bags::Bag::size"}
    assert "strsim::jaro" in names


CODE = """
pub fn double(n: u32) -> RESULT { BODY }
pub fn other(n: u32) -> u32 { n + n }

#[derive(Debug)]
pub struct Any;
impl<T> PartialEq<T> for Any { fn eq(&self, _: &T) -> bool { true } }
impl PartialEq<Any> for u32 { fn eq(&self, _: &Any) -> bool { true } }

fn check(n: u32) { assert_eq!(double(n), other(n)); }

#[test]
fn by_literal() { assert_eq!(double(2), 4); assert_eq!(6, double(3)); assert!(true); }

#[test]
fn by_code() { assert_eq!(double(2), other(2)); }

#[test]
fn by_a_helper() { check(1); check(2); }

#[test]
fn returns_early() -> Result<(), String> {
    assert_ne!(other(2), 5);
    if other(1) == 2 { return Ok(()); }
    Err(String::new())
}

#[test]
#[should_panic(expected = "no")]
fn panics() { if other(1) == 2 { panic!("no"); } }

macro_rules! doubles {
    ($($name:ident: $n:expr => $twice:expr;)*) => {
        $(
            #[allow(unused)]
            #[test]
            fn $name() { let n = $n; assert_eq!(double(n), $twice, "of {}", n); }
        )*
    };
}

doubles! { by_macro: 2 => other(2); by_macro_with_literal: 3 => 6; }
"""
TESTS = ("by_literal", "by_code", "by_a_helper", "returns_early", "panics", "by_macro", "by_macro_with_literal")


@pytest.mark.parametrize(
    ("result", "body", "passing"),
    [("u32", "n * 2", set()), ("Any", "let _ = n; Any", {*TESTS} - {"returns_early", "panics"})],
    ids=["right", "equal to everything"],
)
def test_mirrored_tests_fail_with_right_code_and_pass_with_values_that_equal_everything(
    tmp_path: Path, result: str, body: str, passing: set[str]
) -> None:
    source = CODE.replace("RESULT", result).replace("BODY", body)
    outcomes = {}
    for name, text in (("plain", source.encode()), ("mirrored", mirrored(source.encode(), TESTS))):
        assert text is not None
        (tmp_path / f"{name}.rs").write_bytes(text)
        command = ["/usr/bin/rustc", "--test", "--edition=2018", "--cap-lints=allow", f"{name}.rs", "-o", name]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        one_by_one = [tmp_path / name, "--test-threads=1"]  # a graded process runs one test
        done = subprocess.run(one_by_one, capture_output=True, text=True, check=False)
        outcomes[name] = set(re.findall(r"(?m)^test (\w+)(?: - should panic)? \.\.\. ok$", done.stdout))
    assert outcomes["plain"] == set(TESTS)
    assert outcomes["mirrored"] == passing, done.stdout


def test_macros_of_tests_and_helpers_are_called_by_paths_that_no_crate_defines_anew(tmp_path: Path) -> None:
    files = {
        "tests/api.rs": "#[macro_use]\nmod own;\nmod common;\n\n"
        "#[test]\nfn works() { common::check(1); assert_eq!(1, 2); }\n",
        "tests/own.rs": "macro_rules! assert_eq { ($($all:tt)*) => {}; }\n",
        "tests/common/mod.rs": 'pub fn check(n: u8) { assert_eq!(n, 1, "{}", format!("{n}")); }\n',
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    root_file = str(tmp_path / "tests/api.rs")
    test = "tests/api.rs::works"
    known, written = importlib_grade().write_harnesses(str(tmp_path), [("test", "api", root_file)], [test], {})
    assert len(written) == 3
    assert re.search(r"crate::common::z\w+::std::assert_eq!\(n", (tmp_path / "tests/common/mod.rs").read_text())
    command = ["/usr/bin/rustc", "--test", "--edition=2021", "--cap-lints=allow", root_file, "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    listed = subprocess.run([tmp_path / "program", "--list"], capture_output=True, text=True, check=True).stdout
    assert f"{known[test].harness}: test" in listed
    done = subprocess.run([tmp_path / "program", "--exact", "works"], capture_output=True, text=True, check=False)
    assert done.returncode != 0, "the macro of the crate would have checked nothing"
