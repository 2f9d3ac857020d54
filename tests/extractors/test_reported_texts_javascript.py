"""What lifted tests in JavaScript report when they run: texts as lenient as their checks, whatever code replaces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from excise.extractors.javascript.execution.judged_texts import originals_values
from excise.extractors.javascript.execution.lifted_tests import lifted
from excise.extractors.javascript.execution.node_runner import INSIDE
from excise.extractors.javascript.execution.observed_names import numbered_ids, observed_ids
from excise.extractors.reported_texts import as_json


def texts(mode: str, *values: str) -> list[str | None]:
    """The texts of some expressions."""
    code = (
        f"const found = []\nconst make = require('{INSIDE}/excise_reported_values.cjs')\n"
        "const report = make((number, text) => found.push(text))\n"
        + "".join(f"report(1, '{mode}', {value})\n" for value in values)
        + "console.log(JSON.stringify(found))"
    )
    done = subprocess.run(["node", "-e", code], capture_output=True, check=True, text=True)
    return list(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        ("strict", ["0", "-0", "Object(0)"]),
        ("strict", ["'a'", "'a'.slice()", "new String('a')"]),
        ("loose", ["1", "'1'", "true", "1n", "' 1 '", "[1]"]),
        ("loose", ["1e23", "BigInt(1e23)"]),
        ("loose", ["null", "undefined"]),
        ("deep", ["{ a: 1, b: [2] }", "{ b: [2], a: 1, c: undefined }", "new (class X { a = 1; b = [2] })()",
                  "Object.assign(Object.create(null), { a: 1, b: [2] })"]),
        ("deep", ["new Map([[1, 2], [3, 4]])", "new Map([[3, 4], [1, 2]])"]),
        ("deep", ["new Set(['a', 'b'])", "new Set(['b', 'a'])"]),
        ("deep", ["[1, , 3]", "[1, undefined, 3]"]),
        ("deep", ["new TypeError('a')", "Object.assign(new Error('a'), { stack: 'b' })"]),
        ("deep", ["Buffer.from([1, 2])", "new Uint8Array([1, 2])"]),
        ("deep", ["require('vm').runInNewContext('({ a: new Date(5), b: /x/g, c: new Map([[1, 2]]) })')",
                  "{ a: new Date(5), b: /x/g, c: new Map([[1, 2]]) }"]),
        ("loosely", ["{ a: '1', b: null }", "{ a: 1, b: null }", "{ a: 1, b: undefined }"]),
        ("alike", ["new Error('a')", "Object.assign(new TypeError('a'), { code: 1 })"]),
        ("listed", ["{ a: 1 }", "Object.create({ a: 1 })"]),
        ("class", ["new TypeError('a')", "new (class AbortError extends TypeError {})('b')",
                   "new (class RangeError extends TypeError {})('b')",
                   "Object.assign(new TypeError(), { constructor: RangeError })",
                   "require('vm').runInNewContext('new TypeError()')"]),
        ("size", ["'ab'", "[1, 2]", "new Set([1, 2])"]),
    ],
)  # fmt: skip
def test_what_a_check_takes_for_equal_has_one_text(mode: str, values: list[str]) -> None:
    found = texts(mode, *values)
    assert None not in found
    assert len(set(found)) == 1, found


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        ("strict", ["1", "'1'", "true", "1n", "null", "undefined", "''", "NaN", "'NaN'"]),
        ("loose", ["1", "2", "'a'", "'b'", "null"]),
        ("deep", ["[1, 2]", "[2, 1]", "[[1], 2]", "['1', 2]", "{ 0: 1, 1: 2 }", "new Set([1, 2])", "[]", "{}",
                  "new Date(1)", "/a/", "/a/g", "{ a: '\"b\":1' }", "{ a: { b: 1 } }", "Infinity", "1e21"]),
    ],
)  # fmt: skip
def test_what_a_check_tells_apart_has_two_texts(mode: str, values: list[str]) -> None:
    found = texts(mode, *values)
    assert len(set(found)) == len(values), found


def test_values_without_a_text_have_none() -> None:
    loop = "(() => { const a = {}; a.a = a; return a })()"
    assert texts("deep", "() => 1", "Promise.resolve(1)", "[Symbol.iterator, () => 1]", loop) == [None] * 4


def test_a_check_whose_two_values_have_two_texts_has_none() -> None:
    assert texts("deep", "[1], undefined, () => [1]", "[1], undefined, () => [2]") == ["[1]", None]
    assert texts("size", "'abc', undefined, () => 3", "'abc', undefined, () => 4") == ["3", None]


TESTS = """
const { test } = require('node:test')
const assert = require('node:assert')
const { parse } = require('./code.js')
test('adds 44', () => { assert.deepEqual(parse('a=44'), { a: 44 }) })
test('adds 44', () => { assert.equal(parse('b=1').b, 1) })
test('throws', () => { assert.throws(() => parse(''), /^SyntaxError: nothing to parse/) })
"""
RIGHT = """
exports.parse = (text) => {
  if (text === '') throw new SyntaxError('nothing to parse here')
  const [key, value] = text.split('=')
  return { [key]: Number(value) }
}
"""
OTHER = """
class Answer { constructor (text) { const at = text.indexOf('='); this[text.slice(0, at)] = +text.slice(at + 1) } }
exports.parse = (text) => { if (!text) throw new SyntaxError('nothing to parse'); return new Answer(text) }
"""
HOSTILE = """
const guess = () => '{"a":1}'
for (const [object, name] of [[JSON, 'stringify'], [Object, 'keys'], [Reflect, 'ownKeys'], [Reflect, 'apply'],
  [Array.prototype, 'join'], [Array.prototype, 'sort'], [String.prototype, 'charCodeAt'], [Array.prototype, 'push'],
  [Number.prototype, 'toString'], [Map.prototype, 'forEach'], [Array, 'isArray'], [Object, 'is']]) object[name] = guess
require('util').inspect.reportValue = guess
require('util').types.isDate = () => true
"""


def run(folder: Path, code: str) -> dict[str, Any]:
    """What the lifted form of the tests reports beside some code, as the supervisor reads it."""
    made = lifted(TESTS.encode(), ["adds 44", "throws"], ["parse"])
    assert made is not None
    assert b"44" not in made.observing.replace(b"'a=44'", b"")
    functions = [f"a.test.js::{name}" for name in made.functions]
    asked = observed_ids([functions[0], f"{functions[0]}[0]", f"{functions[0]}[1]", functions[1]], functions)
    return run_form(folder, code, made.observing, asked)


def run_form(folder: Path, code: str, form: bytes, asked: dict[str, str]) -> dict[str, Any]:
    """What a form of tests reports."""
    (folder / "code.js").write_text(code)
    (folder / "a.test.js").write_bytes(form)
    request = {
        "root": str(folder), "ids": list(asked), "canaries": {}, "sealed": {}, "runner": "node", "args": [],
        "mocha": [], "timeout_s": 60, "test_timeout_s": 20, "times_observed": 2,
    }  # fmt: skip
    program = f"import json, sys; sys.path.insert(0, {str(INSIDE)!r}); import excise_node_grade as g\n"
    program += "print(json.dumps(g.observe(json.load(sys.stdin))))"
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(request), capture_output=True, text=True, check=True
    )
    return {asked[each["id"]]: as_json(each["reported"]) for each in json.loads(done.stdout)["results"]}


def test_right_code_reports_the_same_and_hostile_code_too(tmp_path: Path) -> None:
    first, other, hostile = (run(tmp_path, code) for code in (RIGHT, OTHER, RIGHT + HOSTILE))
    assert numbered_ids(first) == {
        "a.test.js::adds 44": "a.test.js::adds 44",
        "a.test.js::adds 44[1]": "a.test.js::adds 44[2]",
        "a.test.js::throws": "a.test.js::throws",
    }
    assert '"{\\"a\\":44}"' in first["a.test.js::adds 44"]
    assert hostile == first, "what the code replaces is not used"
    for test, values in first.items():
        assert originals_values(other[test]).nested == originals_values(values).nested
    assert other["a.test.js::throws"] != first["a.test.js::throws"]


def test_texts_are_matched_without_the_solution(tmp_path: Path) -> None:
    (tmp_path / "a.test.js").write_text(
        json.dumps({"it": {"1": {"source": "^a\\/b", "flags": "i"}, "2": {"text": "no"}}})
    )
    cases = [("it", "1", "A/bc"), ("it", "1", "xa/b"), ("it", "2", "say no"), ("it", "3", "a"), ("other", "1", "a/b")]
    asked = [{"path": "a.test.js", "test": test, "number": n, "text": text} for test, n, text in cases]
    done = subprocess.run(
        ["node", INSIDE / "excise_node_judge.cjs"], input=json.dumps({"root": str(tmp_path), "texts": asked}),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [True, False, True, False, False]


def test_checks_at_two_places_may_run_in_any_order() -> None:
    first, second = (
        json.dumps({"returned": True, "values": values})
        for values in ([["1", "", "3"], ["2", "", "4"]], [["2", "", "4"], ["1", "", "3"]])
    )
    assert originals_values(first).nested == originals_values(second).nested


STATE = """
const { test } = require('node:test')
const assert = require('node:assert')
const { f, keep } = require('./code.js')
test('keeps', () => { keep(43)
assert.notEqual(f(), null) })
test('state', () => { assert.deepEqual(f(), [43]) })
test('plain', () => { assert.deepEqual(f(2), { a: [44] }) })
test('other', () => { assert.deepEqual(f(3), Object.assign(new Error('a'), { code: 1 })) })
"""
STATED = """
let kept = []
exports.keep = (n) => { kept = [n] }
exports.f = (n) => n === 2 ? { a: [44] } : n === 3 ? Object.assign(new Error('a'), { code: 1 }) : kept
"""


def test_tests_that_need_what_is_left_out_report_something_else_in_the_whole_file(tmp_path: Path) -> None:
    made = lifted(STATE.encode(), ["state", "plain", "other"], ["f"])
    assert made is not None
    functions = [f"a.test.js::{name}" for name in made.functions]
    asked = observed_ids(functions, functions)
    found = run_form(tmp_path, STATED, made.observing, asked)
    whole = run_form(tmp_path, STATED, made.whole, {"a.test.js::keeps": "a.test.js::keeps", **asked})
    whole.pop("a.test.js::keeps")
    assert found.keys() == whole.keys() == set(functions)
    assert {name for name in functions if found[name] == whole[name]} == {"a.test.js::plain", "a.test.js::other"}
