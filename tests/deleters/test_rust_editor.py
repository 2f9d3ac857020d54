"""Rust's code editor: what is left compiles, and tests go with what only they use."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.code_editors import editor_of
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.deleters.statement.problem_statement import write_statement
from excise.envs.rust.manifests import read_manifest
from excise.envs.rust.toolchain import VARIABLES
from excise.errors import ConfigError, DeletionRefused
from excise.extractors.fetch.trees import list_files
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.protocols import CompiledDeleter
from excise.system.toml_text import toml_text
from excise.types import Deletion, Feature, FeatureKind
from excise.verifiers.shipped_tree import scrub

from .planned_deletions import REPO as PROJECT

REPO = Path(__file__).parents[1] / "repos" / "lengths"
CARGO = "/usr/bin/cargo"
"""The program of Debian's package cargo, which ./check installs."""
BY_MACRO = ("src/units/tests.rs::metre", "src/units/tests.rs::foot")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it is fetched: with tests in files of their own, and with the manifest that tests use."""
    folder = tmp_path_factory.mktemp("rust") / "lengths"
    shutil.copytree(REPO, folder)
    scrub(folder, "rust")
    (folder / "Cargo.toml").write_text(toml_text(read_manifest(folder, ()).reduced))
    return folder


@pytest.fixture(scope="module")
def codebase(root: Path) -> RustCodebase:
    return RustCodebase.parse(root, list_files(root), tests=BY_MACRO, names=["lengths"])


def feature(*symbols: str, tests: tuple[str, ...] = ()) -> Feature:
    return Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=tests)


def stubbed(codebase: RustCodebase, *symbols: str, tests: tuple[str, ...] = ()) -> Deletion:
    return get("stub", "rust").delete(codebase, feature(*symbols, tests=tests))


def removed(codebase: RustCodebase, *symbols: str) -> Deletion:
    return get("remove", "rust").delete(codebase, feature(*symbols))


def files_after(root: Path, *patches: str) -> Mapping[str, bytes | None]:
    """Contents of the files that patches change."""
    found: dict[str, bytes | None] = {}
    for patch in patches:
        known = {path: (root / path).read_bytes() for path in touched(patch)}
        found |= apply_patch(known, patch)
    return found


def compiled(root: Path, folder: Path, changed: Mapping[str, bytes | None]) -> str:
    """What cargo says of the project with changed files: nothing if everything, tests included, compiles."""
    shutil.copytree(root, folder, dirs_exist_ok=True)
    for path, data in changed.items():
        assert data is not None
        (folder / path).write_bytes(data)
    variables = {**VARIABLES, "PATH": "/usr/bin:/bin", "HOME": str(folder), "CARGO_HOME": str(folder / ".cargo-home")}
    command = [CARGO, "check", "--offline", "--quiet", "--tests"]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_a_stub_keeps_signature_and_documentation(root: Path, codebase: RustCodebase, tmp_path: Path) -> None:
    tests = ("src/tests.rs::parts_are_added", "src/tests.rs::division::needs_parts", "tests/api.rs::whole_units")
    deletion = stubbed(codebase, "src/lib.rs::parse", "src/lib.rs::Length.plus", tests=tests)
    changed = files_after(root, deletion.source_patch, deletion.hide_patch)
    source = (changed["src/lib.rs"] or b"").decode()
    assert (
        "pub fn parse(text: &str) -> Result<Length, ParseError> {\n    let _ = &text;\n    unimplemented!()\n}"
        in source
    )
    assert (
        "    pub fn plus(self, other: Length) -> Length {\n        let _ = &other;\n        unimplemented!()\n    }"
        in source
    )
    assert "/// Reads a length" in source
    hidden = (changed["src/tests.rs"] or b"").decode()
    assert "parts_are_added" not in hidden
    assert "needs_parts" not in hidden
    assert "should_panic" not in hidden
    assert "fn assert_parsed" in hidden, "an ignored test uses it"
    assert deletion.hidden == tuple(sorted(tests))
    assert dict(deletion.text)["src/lib.rs::parse"].startswith("pub fn parse(")
    assert compiled(root, tmp_path, changed) == ""


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ("(u8, Option<u8>)", "(0 as u8, Default::default())"),
        ("(bool,)", "(false,)"),
        ("(i32)", "0 as i32"),
        ("(u8, T)", ""),
    ],
)
def test_a_tuple_has_a_value_if_its_parts_have(result: str, value: str) -> None:
    source = f"fn a() -> {result} {{\n    b()\n}}\n"
    codebase = RustCodebase.from_texts({"src/lib.rs": source}, names=["kit"])
    patches = dict(editor_of("rust").stand_ins(codebase, ["src/lib.rs::a"]))
    after = apply_patch({"src/lib.rs": source.encode()}, patches["none"])["src/lib.rs"] or b""
    assert after.decode() == f"fn a() -> {result} {{\n    {value or 'unimplemented!()'}\n}}\n"


@pytest.mark.parametrize("kind", ["none", "raise", "any"])
def test_stand_ins_of_everything_compile(root: Path, codebase: RustCodebase, tmp_path: Path, kind: str) -> None:
    patches = dict(editor_of("rust").stand_ins(codebase, ["src/lib.rs", "src/units.rs"]))
    changed = files_after(root, patches[kind])
    assert compiled(root, tmp_path, changed) == ""
    text = (changed["src/units.rs"] or b"").decode()
    assert {"none": "    Default::default()\n", "raise": "    unimplemented!()\n", "any": "    Some(0 as u64)\n"}[
        kind
    ] in text


def test_tests_that_a_macro_defines_go_together(root: Path, codebase: RustCodebase) -> None:
    deletion = stubbed(codebase, "src/units.rs::factor", tests=BY_MACRO[:1])
    assert deletion.hidden == tuple(sorted(BY_MACRO))
    text = (files_after(root, deletion.hide_patch)["src/units/tests.rs"] or b"").decode()
    assert "unit_tests" not in text, "the macro goes with its only call"
    assert "fn nearest()" in text


def test_a_file_of_tests_stays_when_all_of_them_go(root: Path, codebase: RustCodebase, tmp_path: Path) -> None:
    tests = ("tests/api.rs::whole_units", "tests/api.rs::longest_of_some")
    changed = files_after(root, stubbed(codebase, "src/lib.rs::longest", tests=tests).hide_patch)
    assert changed["tests/api.rs"] == b"", "nothing uses what it imported"
    assert compiled(root, tmp_path, changed) == ""


def test_methods_of_a_type_and_functions_of_a_file_are_stubbed_together(codebase: RustCodebase) -> None:
    of_type = stubbed(codebase, "src/lib.rs::Length").removed
    assert of_type == tuple(f"src/lib.rs::Length.{name}" for name in ("fmt", "plus", "whole"))
    assert stubbed(codebase, "src/units.rs").removed == ("src/units.rs::factor", "src/units.rs::nearest_unit")


def test_definitions_go_with_imports_and_exports(root: Path, codebase: RustCodebase, tmp_path: Path) -> None:
    deletion = removed(codebase, "src/lib.rs::Length.fmt", "src/units.rs::nearest_unit", "src/lib.rs::longest")
    assert deletion.deleter == "remove"
    changed = files_after(root, deletion.source_patch, deletion.hide_patch)
    source = (changed["src/lib.rs"] or b"").decode()
    assert "pub use crate::units::factor;\n" in source, "a re-export, in which one name is left"
    assert "impl fmt::Display" not in source, "a block of which nothing is left"
    assert "use std::fmt" not in source
    assert "impl Length {" in source
    assert (changed["tests/api.rs"] or b"").startswith(b"use lengths::parse;\n")
    assert "src/units/tests.rs::nearest" in deletion.hidden
    said = compiled(root, tmp_path / "first", changed)
    assert "src/tests.rs" in said, "a test writes lengths without naming how"
    deleter = get("remove", "rust")
    assert isinstance(deleter, CompiledDeleter)
    again = deleter.corrected(codebase, deletion, [said]).delete(codebase, deletion.feature)
    assert set(again.hidden) - set(deletion.hidden) == {"src/tests.rs::shown_in_units"}
    assert again.removed == deletion.removed
    changed = files_after(root, again.source_patch, again.hide_patch)
    assert compiled(root, tmp_path / "second", changed) == ""


def test_stubs_use_their_parameters_where_unused_ones_are_errors(tmp_path: Path) -> None:
    function = "pub fn cut(text: &str, mut size: usize, _more: u8) -> String {\n    size += 1;\n"
    function += "    text[size..].to_string()\n}\n"
    for head, used in (("", ""), ("#![deny(missing_docs, unused)]\n", "    let _ = (&text, &mut size);\n")):
        source = f"{head}{function}"
        codebase = RustCodebase.from_texts({"src/lib.rs": source}, names=["kit"])
        patch = stubbed(codebase, "src/lib.rs::cut").source_patch
        after = (apply_patch({"src/lib.rs": source.encode()}, patch)["src/lib.rs"] or b"").decode()
        assert after.endswith(f"-> String {{\n{used}    unimplemented!()\n}}\n")
        (tmp_path / "lib.rs").write_text(after.replace("missing_docs, ", ""))
        subprocess.run(["/usr/bin/rustc", "--crate-type=lib", "lib.rs"], cwd=tmp_path, check=True, capture_output=True)


def test_what_code_that_stays_uses_is_left_as_a_stub(root: Path, codebase: RustCodebase, tmp_path: Path) -> None:
    deletion = removed(codebase, "src/units.rs::nearest_unit", "src/lib.rs::divided")
    assert (deletion.deleter, deletion.removed) == (
        "remove_and_stub",
        ("src/lib.rs::divided", "src/units.rs::nearest_unit"),
    )
    changed = files_after(root, deletion.source_patch, deletion.hide_patch)
    assert "mod division" not in (changed["src/tests.rs"] or b"").decode(), "no test is left in it"
    assert compiled(root, tmp_path, changed) == ""
    texts = editor_of("rust").deleted_texts(codebase, deletion.deleter, deletion.removed, changed)
    assert sorted(texts) == sorted(deletion.text)


def test_the_compiler_says_which_traits_must_stay(root: Path, tmp_path: Path) -> None:
    files = {path: (root / path).read_text() for path in list_files(root) if path.endswith(".rs")}
    files["src/lib.rs"] += (
        "\n/// A length as text.\npub fn shown(length: Length) -> String {\n    length.to_string()\n}\n"
    )
    before = {path: text.encode() for path, text in files.items()}
    codebase, deleter = RustCodebase.from_texts(files, names=["lengths"]), get("remove", "rust")
    wanted = feature("src/lib.rs::Length.fmt", "src/lib.rs::longest", tests=("tests/api.rs::longest_of_some",))
    first = deleter.delete(codebase, wanted)
    assert first.deleter == "remove"
    shipped = {**before, **apply_patch(before, first.source_patch), **apply_patch(before, first.hide_patch)}
    said = compiled(root, tmp_path / "first", shipped)
    assert "Display" in said
    assert isinstance(deleter, CompiledDeleter)
    second = deleter.corrected(codebase, first, [said]).delete(codebase, wanted)
    assert (second.deleter, second.removed) == ("remove_and_stub", first.removed)
    shipped = {**before, **apply_patch(before, second.source_patch), **apply_patch(before, second.hide_patch)}
    assert b"        unimplemented!()\n    }\n}\n" in (shipped["src/lib.rs"] or b"")
    assert compiled(root, tmp_path / "second", shipped) == ""


def test_types_go_with_all_that_is_about_them_and_modules_with_their_files() -> None:
    files = {
        "src/lib.rs": (
            "mod parts;\npub mod shapes;\n\npub use self::shapes::{\n    Disc,\n    Square,\n};\n"
            "use std::fmt::{self, Display};\n\n"
            "pub struct Unit;\n\nimpl From<Disc> for Unit {\n    fn from(_: Disc) -> Unit {\n        Unit\n    }\n}\n\n"
            "impl Display for Unit {\n    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {\n        Ok(())\n"
            "    }\n}\n"
        ),
        "src/shapes.rs": (
            "//! Shapes.\n\nconst PI: u64 = 3;\n\n/// Round.\n#[derive(Clone)]\npub struct Disc(pub u64);\n\n"
            "impl Disc {\n    /// Its area.\n    pub fn area(&self) -> u64 {\n        PI * self.0\n"
            "    }\n}\n\npub struct Square;\n"
        ),
        "src/parts.rs": "use crate::Unit;\n\npub fn half(_: Unit) -> u64 {\n    2\n}\n",
    }
    codebase = RustCodebase.from_texts(files, names=["shapes"])
    deletion = removed(codebase, "src/shapes.rs::Disc", "src/parts.rs::half")
    assert deletion.removed == (
        "src/lib.rs::Unit.from", "src/parts.rs::half", "src/shapes.rs::Disc", "src/shapes.rs::Disc.area",
    )  # fmt: skip
    after = apply_patch({path: text.encode() for path, text in files.items()}, deletion.source_patch)
    assert after["src/parts.rs"] is None
    assert (after["src/shapes.rs"] or b"").decode() == "//! Shapes.\n\npub struct Square;\n", "and a private constant"
    source = (after["src/lib.rs"] or b"").decode()
    assert source.startswith("pub mod shapes;\n\npub use self::shapes::Square;\nuse std::fmt::{self, Display};\n")
    assert "From" not in source


def test_a_module_that_only_removed_code_named_is_no_longer_imported() -> None:
    one = "pub fn one() -> u64 {\n    iter::once(1).sum()\n}\n\n"
    source = f"use core::iter::{{self, Take}};\n\n{one}pub struct T(Take<u8>);\n"
    codebase = RustCodebase.from_texts({"src/lib.rs": source}, names=["kit"])
    after = apply_patch({"src/lib.rs": source.encode()}, removed(codebase, "src/lib.rs::one").source_patch)
    assert after["src/lib.rs"] == b"use core::iter::Take;\n\npub struct T(Take<u8>);\n"
    named = source.replace("Take};", "Take};\nuse iter::Map;")
    codebase = RustCodebase.from_texts({"src/lib.rs": named}, names=["kit"])
    after = apply_patch({"src/lib.rs": named.encode()}, removed(codebase, "src/lib.rs::one").source_patch)
    assert b"use core::iter::{self, Take};" in (after["src/lib.rs"] or b"")


def test_a_trait_that_only_bounds_of_removed_code_named_is_no_longer_imported() -> None:
    one = "pub fn one<T: Eq + Hash>(all: &[T]) -> usize {\n    all.len()\n}\n\n"
    two = "pub fn two(text: &str) -> u64 {\n    text.len() as u64\n}\n"
    source = f"use std::hash::Hash;\n\n{one}{two}"
    codebase = RustCodebase.from_texts({"src/lib.rs": source}, names=["kit"])
    after = apply_patch({"src/lib.rs": source.encode()}, removed(codebase, "src/lib.rs::one").source_patch)
    assert after["src/lib.rs"] == two.encode()
    hashing = source.replace("text.len() as u64", "text.hash(&mut own)")
    codebase = RustCodebase.from_texts({"src/lib.rs": hashing}, names=["kit"])
    after = apply_patch({"src/lib.rs": hashing.encode()}, removed(codebase, "src/lib.rs::one").source_patch)
    assert (after["src/lib.rs"] or b"").startswith(b"use std::hash::Hash;\n")
    below = source.replace("Hash;\n", "Hash;\nmod inner;\n", 1)
    codebase = RustCodebase.from_texts({"src/lib.rs": below, "src/inner.rs": "use super::*;\n"}, names=["kit"])
    after = apply_patch({"src/lib.rs": below.encode()}, removed(codebase, "src/lib.rs::one").source_patch)
    assert (after["src/lib.rs"] or b"").startswith(b"use std::hash::Hash;\n"), "for files below"


def test_what_calls_a_function_with_the_name_of_a_test_stays() -> None:
    own = 'use super::*;\n\n#[test]\nfn compare() {\n    assert_eq!(parts("1"), 1);\n}\n'
    files = {
        "src/lib.rs": "mod compare;\n\npub use compare::compare;\n",
        "src/compare/mod.rs": (
            "#[cfg(test)]\nmod tests;\n\n/// Compares.\npub fn compare(a: &str) -> usize {\n    parts(a)\n}\n\n"
            "fn parts(a: &str) -> usize {\n    a.len()\n}\n"
        ),
        "src/compare/tests.rs": own,
        "tests/api.rs": 'use words::compare;\n\n#[test]\nfn api() {\n    assert_eq!(compare("1"), 1);\n}\n',
        "examples/first.rs": 'use words::compare;\n\nfn main() {\n    compare("1");\n}\n',
    }
    codebase = RustCodebase.from_texts(files, names=["words"])
    deletion = stubbed(codebase, "src/compare/mod.rs::parts", tests=("src/compare/tests.rs::compare",))
    after = apply_patch({path: text.encode() for path, text in files.items()}, deletion.hide_patch)
    assert set(after) == {"src/compare/tests.rs"}


@pytest.mark.parametrize(
    ("head", "left"),
    [("use super::Kind;\n\n", b""), ("// Free.\npub use super::Kind;\n\n", b"// Free.\npub use super::Kind;\n")],
)
def test_a_file_of_tests_that_all_go_imports_nothing(head: str, left: bytes) -> None:
    own = f'{head}#[test]\nfn one() {{\n    assert_eq!("a".kind(), 1);\n}}\n'
    trait = "pub trait Kind {\n    fn kind(&self) -> u8;\n}\n\npub fn free() -> u8 {\n    1\n}\n"
    files = {"src/lib.rs": f"#[cfg(test)]\nmod tests;\n\n{trait}", "src/tests.rs": own}
    codebase = RustCodebase.from_texts(files, names=["kit"])
    deletion = stubbed(codebase, "src/lib.rs::free", tests=("src/tests.rs::one",))
    assert apply_patch({"src/tests.rs": own.encode()}, deletion.hide_patch) == {"src/tests.rs": left}


def test_what_rust_cannot_do_is_refused(codebase: RustCodebase) -> None:
    with pytest.raises(ConfigError, match="no deleter of rust"):
        get("path", "rust")
    with pytest.raises(DeletionRefused, match="belongs to the tests"):
        stubbed(codebase, "src/tests.rs::assert_parsed")


def test_a_statement_names_methods_by_paths_and_has_the_words_above_their_block() -> None:
    block = "/// Two of them compare\n/// by their sizes.\n#[rustfmt::skip]\nimpl PartialEq<u8> for Box {\n"
    source = f"pub struct Box(u8);\n\n// Inner.\n{block}    fn eq(&self, other: &u8) -> bool {{ self.0 == *other }}\n"
    source += "    fn ne(&self, other: &u8) -> bool { self.0 != *other }\n}\n"
    codebase, tests = RustCodebase.from_texts({"src/lib.rs": source}, names=["kit"]), ("tests/a.rs::a",)
    names = [name for name in codebase.symbols() if name.endswith(("eq", "ne"))]
    text = write_statement(codebase, removed(codebase, *names), replace(PROJECT, language="rust"), tests).text
    assert text.startswith("# Bring back `Box::eq`, `Box::ne`\n")
    words = "/// Two of them compare\n/// by their sizes.\n"
    head = "impl PartialEq<u8> for Box\n"
    assert f"```rust\n{words}{head}fn eq(&self, other: &u8) -> bool\n```" in text
    assert f"```rust\n{head}fn ne(&self, other: &u8) -> bool\n```" in text


@pytest.mark.parametrize(
    ("groups", "lists", "left"),
    [
        (("group!(one, a);", "group!(two, b);"), "main!(one, two);\n", "group!(two, b);\nmain!(two);\n"),
        (
            ("group!(name = one; config = c(); targets = a);", "group!(name = two; targets = b);"),
            "#[cfg(unix)]\nmain! {\n    two,\n    one,\n}\n",
            "group!(name = two; targets = b);\n#[cfg(unix)]\nmain! {\n    two,\n}\n",
        ),
        (("group!(one, a);", "group!(two, b);"), "first!(one);\nmain!(two);\n", "group!(two, b);\nmain!(two);\n"),
        (("group!(size, a);", "group!(size, b);"), "main!(size);\n", "group!(size, b);\nmain!(size);\n"),
    ],
    ids=["two", "named", "emptied", "defined_twice"],
)
def test_what_a_macro_of_removed_tests_defines_leaves_the_lists_of_others(
    groups: tuple[str, str], lists: str, left: str
) -> None:
    bench = "use kit::{gone, kept};\n\nfn a() {\n    gone();\n}\n\nfn b() {\n    kept();\n}\n\n"
    bench += "\n".join(groups) + "\n" + lists
    files = {"src/lib.rs": "pub fn gone() {}\n\npub fn kept() {}\n", "benches/speed.rs": bench}
    deletion = removed(RustCodebase.from_texts(files, names=["kit"]), "src/lib.rs::gone")
    after = apply_patch({path: text.encode() for path, text in files.items()}, deletion.hide_patch)
    expected = f"use kit::kept;\n\nfn b() {{\n    kept();\n}}\n\n{left}"
    assert (after["benches/speed.rs"] or b"").decode() == expected


@pytest.mark.parametrize(
    ("declared", "more", "is_gone"),
    [
        ("mod a;", "", True),
        ("pub mod a;", "", False),
        ("mod a;\npub use a::*;", "", False),
        ("mod a;\npub use a::{other, sized};", "", False),
        ("mod a;\npub use a::other;", "", True),
        ("mod a;", "pub fn more() {\n    crate::a::sized();\n}\n", False),
        ("mod a;", "use a::sized as far;\n\npub fn more() {\n    far();\n}\n", False),
        ("mod a;", "use self::a as c;\n\npub fn more() {\n    c::sized();\n}\n", False),
        ("mod a;\nunix! { pub use a::*; }", "", False),
        ("mod a;\nuse a as c;\npub use c::*;", "", False),
        ("mod a;", 'struct S {\n    #[serde(default = "crate::a::sized")]\n    x: u8,\n}\n', False),
        ("mod a;", "use a::*;\n\npub fn more() {\n    sized();\n}\n\nmod c {\n    fn sized() {}\n}\n", False),
        ("mod a;", "mod c {\n    use crate::a as b;\n\n    pub fn more() {\n        b::sized();\n    }\n}\n", False),
    ],
    ids=[
        "internal",
        "public",
        "all_exported",
        "exported",
        "other_exported",
        "used",
        "imported",
        "renamed",
        "exported_in_a_macro",
        "exported_by_another_name",
        "named_in_an_attribute",
        "star_import",
        "alias",
    ],
)
def test_public_functions_of_internal_modules_go_with_the_code_that_used_them(
    declared: str, more: str, *, is_gone: bool
) -> None:
    own = "fn inner() {}\n\npub fn sized() {\n    inner();\n}\n\npub fn other() {}\n"
    code = (
        "pub fn gone() {\n    a::sized();\n}\n\npub fn kept() {\n    b::sized();\n    a::other();\n    b::other();\n}\n"
    )
    files = {"src/lib.rs": f"{declared}\nmod b;\n\n{code}\n{more}", "src/a.rs": own, "src/b.rs": own}
    deletion = removed(RustCodebase.from_texts(files, names=["kit"]), "src/lib.rs::gone")
    after = apply_patch({path: text.encode() for path, text in files.items()}, deletion.source_patch)
    assert after.keys() == ({"src/lib.rs", "src/a.rs"} if is_gone else {"src/lib.rs"})
    assert after.get("src/a.rs", own.encode()) == (b"pub fn other() {}\n" if is_gone else own.encode())
    assert deletion.removed == ("src/lib.rs::gone",), "what only it used need not come back"


def test_functions_that_other_languages_call_stay_in_internal_modules() -> None:
    linked = '#[no_mangle]\npub extern "C" fn sized() {}\n'
    files = {"src/lib.rs": "mod a;\n\npub fn gone() {\n    a::sized();\n}\n\npub fn kept() {}\n", "src/a.rs": linked}
    deletion = removed(RustCodebase.from_texts(files, names=["kit"]), "src/lib.rs::gone")
    assert touched(deletion.source_patch) == ("src/lib.rs",)


@pytest.mark.parametrize(
    ("call", "is_shown"), [("inner.as_mut()", False), ("self.as_mut()", True), ("Pair::as_mut(self)", True)]
)
def test_a_method_of_a_trait_that_passes_a_call_on_does_not_use_the_one_of_its_name(
    call: str, *, is_shown: bool
) -> None:
    source = (
        "pub struct Pair<T>(T);\n\nimpl<T> Pair<T> {\n    pub fn as_mut(&mut self) -> &mut T {\n        &mut self.0\n"
        "    }\n}\n\nimpl<T> AsMut<T> for Pair<T> {\n    fn as_mut(&mut self) -> &mut T {\n"
        f"        let inner = &mut self.0;\n        {call}\n    }}\n}}\n"
    )
    codebase = RustCodebase.from_texts({"src/lib.rs": source}, names=["kit"])
    deletion = stubbed(codebase, "src/lib.rs::Pair.as_mut")
    text = write_statement(codebase, deletion, replace(PROJECT, language="rust"), ()).text
    assert (f"- `src/lib.rs::Pair.as_mut`: `{call}`" in text) is is_shown
