"""Comments and documents in languages other than Python, without what they say of removed definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.deleters.statement.lost_text import removed_text
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.protocols import Codebase
from excise.types import Feature, FeatureKind

GO = {
    "box.go": (
        "// Package box keeps things. Use DumpAll to see them.\npackage box\n\n"
        "// Box is what LoadAll and DumpAll need. DumpAll prints all of it. Boxes are small.\ntype Box struct{}\n\n"
        "// DumpAll prints a box.\nfunc DumpAll(b Box) { println(`box`) }\n\n"
        "// LoadAll is the other half of DumpAll.\nfunc LoadAll() Box {\n\t// DumpAll wants it like this.\n"
        "\t// Small things come first. What DumpAll writes comes last.\n\tx := Box{} // as DumpAll does\n"
        "\treturn x\n}\n\n"
        "//go:generate DumpAll\nvar _ = LoadAll\n"
    ),
    "README.md": (
        "# box\n\nKeeps things. `DumpAll` prints them.\n\n```go\nb := box.LoadAll()\nbox.DumpAll(b)\n```\n\n"
        "## DumpAll()\n\nPrints.\n\n## Licence\n\nFree. Nobody speaks of dumpall.\n"
    ),
}
RUST = {
    "src/lib.rs": (
        "//! Keeps things.\n//!\n//! - [`Tray::dump_all`]: prints\n//! - [`Tray::load`]: reads\n\n"
        "pub struct Tray;\n\nimpl Tray {\n    /// Prints.\n    pub fn dump_all(&self) {}\n\n"
        "    /// Reads what `dump_all` wrote.\n    ///\n    /// It is slower than `dump_all`. All is safe.\n    ///\n"
        "    /// ```\n    /// let t = Tray::load();\n    /// t.dump_all();\n    /// assert!(t.is_good());\n"
        "    /// ```\n    pub fn load() -> Tray { Tray }\n}\n"
    ),
    "README.md": "# tray\n\nIt has `Tray::dump_all`, and more.\n\nIt is small.\n",
}
JAVA = {
    "src/main/java/org/box/Box.java": (
        "package org.box;\n\n/**\n * A box. It has {@code dumpAll}, as boxes do.\n *\n * Use #dumpAll to print it.\n"
        " * Boxes are small.\n *\n * @see #dumpAll()\n */\npublic class Box {\n    /** Prints. */\n"
        "    public void dumpAll() { }\n\n    /* What dumpAll needs. */\n    public int size() { return 1; }\n\n"
        "    /**\n     * Reads.\n     *\n     * <p>Fast.\n     */\n    public int read() { return 2; }\n}\n"
    ),
    "README.md": "# box\n\n```java\nBox box = new Box();\nbox.dumpAll();\nbox.read();\n```\n",
}
JAVASCRIPT = {
    "package.json": '{"name": "box", "main": "box.js"}\n',
    "box.js": (
        "/**\n * Things.\n *\n * Call dumpAll() to print them. Things are small.\n */\n"
        "function loadAll () {\n  /* istanbul ignore next: dumpAll */\n  return 1 // for dumpAll\n}\n\n"
        "function dumpAll () {}\n\nmodule.exports = { loadAll, dumpAll }\n"
    ),
    "readme.md": "# box\n\n```js\nconst box = require('box')\nconst x = box.dumpAll()\nbox.loadAll()\nx.y()\n```\n",
}
CODEBASES: Mapping[str, Callable[[Mapping[str, str]], Codebase]] = {
    "go": lambda files: GoCodebase.from_texts(files, import_paths=["example.com/box"]),
    "rust": lambda files: RustCodebase.from_texts(files, names=["tray"]),
    "java": JavaCodebase.from_texts,
    "javascript": JavaScriptCodebase.from_texts,
}


def left_of(language: str, files: Mapping[str, str], *symbols: str) -> dict[str, str]:
    """The files that a removal of symbols changes, without them."""
    feature = Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=())
    patch = get("remove", language).delete(CODEBASES[language](files), feature).source_patch
    changed = apply_patch({path: files[path].encode() for path in touched(patch)}, patch)
    return {path: (data or b"").decode() for path, data in changed.items()}


def test_go() -> None:
    left = left_of("go", GO, "box.go::DumpAll")
    assert left["box.go"] == (
        "// Package box keeps things.\npackage box\n\n"
        "// Box is what LoadAll and DumpAll need. Boxes are small.\ntype Box struct{}\n\n"
        "// LoadAll is the other half of DumpAll.\nfunc LoadAll() Box {\n"
        "\t// Small things come first.\n\tx := Box{}\n\treturn x\n}\n\n//go:generate DumpAll\nvar _ = LoadAll\n"
    )
    assert left["README.md"] == ("# box\n\nKeeps things.\n\n## Licence\n\nFree. Nobody speaks of dumpall.\n")


def test_rust() -> None:
    left = left_of("rust", RUST, "src/lib.rs::Tray.dump_all")
    assert left["src/lib.rs"] == (
        "//! Keeps things.\n//!\n//! - [`Tray::load`]: reads\n\npub struct Tray;\n\nimpl Tray {\n"
        "    /// Reads what `dump_all` wrote.\n    ///\n    /// All is safe.\n    ///\n"
        "    /// ```\n    /// let t = Tray::load();\n    /// assert!(t.is_good());\n    /// ```\n"
        "    pub fn load() -> Tray { Tray }\n}\n"
    )
    assert left["README.md"] == "# tray\n\nIt is small.\n"


def test_java() -> None:
    left = left_of("java", JAVA, "src/main/java/org/box/Box.java::Box.dumpAll")
    assert left["src/main/java/org/box/Box.java"] == (
        "package org.box;\n\n/**\n * A box.\n *\n * Boxes are small.\n */\npublic class Box {\n"
        "    public int size() { return 1; }\n\n"
        "    /**\n     * Reads.\n     *\n     * <p>Fast.\n     */\n    public int read() { return 2; }\n}\n"
    )
    assert left["README.md"] == "# box\n\n```java\nBox box = new Box();\nbox.read();\n```\n"


def test_javascript() -> None:
    left = left_of("javascript", JAVASCRIPT, "box.js::dumpAll")
    assert left["box.js"] == (
        "/**\n * Things.\n *\n * Things are small.\n */\n"
        "function loadAll () {\n  /* istanbul ignore next: dumpAll */\n  return 1\n}\n\n"
        "module.exports = { loadAll }\n"
    )
    assert left["readme.md"] == "# box\n\n```js\nconst box = require('box')\nbox.loadAll()\n```\n"


@pytest.mark.parametrize(
    ("language", "files", "symbol"),
    [
        ("go", {**GO, "a.go": "package box\n\nvar x = `DumpAll`\n"}, "box.go::DumpAll"),
        ("java", {**JAVA, "src/main/java/org/box/A.java": "class A { int dumpAll; }\n"}, "Box.java::Box.dumpAll"),
    ],
)
def test_names_that_code_still_has_stay(language: str, files: dict[str, str], symbol: str) -> None:
    path = next(path for path in files if path.endswith(symbol.partition("::")[0]))
    left = left_of(language, files, f"{path}::{symbol.partition('::')[2]}")
    text = left[path]
    assert ("DumpAll wants it like this" in text) or ("What dumpAll needs" in text)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "\ufeff/* Free. It has dumpAll(), too. Use it. */\nconst a = 1\n",
            "\ufeff/* Free. Use it. */\nconst a = 1\n",
        ),
        ("// One.\r\n// See dumpAll().\r\nconst a = 1\r\n", "// One.\r\nconst a = 1\r\n"),
        ("// Like dumpAll().\nconst a = 1\r\n", "const a = 1\r\n"),
        ("/**\n * A.\n *\n * @see dumpAll\n *     for more\n */\nconst a = 1\n", "/**\n * A.\n */\nconst a = 1\n"),
        ("// exports dumpAll() too\nconst a = 1\n", "const a = 1\n"),
        ("/* eslint no-dump: dumpAll */\nconst a = 1\n", "/* eslint no-dump: dumpAll */\nconst a = 1\n"),
        (
            "/**\n * @typedef {object} A\n * @property {function} dumpAll - all\n *   of it */\nconst a = 1\n",
            "/**\n * @typedef {object} A\n */\nconst a = 1\n",
        ),
    ],
)
def test_comments_keep_their_form(before: str, expected: str) -> None:
    files = {**JAVASCRIPT, "box.js": f"{before}function dumpAll () {{}}\nmodule.exports = {{ a, dumpAll }}\n"}
    assert left_of("javascript", files, "box.js::dumpAll")["box.js"] == f"{expected}module.exports = {{ a }}\n"


def test_documents_of_copies_of_other_projects_stay() -> None:
    files = {**JAVASCRIPT, "docs/vendor/x/docs/a.md": "# A\n\nSee dumpAll(). It is here.\n"}
    assert "docs/vendor/x/docs/a.md" not in left_of("javascript", files, "box.js::dumpAll")
    go = {**GO, "vendor/x/docs/a.md": "# A\n\nSee DumpAll(). It is here.\n"}
    assert "vendor/x/docs/a.md" not in left_of("go", go, "box.go::DumpAll")


def test_names_that_are_ordinary_words_go_from_examples_and_benchmarks_only() -> None:
    files = {
        "src/lib.rs": "pub fn distance(a: u8) -> u8 { a }\n\npub fn hamming(a: u8) -> u8 { a + 1 }\n",
        "benches/all.rs": (
            "extern crate tray;\n\n#[bench]\nfn bench_distance(b: &mut B) {\n    b.iter(|| tray::distance(1));\n}\n\n"
            "#[bench]\nfn bench_hamming(b: &mut B) {\n    b.iter(|| tray::hamming(1));\n}\n"
        ),
        "README.md": (
            "# tray\n\nThe distance is small.\n\n> [!NOTE]\n> `distance()` is slow.\n\n"
            "```rust\nuse tray::{hamming, distance};\n\nassert_eq!(distance(1), 1);\nassert_eq!(hamming(1), 2);\n```\n"
        ),
    }
    symbols = ("src/lib.rs::distance",)
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=symbols, symbols=symbols, tests=())
    deletion = get("remove", "rust").delete(CODEBASES["rust"](files), feature)
    patch = deletion.source_patch + deletion.hide_patch
    left = apply_patch({path: files[path].encode() for path in touched(patch)}, patch)
    assert left["README.md"] == (
        b"# tray\n\nThe distance is small.\n\n```rust\nuse tray::hamming;\n\nassert_eq!(hamming(1), 2);\n```\n"
    )
    assert left["benches/all.rs"] is not None
    assert b"bench_distance" not in left["benches/all.rs"]
    assert b"bench_hamming" in left["benches/all.rs"]


def test_names_that_others_have_go_behind_those_of_their_owners() -> None:
    files = {
        "box.go": (
            "package box\n\n// Crate is one. The other methods (Load, Keep, Dump) are not safe.\ntype Crate struct{}\n"
            "\nfunc (c Crate) Dump() {}\n\n// Dump prints.\nfunc Dump(b []byte, c *Crate) {}\n"
        ),
        "README.md": (
            "# box\n\nIt is small.\n\nOr use Dump:\n\n```go\ntype Config struct {\n    N int\n}\n\nconfig := Config{}\n"
            "box.Dump(data, &config)\nfmt.Println(config.N)\n```\n\nOr use a query.\n\n"
            "## box.Dump()\n\nPrints.\n\n## Dump\n\nOf crates.\n"
        ),
    }
    left = left_of("go", files, "box.go::Dump")
    assert left["README.md"] == "# box\n\nIt is small.\n\nOr use a query.\n\n## Dump\n\nOf crates.\n"
    assert "methods (Load, Keep, Dump) are" in left["box.go"], "the method stays"
    script = {
        "package.json": '{"name": "box"}',
        "box.js": (
            "function Box () {}\nBox.prototype.end = function () {}\nBox.prototype.destroy = function () {}\n"
            "module.exports = Box\n"
        ),
        "use.js": "module.exports = (s) => s.on('destroy')\n",
        "README.md": (
            "# box\n\nText.\n\n### Box#end()\n\nEnds.\n\n### Box#destroy()\n\nDestroys.\n\n### Box#close\n\nAn event.\n"
        ),
    }
    left = left_of("javascript", script, "box.js::Box.destroy")
    assert left["README.md"] == "# box\n\nText.\n\n### Box#end()\n\nEnds.\n\n### Box#close\n\nAn event.\n"


@pytest.mark.parametrize("other", ["", "function Tin () {}\nTin.prototype.map = function () {}\n"])
def test_a_heading_that_is_a_call_means_the_only_method_of_that_name(other: str) -> None:
    files = {
        "package.json": '{"name": "box", "main": "box.js"}',
        "box.js": (
            f"{other}function Box () {{}}\nBox.prototype.map = function (fn) {{ return [1].map(fn) }}\n"
            "Box.prototype.all = function (fn) { return [2].map(fn) }\nmodule.exports = Box\n"
        ),
        "README.md": "# box\n\nText.\n\n## .map(fn)\n\nMakes all new.\n\n## .all(fn)\n\nLike `.map()` of lists.\n",
    }
    left = left_of("javascript", files, "box.js::Box.map").get("README.md", files["README.md"])
    assert ("## .map(fn)\n\nMakes all new.\n\n" in left) is bool(other)
    assert "Like `.map()` of lists." in left


def test_headings_of_comments_go_with_all_that_is_below_them() -> None:
    head = "/// Goes in.\n///\n/// It is fast.\n///\n"
    panics = "/// # Panics\n///\n/// Never.\n"
    example = "/// # Examples\n///\n/// ```\n/// # fn main() {\n/// tray::dedent();\n/// # }\n/// ```\n///\n"
    files = {"src/lib.rs": (f"{head}{example}{panics}pub fn indent() {{}}\n\n/// Goes out.\npub fn dedent() {{}}\n")}
    left = left_of("rust", files, "src/lib.rs::dedent")["src/lib.rs"]
    assert left == f"{head}{panics}pub fn indent() {{}}\n"


def test_links_and_paths_of_rust_name_functions_that_are_ordinary_words() -> None:
    head = "//! Keeps text.\n//!\n//! It may [`indent`] it.\n//!\n"
    example = (
        '//! ```\n//! let before = "\n//!     One\n//! ";\n//! let after = "\n//! One\n//! ";\n'
        "//! assert_eq!(tray::dedent(before), after);\n//! ```\n//!\n"
    )
    code = "/// Goes in. Not like `crate::dedent`. To dedent text is easy.\npub fn indent() {}\n"
    files = {
        "src/lib.rs": (
            f"{head}//! Less is made with [`dedent`]:\n//!\n{example}//! It is small. See [`indent`] or [`dedent`].\n"
            f"//! One may dedent. All is free.\n\n{code}\n/// Goes out.\npub fn dedent() {{}}\n"
        ),
        "README.md": "# tray\n\nIt is [`tray::dedent`]'s. The `dedent` of a line is small.\n",
    }
    left = left_of("rust", files, "src/lib.rs::dedent")
    text = "//! It is small. See [`indent`]. One may\n//! dedent. All is free.\n\n"
    assert left["src/lib.rs"] == f"{head}{text}{code.replace(' Not like `crate::dedent`.', '')}"
    assert left["README.md"] == "# tray\n\nThe `dedent` of a line is small.\n"
    files["src/lib.rs"] = files["src/lib.rs"].replace("Less is made with [`dedent`]:", "Less is made like this:")
    assert "let before" not in left_of("rust", files, "src/lib.rs::dedent")["src/lib.rs"]


@pytest.mark.parametrize(
    "heading",
    [
        ".paths()", ".paths(fn)", "`.paths()`", ".paths() → Array", "`paths()` => Array", "[paths()](#paths)",
        "`paths(fn: (a) => b)`", "paths(opts = f())", "**.paths()**", "`.paths() → Array`", "`paths` → Array",
    ],
)  # fmt: skip
def test_sections_go_whatever_their_headings_have_around_a_name(heading: str) -> None:
    files = {
        "package.json": '{"name": "box", "main": "box.js"}',
        "box.js": (
            "function Box () {}\nBox.prototype.paths = function () { return [] }\n"
            "Box.prototype.clone = function () { return this }\nmodule.exports = Box\n"
        ),
        "README.md": (
            f"# box\n\nText.\n\n## {heading}\n\nReturns an array of what is inside.\n\n## .clone()\n\n"
            "Copies it, but for .paths(), which is slow. Copies are deep.\n\n## Paths\n\nThey are short.\n"
        ),
    }
    assert left_of("javascript", files, "box.js::Box.paths")["README.md"] == (
        "# box\n\nText.\n\n## .clone()\n\nCopies are deep.\n\n## Paths\n\nThey are short.\n"
    )


@pytest.mark.parametrize(
    ("name", "heading", "more", "is_gone"),
    [
        ("join", "Join", "", True),
        ("deep_join", "Deep join", "", True),
        ("join", "Joined", "", False),
        ("join", "Join", '```rust\n    let x = tray::split("b");\n```\n\n', False),
        ("join", "Join", "#### Details\n\nIt is fast.\n\n", False),
        ("join", "Join", "```sh\ncargo add tray\n```\n\n", False),
        ("usage", "Usage", "", False),
    ],
    ids=["capitalised", "words", "other_word", "other_example", "inner_section", "commands", "usual"],
)
def test_sections_whose_headings_are_words_of_a_name_go_with_their_examples(
    name: str, heading: str, more: str, *, is_gone: bool
) -> None:
    head = "# tray\n\nIt is small.\n\n## Examples\n\n### Split\n\nTakes apart:\n\n"
    head += '```rust\nlet a = tray::split("b");\n```\n\n'
    example = f'```rust\nlet argv = ["a"];\nprintln!("{{}}", tray::{name}(argv));\nrun(argv);\n```\n\n'
    files = {
        "src/lib.rs": f"pub fn split() {{}}\n\npub fn {name}() {{}}\n",
        "README.md": f"{head}### {heading}\n\nLogging what is run:\n\n{example}{more}## Bugs\n\nNone.\n",
    }
    left = left_of("rust", files, f"src/lib.rs::{name}")["README.md"]
    assert f"{name}(argv)" not in left
    assert (left == f"{head}## Bugs\n\nNone.\n") is (f"### {heading}" not in left) is is_gone


def test_links_and_lists_of_names_lose_one() -> None:
    files = {
        "box.go": (
            "package box\n\n// Load reads. See [Step], [Load], or [Keep]. The functions (Load, Keep, StepOn) are fast."
            "\n// Boxes are small. This is like [Step].\nfunc Load() {}\n\n// Keep keeps.\nfunc Keep() {}\n\n"
            "// Step goes.\nfunc Step() {}\n\n// StepOn goes on.\nfunc StepOn() { Step() }\n"
        )
    }
    assert left_of("go", files, "box.go::Step", "box.go::StepOn")["box.go"] == (
        "package box\n\n// Load reads. See [Load] or [Keep]. The functions (Load, Keep) are fast. Boxes are small.\n"
        "func Load() {}\n\n// Keep keeps.\nfunc Keep() {}\n"
    )


@pytest.mark.parametrize(
    ("reference", "left"),
    [
        ("See also: DumpAll.", ""),
        ("See also: DumpAll", ""),
        ("See also DumpAll.", ""),
        ("See DumpAll, LoadAll.", "See LoadAll."),
        ("See also: LoadAll, DumpAll and Keep.", "See also: LoadAll and Keep."),
        ("See also: LoadAll, Keep, or box.DumpAll", "See also: LoadAll or Keep"),
        ("See also: [DumpAll], [LoadAll].", "See also: [LoadAll]."),
        ("Named: DumpAll.", "Named: DumpAll."),
    ],
)
@pytest.mark.parametrize("between", ["", "//\n"])
def test_references_lose_the_names_that_are_gone(between: str, reference: str, left: str) -> None:
    box = "package box\n\n// Keep keeps.\n{}func Keep() {{}}\n\n// LoadAll loads.\nfunc LoadAll() {{}}\n"
    files = {"box.go": box.format(f"{between}// {reference}\n") + "\n// DumpAll dumps.\nfunc DumpAll() {}\n"}
    assert left_of("go", files, "box.go::DumpAll")["box.go"] == box.format(f"{between}// {left}\n" if left else "")


def test_a_heading_with_nothing_but_a_line_break_below_goes() -> None:
    files = {
        "box.go": "package box\n\nfunc DumpAll() {}\n\nfunc Keep() {}\n",
        "README.md": "# box\n\nText.\n\n## Example\n\n```go\nbox.DumpAll()\n```\n\n<br>\n\n## Use\n\nIt is free.\n",
        "user_guide.md": "# Guide\n\nIt is small. `DumpAll` prints all.\n",
    }
    left = left_of("go", files, "box.go::DumpAll")
    assert left["README.md"] == "# box\n\nText.\n\n## Use\n\nIt is free.\n"
    assert left["user_guide.md"] == "# Guide\n\nIt is small.\n"


def test_what_text_below_an_example_says_of_it_goes_with_it() -> None:
    files = {
        "box.go": "package box\n\nfunc DumpAll() {}\n\nfunc Keep() {}\n",
        "README.md": (
            "# box\n\nText.\n\n## More\n\nIt is small.\n\n```go\nbox.DumpAll()\n```\n\nThat will get you a file."
            " This program\ncan even do more. Boxes are free.\n\n```go\nbox.Keep()\n```\n\nThis will keep them.\n\n"
            "```go\nx := box.DumpAll()\n```\n\n...and all is there.\n\nThis is the end.\n"
        ),
    }
    assert left_of("go", files, "box.go::DumpAll")["README.md"] == (
        "# box\n\nText.\n\n## More\n\nIt is small.\n\nBoxes are free.\n\n```go\nbox.Keep()\n```\n\nThis will keep them."
        "\n\nThis is the end.\n"
    )


def test_short_names_are_meant_behind_those_of_their_packages() -> None:
    files = {
        "box.go": "package box\n\n// SI writes.\nfunc SI() {}\n\n// Load reads.\nfunc Load() {}\n",
        "README.md": '# box\n\nText in SI units.\n\n## Example\n\n```go\nbox.SI(0.1, "M")\nbox.Load()\n```\n',
    }
    left = left_of("go", files, "box.go::SI")
    assert left["README.md"] == "# box\n\nText in SI units.\n"


def test_an_item_goes_on_below_its_mark() -> None:
    head, rest = "# tray\n\n## Fast\n\n-   Trays\n", "-   Boxes\n    - Lids.\n"
    item = (
        "    - [#79](https://example.org/owner/fixedbitset/pull/79): Add `dump_all`,\n    clear texts and more by A.\n"
    )
    files = {**RUST, "README.md": head + item + rest}
    assert left_of("rust", files, "src/lib.rs::Tray.dump_all")["README.md"] == head + rest


def test_hidden_empty_lines_of_an_example_do_not_pile_up() -> None:
    lines = ["let tray = Tray::load();", "#", "# #[cfg(test)]", "# tray.dump_all();", "#", "assert!(tray.is_good());"]
    documented = "".join(f"//! {line}".rstrip() + "\n" for line in ["Keeps.", "", "```", *lines, "```"])
    source = documented + RUST["src/lib.rs"].partition("\n\n")[2]
    left = left_of("rust", {"src/lib.rs": source}, "src/lib.rs::Tray.dump_all")["src/lib.rs"]
    symbols = ("src/lib.rs::Tray.dump_all",)
    feature = Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=symbols, symbols=symbols, tests=())
    codebase = RustCodebase.from_texts({"src/lib.rs": source})
    patch = get("remove", "rust").delete(codebase, feature).source_patch
    lost = removed_text({}, codebase, symbols, patch)["src/lib.rs"]
    assert lost.startswith("```\n# #[cfg(test)]\n# tray.dump_all();\n```")
    assert left is not None
    assert left.startswith(documented.replace("//! #\n//! # #[cfg(test)]\n//! # tray.dump_all();\n", ""))


@pytest.mark.parametrize(
    ("label", "below", "is_left"),
    [
        ("Example:", "All is free.", False),
        ("**Usage**:", "All is free.", False),
        ("Example:", "```\n//! kit::kept();\n//! ```", True),
        ("Example:", "  All is free.", True),
    ],
    ids=["label", "marked", "another_example", "text_of_the_label"],
)
def test_the_label_of_an_example_goes_with_it(label: str, below: str, *, is_left: bool) -> None:
    head = f"//! Keeps things.\n//!\n//! {label}\n//!\n"
    example = "//! ```\n//! assert_eq!(kit::dump_all(), 1);\n//! ```\n//!\n"
    code = "\npub fn kept() {}\n"
    files = {"src/lib.rs": f"{head}{example}//! {below}\n{code}\npub fn dump_all() {{}}\n"}
    head = head if is_left else "//! Keeps things.\n//!\n"
    assert left_of("rust", files, "src/lib.rs::dump_all")["src/lib.rs"] == f"{head}//! {below}\n{code}"


def test_a_sentence_may_end_with_the_word_that_is_a_label_alone() -> None:
    head, example = "# kit\n\nIt is small.\n\n", "```rust\nkit::dump_all();\n```\n\n"
    files = {"src/lib.rs": "pub fn kept() {}\n\npub fn dump_all() {}\n"}
    text = "Keeps all. Look at this for an\nexample:\n\n"
    left = left_of("rust", {**files, "README.md": f"{head}{text}{example}Bye.\n"}, "src/lib.rs::dump_all")
    assert left["README.md"] == f"{head}Keeps all.\n\nBye.\n"


@pytest.mark.parametrize(
    ("comment", "is_left"),
    [
        ("is like [FirstPart] but\n// for strings", True),
        ("does the same as\n// FirstPart", True),
        ("is like nothing else. FirstPart calls it", False),
        ("comes after FirstPart", False),
    ],
)
def test_what_is_said_to_be_like_something_needs_it(comment: str, *, is_left: bool) -> None:
    source = f"package p\n\n// FirstPart cuts.\nfunc FirstPart() {{}}\n\n// Cut {comment}.\nfunc Cut() {{}}\n"
    feature = Feature(
        feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=("p.go::FirstPart",), symbols=("p.go::FirstPart",),
        tests=(),
    )  # fmt: skip
    deletion = get("remove", "go").delete(CODEBASES["go"]({"p.go": source}), feature)
    assert [path for path, _ in deletion.uses_left] == (["p.go"] if is_left else [])
