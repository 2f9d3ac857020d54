"""What is read from JavaScript files: definitions, who refers to whom, coverage by offsets, blocks of tests."""

from __future__ import annotations

import json
import random
import re
import subprocess

import pytest

from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import Offsets
from excise.extractors.javascript.analysis.parser import parse_module
from excise.extractors.javascript.analysis.test_blocks import blocks_of, clean_title
from excise.extractors.javascript.execution.failing_copies import failing_copies
from excise.extractors.javascript.execution.javascript_grading import JavaScriptGrading
from excise.extractors.javascript.execution.mirrored_tests import mirrored
from excise.extractors.javascript.execution.wrong_values import _WORDS, SEEDS, WRONG, fill
from excise.types import SymbolKind

DEFINITIONS = b"""\
/** Adds two numbers. */
function add (a, b) {
  return inner(a) + b
  function inner (x) { return x }
}
// Doubles: see add
const double = async (x) => x * 2, triple = function (x) { return x && x * 3 }
class Box extends Base {
  constructor () { super() }
  static make () { return new Box() }
  get size () { return 1 }
  set size (v) {}
}
Box.prototype.open = function * (key) { yield key }
const table = { a: function () {}, b () {}, c: 1 }
exports.early = function () {}
module.exports = { add, later () {}, renamed: double }
"""


def names(source: bytes, path: str = "lib/some-file.js") -> list[str]:
    return [symbol.qualname for symbol in parse_module(path, source).symbols[1:]]


def test_definitions_of_every_form_are_found() -> None:
    assert names(DEFINITIONS) == [
        "add", "add.inner", "double", "triple", "Box", "Box.constructor", "Box.make", "Box.size", "Box.size#2",
        "Box.open", "table.a", "table.b", "early", "later",
    ]  # fmt: skip


def test_definitions_have_signatures_and_the_comments_above_them() -> None:
    found = {symbol.qualname: symbol for symbol in parse_module("a.js", DEFINITIONS).symbols}
    assert (found["add"].signature, found["add"].docstring) == ("function add(a, b)", "Adds two numbers.")
    assert found["double"].signature == "async function double(x)"
    assert found["Box"].signature == "class Box extends Base"
    assert found["Box.make"].signature == "static make()"
    assert found["Box.open"].signature == "*open(key)"
    assert found["Box.open"].kind is SymbolKind.METHOD
    assert found["triple"].complexity == 2


@pytest.mark.parametrize(
    ("comment", "docstring"),
    [
        ("/**\n * Adds.\n * @param {number} a\n */\n\n", "Adds.\n@param {number} a"),
        ("/**\n * Adds.\n * @param {number} a\n */\n\n\n", ""),
        ("/** The file. */\n\n", ""),
        ("/**\n * @callback Visit\n * @param {string} name\n */\n\n", ""),
        ("/**\n * Kit.\n * @license MIT\n * @param {string} name\n */\n\n", ""),
        ("/**\n * Kit.\n * @example add(1)\n */\n\n", ""),
        ("/**\n * Kit.\n * @param {number} a\n */\n\nconst fs = require('fs')\n", ""),
        ("/** @param {number} a\n */\n\n// Adds.\n", "Adds."),
    ],
)
def test_documentation_may_be_followed_by_an_empty_line(comment: str, docstring: str) -> None:
    symbols = parse_module("a.js", f"{comment}function add(a) {{ return a }}\n".encode()).symbols
    (symbol,) = (each for each in symbols if each.name == "add")
    assert symbol.docstring == docstring


@pytest.mark.parametrize(
    ("path", "source", "name"),
    [
        ("lib/to-iso.js", b"module.exports = function (x) { return x }", "toIso"),
        ("lib/a.js", b"module.exports = exports = function named () {}", "named"),
        ("lib/parse/index.js", b"module.exports = () => 1", "parse"),
        ("a.mjs", b"export default function () {}", "a"),
        ("a.mjs", b"export const one = () => 1", "one"),
    ],
)
def test_what_a_file_exports_as_a_whole_has_a_name(path: str, source: bytes, name: str) -> None:
    assert names(source, path) == [name]


def test_signatures_say_what_is_exported_as_a_whole() -> None:
    found = parse_module("lib/join.js", b"module.exports = function (a) {}").symbols[1]
    assert found.signature == "module.exports = function join(a)"


def codebase(**files: str) -> JavaScriptCodebase:
    paths = {name.replace("__", "/") + ".js": text for name, text in files.items()}
    return JavaScriptCodebase.from_texts(paths)


def test_names_are_resolved_through_requires_and_re_exports() -> None:
    found = codebase(
        lib__a="exports.one = function () { return helper() }\nfunction helper () { return 1 }",
        lib__b="const { one: uno } = require('./a')\nmodule.exports = function two () { return uno() }",
        index="const a = require('./lib/a')\nmodule.exports = { one: a.one, two: require('./lib/b') }",
        use="const all = require('.')\nfunction user () { all.two(); return all.one() }",
    )
    assert found.callees("lib/a.js::one") == {"lib/a.js::helper"}
    assert found.callees("lib/b.js::two") == {"lib/a.js::one"}
    assert found.callees("use.js::user") == {"lib/a.js::one", "lib/b.js::two"}


def test_names_of_parameters_and_variables_are_no_references() -> None:
    found = codebase(a="function f () {}\nfunction g (f) { return f() }\nfunction h () { let f = 1; return f }")
    assert not found.callers("a.js::f")


def test_functions_within_functions_and_methods_are_reached() -> None:
    found = codebase(
        a="function f () { return g()\n function g () { return h() }\n function h () {} }\n"
        "class A { m () { return this.n() } n () {} }"
    )
    assert "a.js::f.g" in found.callees("a.js::f")
    assert found.callees("a.js::f.g") == {"a.js::f.h"}
    assert found.callees("a.js::A.m") == {"a.js::A.n"}


def test_imports_of_modules_are_resolved() -> None:
    found = JavaScriptCodebase.from_texts(
        {
            "a.mjs": "export function one () {}\nexport { one as uno }\nexport default class Two {}",
            "b.mjs": "export * from './a.mjs'\nexport { default as Zwei } from './a.mjs'",
            "c.mjs": "import { uno, Zwei } from './b.mjs'\nexport function user () { return [uno(), new Zwei()] }",
        }
    )
    assert found.callees("c.mjs::user") == {"a.mjs::one", "a.mjs::Two"}


def test_offsets_count_utf_16_units() -> None:
    source = "const é = '😀'; function f () {}".encode()
    start = source.decode().encode("utf-16-le").index("function".encode("utf-16-le")) // 2
    assert source[Offsets(source).to_byte(start) :].startswith(b"function f")


def test_code_belongs_to_the_innermost_definition_around_it() -> None:
    text = "class A {\n  m () { return [1].map((x) => x) }\n}\nfunction é () { return function () {} }\n"
    found = codebase(a=text)
    at = text.index("(x)")
    assert found.symbols_of_function("a.js", at, at + len("(x) => x")) == {"a.js", "a.js::A", "a.js::A.m"}
    assert found.symbols_of_function("a.js", 0, len(text)) == frozenset()


TESTS = b"""\
const test = require('tape')
test('outer [x]', function (t) {
  t.test('same', (st) => { st.equal(f(1), 2); st.end() })
  t.test('same', (st) => { st.ok(f(2)); st.end() })
  for (const n of [1, 2]) {
    t.test(`number ${n}`, (st) => { st.deepEqual(f(n), [n]); st.end() })
  }
  t.end()
})
test('throws', (t) => { t.throws(() => f(), RangeError); t.end() })
"""
IDS = [
    "t.js::outer (x)::same", "t.js::outer (x)::same[2]", "t.js::outer (x)::number 1", "t.js::outer (x)::number 2",
    "t.js::throws",
]  # fmt: skip


def test_tests_are_assigned_to_the_blocks_that_define_them() -> None:
    file = blocks_of(TESTS, [*IDS, "t.js::unknown"])
    outer, throws = file.blocks
    assert [sorted(block.tests) for block in outer.blocks] == [IDS[:2], IDS[:2], IDS[2:4]]
    assert throws.tests == {IDS[4]}
    assert file.others == {"t.js::unknown"}


def test_titles_hold_nothing_that_ids_are_made_of() -> None:
    assert clean_title(" a::b [c]\n d ") == "a:b (c) d"


def test_mirrored_tests_expect_what_is_wrong() -> None:
    changed = mirrored(TESTS, ["outer (x)::same", "throws"])
    assert changed is not None
    text = changed.decode()
    assert "st.ok(!(f(2)))" in text
    assert re.search(r"t\.throws\(\(\) => f\(\), /[a-z]+ [a-z]+/\)", text)
    assert "st.deepEqual(f(n), [n])" in text
    assert "st.equal(f(1), 2)" not in text
    assert mirrored(TESTS, ["no such test"]) is None


EXPECTATIONS = b"""\
describe('a', () => {
  it('is last', async () => {
    expect(f(1)).toBe(2)
    await expect(f()).rejects.toThrow(X)
    for (const x of f(2)) { expect(x).not.toBe(1); assert(x) }
    g()
  })
  it('calls back', (done) => { f((e) => { assert.equal(e, 1); done() }) })
  it('chai', () => { f().should.have.property('a').that.is.a('string') })
  it('throws', () => { expect(() => f()).toThrow(RangeError) })
  it('does not throw', () => { expect(() => f()).not.toThrow() })
  it('rejects', () => expect(f()).rejects.toThrow('x'))
  it('resolves', async () => { await expect(f()).resolves.toEqual([1]) })
  it('is true', () => { expect(f()).to.be.true })
  it('is something', () => { expect(f()).toBeTruthy() })
  it('is more', () => { expect(f()).toBeGreaterThan(3) })
  it('snapshot', () => { expect(f()).toMatchSnapshot() })
})
"""


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        (
            "is last",
            [
                "    expect(f(1)).toBe(2)\n",
                ".rejects.toThrow(X)",
                "{ expect(x).not.toBe((x)); assert(!(x)) }",
            ],
        ),
        ("calls back", ["assert.equal(e, wrong(1)); done()"]),
        ("chai", [".should.have.property('a').that.is.a(wrong('string'))"]),
        ("throws", ["expect(() => f()).toThrow(/word word/)"]),
        ("does not throw", ["expect(() => { (() => f())(); throw new Error('word') }).not.toThrow()"]),
        ("rejects", ["expect(f()).rejects.toThrow(/word word/)"]),
        ("resolves", ["expect(f()).resolves.toEqual(wrong([1]))"]),
        ("is true", ["expect(((f()), false)).to.be.true"]),
        ("is something", ["expect(!(f())).toBeTruthy()"]),
        ("is more", ["expect(f()).toBeGreaterThan((3) + 7000)"]),
    ],
)
def test_only_the_last_assertion_of_a_mirrored_test_expects_what_is_wrong(title: str, expected: list[str]) -> None:
    changed = mirrored(EXPECTATIONS, [f"a::{title}"])
    assert changed is not None
    text = re.sub(r"\b(plain|prepared|value|given|made|same|sorted|item)[0-9a-f]{4}\b", "wrong", changed.decode())
    text = re.sub("|".join(_WORDS), "word", re.sub(r"\+ \d+000", "+ 7000", text))
    assert all(each in text for each in expected), text


VALUES = (
    "[1, 0, -7, 123456, 3.14, NaN, 1e300, '', 'a; b=\"c.pdf\"', '--', '2017-03-04', true, null, undefined, [], [1, 2],"
    " { a: 1 }, {}, new Date(0), Buffer.from('abc'), /a/, () => 1, new Map(), 10n]"
)


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_values_differ_and_have_the_look_of_the_right_ones(seed: str) -> None:
    script = (
        "const assert = require('assert')\n"
        f"for (const value of {VALUES}) assert.notDeepEqual({WRONG}(value), value)\n"
        f"console.log(JSON.stringify(['plans 17', '2017-03-04', 123456, 3.25, 'a'.repeat(30)].map({WRONG})))\n"
    )
    filled = fill(script.encode(), seed)
    assert filled == fill(script.encode(), seed)
    done = subprocess.run(["node", "-e", filled.decode()], capture_output=True, text=True, check=True)
    text, date, number, share, long = json.loads(done.stdout)
    assert re.fullmatch(r"[a-z]{5} \d\d", text)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)
    assert 123450 <= number < 123460
    assert len(str(share)) <= 4
    assert len(long) == 30


def test_equal_seeds_give_equal_mirrored_tests() -> None:
    made = {seed: mirrored(TESTS, ["outer (x)::same", "throws"], seed) for seed in SEEDS}
    assert len(set(made.values())) == len(SEEDS)
    assert made == {seed: mirrored(TESTS, ["outer (x)::same", "throws"], seed) for seed in SEEDS}


COPIED = b"""\
const assert = require('node:assert')
describe('a', () => {
  it('returns', function () { assert.ok(f()); return 1 })
  it('is short', () => f())
  it('waits', async () => { await f() })
  it('is empty', () => {})
  it('calls back', (done) => { f(done) })
  it.fails('fails', () => { f() })
  it('yields', function * () { yield f() })
})
"""


def test_failing_copies_fail_whatever_the_body_does() -> None:
    names = ["returns", "is short", "waits", "is empty", "calls back", "fails", "yields"]
    found = failing_copies(COPIED, [f"a::{name}" for name in names], "other", random.Random(1))
    assert found is not None
    assert found[1] == ("a::returns", "a::is short", "a::waits", "a::is empty")
    text = re.sub(r"\d{2,}", "0", found[0].decode())
    assert "{ try { assert.ok(f()); return 1 \n} finally { assert.strictEqual(0, 0) } }" in text
    assert "=> { try { return (f()) } finally { assert.strictEqual(0, 0) } })" in text
    assert "{ f(done) }" in text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"it('x', () => { expect(f()).toBe(1) })\n", "finally { expect(0).toBe(0) }"),
        (b"it('x', () => { expect(f()).to.equal(1) })\n", "finally { expect(0).to.equal(0) }"),
        (b"it('x', () => { f().should.be(1) })\n", "finally { throw new Error('0 != 0') }"),
    ],
)
def test_failing_copies_use_the_assertions_of_their_file(source: bytes, expected: str) -> None:
    found = failing_copies(source, ["x"], "other", random.Random(1))
    assert found is not None
    assert expected in re.sub(r"\d{2,}", "0", found[0].decode())


def test_copies_in_tape_fail_before_the_test_can_end() -> None:
    source = b"const test = require('tape')\ntest('x', (t) => { t.equal(f(), 1); t.end() })\n"
    found = failing_copies(source, ["x"], "tape", random.Random(1))
    assert found is not None
    assert re.search(r"\(t\) => \{ t\.equal\(\d+, \d+\); t\.equal\(f\(\), 1\)", found[0].decode())


def test_snapshots_have_no_mirrored_form() -> None:
    assert mirrored(EXPECTATIONS, ["a::snapshot"]) is None


def test_mirrored_tests_in_typescript_are_not_checked_for_types() -> None:
    changed = mirrored(b"/** @jest-environment node */\nit('a', () => { assert.equal(f() as number, 1) })\n", ["a"])
    assert changed is not None
    assert changed.startswith(b"/** @jest-environment node */\n// @ts-nocheck\nit('a'")


def test_values_of_tables_may_be_empty() -> None:
    file = blocks_of(b"test.each([['', 1]])('%s => %s', () => {})\n", ["t.js::=> 1", "t.js::=>", "t.js::a => b"])
    assert not file.others


def test_tables_of_tests_are_blocks_of_several_tests() -> None:
    text = (
        b"describe('sum', () => {\n"
        b"  it.each([[1, test], [2, 3]])('adds %d and %d', (a, b) => { expect(f(a)).toBe(b) })\n"
        b"  test.each`a | b\n${1} | ${2}`('takes $a', ({ a, b }) => { expect(f(a)).toBe(b) })\n})\n"
    )
    file = blocks_of(text, ["t.js::sum::adds 1 and 2", "t.js::sum::adds 2 and 3", "t.js::sum::takes 1"])
    (outer,) = file.blocks
    assert [sorted(block.tests) for block in outer.blocks] == [
        ["t.js::sum::adds 1 and 2", "t.js::sum::adds 2 and 3"],
        ["t.js::sum::takes 1"],
    ]
    assert not file.others


def test_tests_on_some_conditions_only_are_blocks() -> None:
    file = blocks_of(b"!process.browser && tape('pipes', (t) => {})\nconst a = 1 && 2\n", ["t.js::pipes"])
    assert not file.others
    assert [block.tests for block in file.blocks] == [{"t.js::pipes"}]


def test_solutions_may_not_write_what_tests_of_tap_compare_with() -> None:
    forbidden = JavaScriptGrading().forbidden
    assert forbidden("tap-snapshots/test/a.js.test.cjs", ours=True) == "test"
    assert forbidden("sub/tap-snapshots/a.cjs", ours=False) == "test"
    assert forbidden("lib/tap-snapshots.js", ours=False) == ""
