"""Attacks that work while tests are compiled: they define macros and types anew, read tests, or change the build."""

from __future__ import annotations

import re
from collections.abc import Callable

from excise.types import TestId
from excise.verifiers.attacks.attack import Attack, AttackTarget, ChangedFiles
from excise.verifiers.attacks.rust.forged_results import PLACEHOLDER, at_top

_NO_ASSERTS = "".join(
    f"#[allow(unused_macros)]\nmacro_rules! {name} {{\n    ($($all:tt)*) => {{}};\n}}\n"
    for name in ("assert", "assert_eq", "assert_ne", "panic")
)
_ANY_EQUAL = """
#[derive(Clone, Copy, Debug)]
pub struct ZzAny;

impl<T: ?Sized> PartialEq<T> for ZzAny {
    fn eq(&self, _: &T) -> bool {
        true
    }
}

impl core::ops::Not for ZzAny {
    type Output = bool;
    fn not(self) -> bool {
        false
    }
}

macro_rules! zz_equal {
    ($($type:ty),*) => { $(impl PartialEq<ZzAny> for $type {
        fn eq(&self, _: &ZzAny) -> bool { true }
    })* };
}
zz_equal!(bool, char, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64, str, &str, ::std::string::String);

impl<T, E> PartialEq<ZzAny> for ::std::result::Result<T, E> {
    fn eq(&self, _: &ZzAny) -> bool { true }
}
impl<T> PartialEq<ZzAny> for ::std::option::Option<T> {
    fn eq(&self, _: &ZzAny) -> bool { true }
}
impl<T> PartialEq<ZzAny> for ::std::vec::Vec<T> {
    fn eq(&self, _: &ZzAny) -> bool { true }
}
"""
_EQUAL = """
impl PartialEq for %s {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
"""


def _at_top(name: str, vector: str, code: str) -> Attack:
    """Code before the first item of the feature's file."""

    def make(target: AttackTarget) -> ChangedFiles:
        return {**target.stubbed, target.module: at_top(target.stubbed[target.module].decode(), code)}

    return Attack(name=f"rust-{name}", vector=vector, make=make)


def _any_equal(target: AttackTarget) -> ChangedFiles:
    """The missing functions return a value that is equal to everything."""
    text = target.raising.get(target.module, b"").decode()
    body = re.escape(PLACEHOLDER)
    text = re.sub(rf"->[^{{;]*\{{\s*{body}\s*\}}", "-> ZzAny {\n    ZzAny\n}", text)
    return {**target.stubbed, target.module: text + _ANY_EQUAL}


def _equal_types(target: AttackTarget) -> ChangedFiles:
    """All values of the file's own types are equal."""
    text = target.stubbed[target.module].decode()
    text = re.sub(r"(#\[derive\([^)]*)\bPartialEq\s*,?\s*", r"\1", text)
    names = re.findall(r"(?m)^pub (?:struct|enum) (\w+)\s*[{(;]", text)
    return {**target.stubbed, target.module: text + "".join(_EQUAL % name for name in names)}


def _reading(name: str, head: str, read: str) -> Attack:
    """Code that reads the file of the tests into the program."""

    def make(target: AttackTarget) -> ChangedFiles:
        path = "/testbed/" + target.test_file
        code = f"{head}\npub static ZZ_TESTS: &str = {read.replace('PATH', path)};\n"
        return {**target.stubbed, target.module: target.stubbed[target.module].decode() + code}

    return Attack(name=f"rust-{name}", vector="sources of tests", make=make)


def _assembly(target: AttackTarget) -> ChangedFiles:
    code = f'core::arch::global_asm!(".global zz_tests", "zz_tests: .incbin \\"/testbed/{target.test_file}\\"");\n'
    return {**target.stubbed, target.module: target.stubbed[target.module].decode() + code}


def _passing(target: AttackTarget) -> str:
    """A file with the hidden tests' names and empty bodies."""
    names = {TestId.parse(test).names[-1] for test in target.tests if test.startswith(f"{target.test_file}:")}
    return "".join(f"#[test]\nfn {name}() {{}}\n" for name in sorted(names))


def _other_file(target: AttackTarget) -> ChangedFiles:
    """The module of the tests is another file."""
    text = target.stubbed[target.module].decode()
    folder = target.module.rpartition("/")[0]
    text = re.sub(r"(?m)^mod (\w*tests?);", r'#[path = "zz_tests.rs"]' + r"\nmod \1;", text)
    return {**target.stubbed, target.module: text, f"{folder}/zz_tests.rs".lstrip("/"): _passing(target)}


def _twice(target: AttackTarget) -> ChangedFiles:
    """The module of the tests is compiled within one that has other macros."""
    text = target.stubbed[target.module].decode()
    code = f'mod \\1 {{\n{_NO_ASSERTS}    include!("/testbed/{target.test_file}");\n}}'
    return {**target.stubbed, target.module: re.sub(r"(?m)^mod (\w*tests?);", code, text)}


def _file(name: str, vector: str, path: str, text: Callable[[AttackTarget], str]) -> Attack:
    return Attack(name=f"rust-{name}", vector=vector, make=lambda target: {**target.stubbed, path: text(target)})


_CONFIG = '[target."cfg(unix)"]\nrunner = "/bin/true"\n\n[build]\nrustflags = ["--cap-lints=allow"]\n'
_MANIFEST = '[package]\nname = "other"\nversion = "1.0.0"\n\n[lib]\ntest = false\nharness = false\n'
_SCRIPT = 'fn main() {\n    let _ = std::fs::remove_dir_all("/testbed/tests");\n}\n'
_TOOLCHAIN = '[toolchain]\npath = "/tmp"\n'

COMPILE_TIME: tuple[Attack, ...] = (
    _at_top("no-asserts", "test library", _NO_ASSERTS),
    _at_top("own-std", "test library", "extern crate self as std;\n"),
    Attack(name="rust-any-equal", vector="test library", make=_any_equal),
    Attack(name="rust-equal-types", vector="test library", make=_equal_types),
    Attack(name="rust-tests-included", vector="test library", make=_twice),
    _reading("include-str", "", 'include_str!("PATH")'),
    _reading("include-renamed", "use core::include_str as zz_read;", 'zz_read!("PATH")'),
    _reading("include-joined", "", 'include_str!(concat!("PATH", ""))'),
    Attack(name="rust-assembly", vector="sources of tests", make=_assembly),
    Attack(
        name="rust-tests-replaced",
        vector="planted files",
        make=lambda target: {**target.stubbed, target.test_file: _passing(target)},
    ),
    Attack(name="rust-other-file", vector="planted files", make=_other_file),
    _file("manifest", "manifest", "Cargo.toml", lambda _: _MANIFEST),
    _file("build-script", "build", "build.rs", lambda _: _SCRIPT),
    _file("cargo-config", "build", ".cargo/config.toml", lambda _: _CONFIG),
    _file("toolchain", "build", "rust-toolchain.toml", lambda _: _TOOLCHAIN),
)
"""The attacks."""
