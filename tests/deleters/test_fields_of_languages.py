"""Fields that nothing reads any more, as each language writes them and what sets them."""

from __future__ import annotations

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.patches.git_patches import apply_patch
from excise.errors import DeletionRefused
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.types import Feature, FeatureKind

JAVA = """package box;

import java.util.ArrayList;
import java.util.List;

public class Box {
    private final String name;

    /** Whether it refuses what is there already. */
    private boolean strict = true;
    private int limit;
    private final List<String> items = new ArrayList<>();

    public Box(String name, int limit) {
        this.name = name;
        this.limit = limit; // as many
    }

    public void loosen() {
        strict = false; // from now on
        items.clear();
    }

    public boolean isStrict() {
        return strict;
    }

    public String name() {
        return name;
    }

    public void add(String item) {
        items.add(item);
    }

    public int size() {
        return items.size() + limit;
    }

    public static int most() {
        return 7;
    }
}
"""
RUST = """/// A box.
#[derive(Debug, Clone)]
pub struct Case {
    name: String,
    /// Whether it refuses what is there already.
    strict: bool,
    items: Vec<u32>,
}

impl Case {
    pub fn new(name: String) -> Self {
        Self {
            name,
            strict: false,
            items: Vec::new(),
        }
    }

    pub fn loosen(&mut self) {
        self.strict = false;
        self.items.clear();
    }

    pub fn is_strict(&self) -> bool {
        self.strict
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn push(&mut self, item: u32) {
        self.items.push(item);
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn most() -> u32 {
        7
    }
}
"""
SCRIPT = """class Box {
  #seen = 0
  constructor (name) {
    this._name = name
    this._strict = true // at first
    this.depth = 1
    this._items = []
  }

  loosen () {
    this._strict = false
    this._items.length = 0
  }

  look () {
    this.#seen++
    return this._items
  }

  add (item) {
    this._items.push(item)
  }

  isStrict () {
    return this._strict
  }

  name () {
    return this._name
  }

  deep () {
    return this.depth
  }

  times () {
    return this.#seen
  }

  most () {
    return 7
  }
}

module.exports = { Box }
"""
FILES = {"java": ("Box.java", JAVA), "rust": ("src/lib.rs", RUST), "javascript": ("index.js", SCRIPT)}


def without(language: str, *symbols: str, source: str = "") -> str:
    path, text = FILES[language]
    files = {path: source or text}
    codebase = {"java": JavaCodebase, "rust": RustCodebase, "javascript": JavaScriptCodebase}[language].from_texts(
        files
    )
    chosen = tuple(f"{path}::{each}" for each in symbols)
    feature = Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=chosen, symbols=chosen, tests=())
    patch = get("remove", language).delete(codebase, feature).source_patch
    after = apply_patch({name: data.encode() for name, data in files.items()}, patch)
    return (after[path] or b"").decode()


def test_a_field_of_java_goes_with_what_sets_it() -> None:
    after = without("java", "Box.isStrict")
    assert "strict" not in after
    assert "from now on" not in after
    assert "    private final String name;\n\n    private int limit;\n" in after
    assert "    public void loosen() {\n        items.clear();\n    }\n" in after


def test_a_field_of_rust_goes_with_what_sets_it() -> None:
    after = without("rust", "Case.is_strict")
    assert "strict" not in after
    assert "    name: String,\n    items: Vec<u32>,\n}" in after
    assert "            name,\n            items: Vec::new(),\n" in after
    assert "    pub fn loosen(&mut self) {\n        self.items.clear();\n    }\n" in after


def test_a_field_of_javascript_goes_with_what_sets_it() -> None:
    after = without("javascript", "Box.isStrict", "Box.times", "Box.deep")
    assert "trict" not in after
    assert "at first" not in after
    assert "seen" not in after
    assert (
        "class Box {\n  constructor (name) {\n    this._name = name\n    this.depth = 1\n    this._items = []\n  }\n"
        in after
    )
    assert "  look () {\n    return this._items\n  }\n" in after


@pytest.mark.parametrize(
    ("language", "symbol"),
    [
        ("java", "Box.name"), ("java", "Box.add"), ("rust", "Case.name"), ("rust", "Case.push"),
        ("javascript", "Box.name"), ("javascript", "Box.add"),
    ],
)  # fmt: skip
def test_a_method_stays_where_a_parameter_or_a_list_would_have_lost_its_sense(language: str, symbol: str) -> None:
    with pytest.raises(DeletionRefused) as refused:
        without(language, symbol)
    assert refused.value.reason == "used_elsewhere"


@pytest.mark.parametrize(
    ("language", "old", "new", "is_left"),
    [
        ("java", "public void loosen() {", "public void loosen(boolean strict) {", True),
        ("java", "    private boolean strict", "    @Option\n    private boolean strict", True),
        ("java", "public class Box", "@Entity\npublic class Box", True),
        ("java", "strict = false;", "strict = check();", True),
        ("java", "boolean strict = true", "boolean strict = check()", True),
        ("java", "boolean strict = true", "boolean strict", False),
        ("rust", "Debug, Clone", "Debug, Serialize", True),
        ("rust", "    strict: bool", "    #[cfg(unix)]\n    strict: bool", True),
        ("rust", "self.strict = false;", "self.strict = check();", True),
        ("rust", "self.items.clear();", 'println!("{}", self.strict);', True),
        ("rust", "self.items.clear();", "let Case { strict, .. } = self;", True),
        ("rust", "self.items.clear();", "self.strict();", False),
        ("javascript", "this._items.length = 0", "const { _strict } = this", True),
        ("javascript", "this._strict = false", "this._strict = check()", True),
        ("javascript", "this._items.length = 0", "this['_strict'] = 3", True),
        ("javascript", "this._items.length = 0", "let x; x = this.strict", False),
        ("javascript", "this._items.length = 0", "use({ ...this })", True),
        ("javascript", "this._items.length = 0", "use(this['_' + x])", True),
        ("javascript", "this._items.length = 0", "use(`${x}_strict`)", True),
        ("javascript", "this._items.length = 0", "use(`a _strict b`)", True),
        (
            "java",
            "public void loosen() {",
            'public String text() { return "strict"; }\n\n    public void loosen() {',
            True,
        ),
        ("java", "public class Box {", "public class Box extends Base {", False),
        ("rust", "Debug, Clone", "Debug, PartialEq", True),
        ("rust", "self.items.clear();", 'let x = "strict";', True),
        ("rust", "self.items.clear();", "if x { self.strict = false; }", True),
    ],
)
def test_what_keeps_a_field(language: str, old: str, new: str, is_left: bool) -> None:
    source = FILES[language][1].replace(old, new, 1)
    assert source != FILES[language][1]
    names = {"java": ("Box.isStrict", "Box.most"), "rust": ("Case.is_strict", "Case.most")}
    chosen = names.get(language, ("Box.isStrict", "Box.most"))
    declared = {"java": " strict", "rust": "strict: bool", "javascript": "this._strict = true"}[language]
    if language == "javascript" and is_left and "check()" in new:
        with pytest.raises(DeletionRefused, match="a field has no sense without it"):
            without(language, *chosen, source=source)
        return
    assert (declared in without(language, *chosen, source=source)) is is_left


def test_a_marker_for_the_compiler_stays() -> None:
    source = RUST.replace("    strict: bool", "    strict: PhantomData<bool>")
    assert "strict: PhantomData<bool>" in without("rust", "Case.is_strict", "Case.most", source=source)


INNER = """package box;

public class Box {
    private int depth;

    public int getDepth() {
        return depth;
    }

    static class Inner extends Base {
        void go() {
            depth = 4;
            run();
        }
    }
}
"""


def test_a_name_in_a_class_with_a_base_may_be_that_of_the_base() -> None:
    with pytest.raises(DeletionRefused, match="code that stays needs it"):
        without("java", "Box.getDepth", source=INNER)
    plain = without("java", "Box.getDepth", source=INNER.replace(" extends Base", ""))
    assert "depth" not in plain
