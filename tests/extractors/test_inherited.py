"""What methods implement or override, and where the words about it stand."""

from __future__ import annotations

import pytest

from excise.deleters.statement.descriptions import description, undescribed
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.protocols import Codebase

GO = """package flags

// Value is a flag's value.
type Value interface {
	String() string
	// Set parses a text,
	// and keeps what it means.
	Set(text string, more ...int) (err error)
}

type number int

func (n *number) Set(s string, _ ...int) error { return nil }

type list []int

func (l list) Set(s string) error { return nil }

func (l list) Len() int { return len(l) }

func (l list) String() string { return "" }

// Add appends one.
func (l list) Add(n int) {}
"""
JAVA = """package flags;

interface Value extends Source {
    /** Parses a text, and keeps what it means. */
    void set(String text, int... more);
    void drop();
}

abstract class Source {
    /** Where the value was found. */
    protected String place(int depth) { return ""; }
}

class Number implements Value {
    @Override public void set(String s, int... rest) { }
    public void set(String s) { }
    @Override public void drop() { }
    @Override public int hashCode() { return 1; }
    @Override protected String place(int d) { return "here"; }
    public int size() { return 0; }
}
"""
RUST = """pub trait Value {
    /// Parses a text,
    /// and keeps what it means.
    fn set(&mut self, text: &str);
    /// Forgets it.
    fn clear(&mut self) {}
    fn other(&self);
}

pub struct Number(u8);

impl super::Value for Number {
    fn set(&mut self, text: &str) { self.0 = 1; }
    fn clear(&mut self) { self.0 = 0; }
    fn other(&self) {}
}

impl Iterator for Number {
    type Item = u8;
    fn next(&mut self) -> Option<u8> { None }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { Ok(()) }
}

impl Number {
    pub fn set_all(&mut self) {}
}
"""
PYTHON = '''class Base:
    def other(self):
        """Base."""

    def set(self, text):
        """Parse a text, and keep what it means."""


class Number(Base):
    def set(self, text):
        return 1

    def other(self):
        return 2


class Names(dict):
    def get(self, key):
        return 3
'''
SCRIPT = """import {Source} from './source';

interface Value {
  /** Parses a text, and keeps what it means. */
  set(text: string): void;
  drop(): void;
}

export class Number extends Source<Value> implements Value {
  set(text: string): void { this.value = 1; }
  drop(): void {}
  place(): string { return 'here'; }
  size(): number { return 1; }
}
"""
SOURCE = """import {Root} from './root';

export class Source extends Root {
  // Where the value
  // was found.
  place() { return ''; }
}
"""
CASES = [
    (GoCodebase.from_texts({"a.go": GO}), "a.go::number.Set", "As `Value.Set` says:", "Set parses a text,\nand keeps"),
    (GoCodebase.from_texts({"a.go": GO}), "a.go::list.Add", "", "Add appends one."),
    (JavaCodebase.from_texts({"N.java": JAVA}), "N.java::Number.set", "As `Value.set` says:", "Parses a text"),
    (JavaCodebase.from_texts({"N.java": JAVA}), "N.java::Number.place", "As `Source.place` says:", "Where the value"),
    (
        RustCodebase.from_texts({"src/lib.rs": RUST}),
        "src/lib.rs::Number.set",
        "As `Value::set` says:",
        "Parses a text,\n",
    ),
    (
        RustCodebase.from_texts({"src/lib.rs": RUST}),
        "src/lib.rs::Number.clear",
        "As `Value::clear` says:",
        "Forgets it.",
    ),
    (
        JavaScriptCodebase.from_texts({"n.ts": SCRIPT, "source.js": SOURCE}),
        "n.ts::Number.set",
        "As `Value.set` says:",
        "Parses a text",
    ),
    (
        JavaScriptCodebase.from_texts({"n.ts": SCRIPT, "source.js": SOURCE}),
        "n.ts::Number.place",
        "As `Source.place` says:",
        "Where the value\nwas",
    ),
    (PythonCodebase.from_texts({"n.py": PYTHON}), "n.py::Number.set", "As `Base.set` says:", "Parse a text"),
]


@pytest.mark.parametrize(("codebase", "symbol", "lead", "words"), CASES, ids=[case[1] for case in CASES])
def test_words_of_what_is_overridden_are_found(codebase: Codebase, symbol: str, lead: str, words: str) -> None:
    introduced, text, _ = description(codebase, codebase.symbols()[symbol])
    assert introduced == lead
    assert text.startswith(words)
    assert not undescribed(codebase, [codebase.symbols()[symbol]], ())


@pytest.mark.parametrize(
    ("codebase", "described", "silent"),
    [
        (CASES[0][0], {"a.go::list.Len"}, {"a.go::list.Set", "a.go::list.String"}),
        (
            CASES[2][0],
            {"N.java::Number.hashCode"},
            {"N.java::Number.set#2", "N.java::Number.drop", "N.java::Number.size"},
        ),
        (
            CASES[4][0],
            {"src/lib.rs::Number.next"},
            {"src/lib.rs::Number.fmt", "src/lib.rs::Number.other", "src/lib.rs::Number.set_all"},
        ),
        (CASES[6][0], set(), {"n.ts::Number.drop", "n.ts::Number.size"}),
        (CASES[8][0], {"n.py::Names.get"}, {"n.py::Number.other"}),
    ],
    ids=["go", "java", "rust", "javascript", "python"],
)
def test_conventions_describe_and_other_names_do_not(codebase: Codebase, described: set[str], silent: set[str]) -> None:
    chosen = [codebase.symbols()[symbol] for symbol in sorted(described | silent)]
    assert {symbol.symbol_id for symbol in undescribed(codebase, chosen, ())} == silent
    for symbol in described:  # that it is one is all that is told
        text, quoted, _ = description(codebase, codebase.symbols()[symbol])
        name = codebase.symbols()[symbol].name
        assert not quoted
        assert text in {"", f"Implements or overrides `{text.partition('`')[2].partition('`')[0]}`."}
        assert not text or name in text


DECLARED = {
    "package.json": '{"name": "ids", "main": "index.js", "types": "types.d.ts"}',
    "index.js": "export { make as create } from './make.js'\nexport * from './box.js'\n",
    "make.js": "export function make (n) {\n  // A plain loop is faster than any call here.\n  return n | 0\n}\n",
    "box.js": "export class Box {\n  put (n) { return n }\n\n  get () { return 1 }\n}\nexport const two = () => 2\n",
    "types.d.ts": "/** Makes a name of n signs. */\nexport function create(n: number): string\n"
    "export class Box {\n  /** Puts it in. */\n  put(n: number): number\n  get(): number\n}\n"
    "/** Not this two. */\nexport const two: () => number\n",
    "box.d.ts": "/** Gives two, always. */\nexport const two: () => number\n",
    "other.js": "export function make (n) { return n + 1 }\n",
}


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("make.js::make", ("As `types.d.ts` says:", "Makes a name of n signs.", "")),
        ("box.js::Box.put", ("As `types.d.ts` says:", "Puts it in.", "")),
        ("box.js::two", ("As `box.d.ts` says:", "Gives two, always.", "")),
        ("box.js::Box.get", ("", "", "")),
        ("other.js::make", ("", "", "")),
    ],
)
def test_declarations_describe_functions_of_their_modules(symbol: str, expected: tuple[str, ...]) -> None:
    codebase = JavaScriptCodebase.from_texts(DECLARED)
    assert description(codebase, codebase.symbols()[symbol]) == expected
    assert bool(undescribed(codebase, [codebase.symbols()[symbol]], ())) is not expected[0].startswith("As")


def test_jsdoc_above_an_export_describes_the_function() -> None:
    source = (
        "/** Adds one to it. */\nexports.a = function (n) { return n + 1 }\n\n"
        "/** Takes one away. */\nmodule.exports.b = b\n\nfunction b (n) { return n - 1 }\n\n"
        "/**\n * Module exports.\n */\n\nexports.c = c\nfunction c () {}\n"
        "// Of both.\nexports.d = d\nfunction d () {}\n"
        "const lib = { e }\nfunction e () {}\n"
    )
    listed = "module.exports = {\n  /** Twice as much. */\n  f,\n  g: g\n}\nfunction f () {}\nfunction g () {}\n"
    codebase = JavaScriptCodebase.from_texts({"m.js": source, "n.js": listed})
    told = {symbol.name: symbol.docstring for symbol in codebase.symbols().values() if symbol.docstring}
    assert told == {"a": "Adds one to it.", "b": "Takes one away.", "f": "Twice as much."}
