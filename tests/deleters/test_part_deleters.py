"""The deleters ``line`` and ``expression`` in languages with braces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.code_editors import editor_of
from excise.deleters.patches.git_patches import apply_patch
from excise.errors import DeletionRefused
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.protocols import Codebase
from excise.types import Deletion, Feature, FeatureKind

GO = """package a

// Width tells how wide a text is.
func Width(s string) int {
	if s == "" {
		return 0
	}
	n := len(s)
	return n * 2 // twice
}

func Half(s string) int { return len(s) / 2 }

func Same(s string) string {
	s = s + ""
	return s
}
"""
JAVA = """class Box {
    int width(String s) {
        if (s.isEmpty()) {
            return 0;
        }
        Runnable r = () -> { return; };
        return s.length() * 2;
    }

    int half(String s) {
        return s.length() / 2;
    }

    String same(String s) {
        s = s + "";
        return s;
    }
}
"""
RUST = """pub fn width(s: &str) -> usize {
    if s.is_empty() {
        return 0;
    }
    let f = |x: usize| x * 2 + 100000000;
    s.len() * 2
}

pub fn half(s: &str) -> usize {
    s.len() / 2
}

pub fn same(s: String) -> String {
    let s = s + "";
    s
}
"""
JAVASCRIPT = """function width(s) {
  if (!s) {
    return 0;
  }
  const f = (x) => { return x * 2 + 1000000 };
  return s.length * 2;
}

function half(s) {
  return s.length / 2;
}

function same(s) {
  s = s + '';
  return s;
}

module.exports = { width, half, same };
"""
CODEBASES: dict[str, tuple[Codebase, str, str]] = {
    "go": (GoCodebase.from_texts({"m.go": GO}), "m.go", '\tpanic("not implemented")'),
    "java": (
        JavaCodebase.from_texts({"m.java": JAVA}),
        "m.java",
        '        throw new UnsupportedOperationException("not implemented");',
    ),
    "rust": (RustCodebase.from_texts({"m.rs": RUST}), "m.rs", "    unimplemented!()"),
    "javascript": (
        JavaScriptCodebase.from_texts({"m.js": JAVASCRIPT}),
        "m.js",
        "  throw new Error('not implemented');",
    ),
}
LANGUAGES = pytest.mark.parametrize("language", CODEBASES)


def deletion_of(language: str, name: str, deleter: str) -> Deletion:
    codebase, path, _ = CODEBASES[language]
    name = {"go": name.title(), "java": f"Box.{name}"}.get(language, name)
    symbol = f"{path}::{name}"
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(symbol,), symbols=(symbol,), tests=())
    return get(deleter, language).delete(codebase, feature)


def after(language: str, name: str, deleter: str) -> str:
    codebase, path, _ = CODEBASES[language]
    changed = apply_patch({path: codebase.modules[path].source}, deletion_of(language, name, deleter).source_patch)
    return (changed[path] or b"").decode()


@LANGUAGES
def test_expression_takes_the_longest_result(language: str) -> None:
    codebase, path, placeholder = CODEBASES[language]
    lines = codebase.modules[path].source.decode().splitlines()
    found = after(language, "width", "expression").replace("\t_ = n\n", "").splitlines()
    results = ("return n * 2", "return s.length", "s.len() * 2")
    (changed,) = [number for number, line in enumerate(lines) if line.strip().startswith(results) and "* 2" in line]
    assert found[changed].removesuffix(" // twice") == placeholder
    assert found[:changed] + found[changed + 1 :] == lines[:changed] + lines[changed + 1 :]
    (text,) = deletion_of(language, "width", "expression").text
    assert text[0].endswith("#expression")
    assert text[1] in {"n * 2", "s.length() * 2", "s.len() * 2", "s.length * 2"}
    symbol = text[0].removesuffix("#expression")
    assert editor_of(language).deleted_texts(codebase, "expression", [symbol], {}) == [text]


def test_go_keeps_a_use_of_what_only_the_result_used() -> None:
    assert '\tn := len(s)\n\t_ = n\n\tpanic("not implemented") // twice\n' in after("go", "width", "expression")


def test_results_behind_comments_and_in_inner_functions() -> None:
    code = (
        "const f = a => b => { const c = 1;\n return c * 1000 };\n"
        "function g(b) { f(b);\n return /* a long remark */ b * 2 }\n"
    )
    codebase = JavaScriptCodebase.from_texts({"m.js": f"{code}module.exports = {{ f, g }};\n"})
    feature = Feature(
        feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=("m.js::g",), symbols=("m.js::g",), tests=()
    )
    assert get("expression", "javascript").delete(codebase, feature).text == (("m.js::g#expression", "b * 2"),)
    outer = replace(feature, entry=("m.js::f",), symbols=("m.js::f",))
    with pytest.raises(DeletionRefused):
        get("expression", "javascript").delete(codebase, outer)


@LANGUAGES
def test_line_takes_what_a_function_consists_of(language: str) -> None:
    _, _, placeholder = CODEBASES[language]
    found = after(language, "half", "line")
    assert placeholder.strip() in found
    assert "/ 2" not in found
    assert "* 2" in found
    deletion = deletion_of(language, "half", "line")
    assert deletion.deleter == "line"
    assert {kind for kind, _ in deletion.stub_patches} >= {"none", "raise", "any"}


@LANGUAGES
@pytest.mark.parametrize(
    ("name", "deleter", "reason"),
    [
        ("half", "expression", "one_statement"),
        ("same", "expression", "no_expression"),
        ("width", "line", "not_one_statement"),
    ],
)
def test_other_functions_are_refused(language: str, name: str, deleter: str, reason: str) -> None:
    with pytest.raises(DeletionRefused) as refusal:
        deletion_of(language, name, deleter)
    assert refusal.value.reason == reason
