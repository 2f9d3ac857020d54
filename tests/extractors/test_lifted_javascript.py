"""Lifted tests in JavaScript: their observing forms, what is not divided, and what they report when they run."""

from __future__ import annotations

import json
import re

import pytest

from excise.extractors.javascript.execution.lifted_tests import lifted

NODE = (
    "const { test, it, describe } = require('node:test')\n"
    "const assert = require('node:assert')\nconst { f, ok } = require('..')\n"
)
STRICT = "import { test } from 'node:test'\nimport assert from 'node:assert/strict'\nimport { f } from '../index.js'\n"
TAPE = "const test = require('tape')\nconst f = require('../')\n"
TAP = "const { test } = require('tap')\nconst f = require('../')\n"
JEST = "const { f } = require('../src')\n"
CHAI = "import { expect } from 'chai'\nimport { f } from '../src/index.js'\n"


def form_of(head: str, code: str, *names: str) -> tuple[str, str]:
    """The observing form of a file without its head, the reporter called ``report``; and why there is none."""
    source = f"{head}{code}\n".encode()
    found = lifted(source, names or ["it"], ["f", "ok"])
    assert found is not None
    text = found.observing.decode()
    mark = re.search(r"const (report[0-9a-f]{8}) = ", text)
    text = text.replace(mark[1], "report").partition("reportOf.reportValue")[2] if mark else text
    return re.sub(r"\s+", " ", text), "; ".join(sorted(set(found.refused.values())))


@pytest.mark.parametrize(
    ("head", "code", "parts"),
    [
        (NODE, "test('it', () => { assert.equal(f(2), 44) })", ["report(1, 'loose', f(2))"]),
        (NODE, "test('it', () => { assert.strictEqual(44, f(2), 'is 44') })", ["report(1, 'strict', f(2))"]),
        (STRICT, "test('it', async () => { assert.equal(await f(2), 44) })", ["report(1, 'strict', await f(2))"]),
        (NODE, "test('it', () => { const want = [44]\nassert.deepEqual(f(2), want) })",
         ["const want = undefined", "report(1, 'loosely', f(2))"]),
        (NODE, "const rows = [['a', 44], ['b', 44 + 1]]\n"
               "test('it', () => { for (const [text, want] of rows) assert.deepStrictEqual(f(text), want) })",
         ["[['a', undefined], ['b', undefined]]", "report(1, 'deep', f(text))"]),
        (NODE, "test('it', () => { [{ in: 'a', out: 44 }].forEach((row) => { assert.equal(f(row.in), row.out) }) })",
         ["{ in: 'a', out: undefined }", "f(row.in)"]),
        (NODE, "const cases = { a: { text: 'a', out: 44 } }\n"
               "test('it', () => { assert.equal(f(cases.a.text), cases.a.out) })", ["{ text: 'a', out: undefined }"]),
        (NODE, "function same (text, want) { assert.equal(f(text), want) }\ntest('it', () => { same('a', 44) })",
         ["same('a', undefined)", "report(1001, 'loose', f(text))"]),
        (NODE, "test('it', () => { assert.throws(() => f(2), TypeError)\nassert.throws(() => f(3), { code: 44 }) })",
         ["report.throws(1, 'class', () => f(2))", "report.throws(2, '', () => f(3), ['code'])"]),
        (NODE, "test('it', async () => { await assert.rejects(f(2), new Error('text of 44')) })",
         ["await report.rejects(1, 'message', f(2))"]),
        (NODE, "test('it', () => { assert(ok(2) && f(2) === 44); assert(!ok(3)) })",
         ["report(1, 'truth', ok(2)) && report(2, 'strict', f(2))", "report(3, 'truth', ok(3))"]),
        (NODE, "test('it', (t) => { t.plan(1); t.assert.strictEqual(f(2), 44) })",
         ["t.plan(1); t.assert.ok(report(1, 'strict', f(2)))"]),
        (NODE, "describe('is 44', () => { it('it', () => { assert.equal(f(2), 44) })\nit('44', () => f(44)) })",
         ["describe('t0', () => { it('t1', () => { report(1, 'loose', f(2)) }) ; })"]),
        (NODE, "test('it', () => { const input = { a: [1] }\nassert.deepEqual(f(input), input) // 44\n })",
         ["const input = { a: [1] }", "f(input)"]),
        (TAPE, "test('it', function (t) { t.plan(2); t.deepEqual(f(2), [44], 'list'); t.ok(f(3), '44') })",
         ["t.ok(report(1, 'deep', f(2))); t.ok(report(2, 'truth', f(3)))"]),
        (TAPE, "test('it', function (t) { f(2, (error, found) => { t.error(error); t.equal(found, 44); t.end() }) })",
         ["t.ok(report(1, 'truth', error)); t.ok(report(2, 'strict', found)); t.end()"]),
        (TAPE, "function same (t, a, b, c, d) { t.doesNotThrow(function () { f(a) }); t.equal(f(a, b), c, '44' + d) }\n"
               "test('it', function (t) { same(t, 1, 2, 44, 'is 44'); t.end() })",
         ["t.ok(report.calls(function () { f(a) })); t.ok(report(1001, 'strict', f(a, b)))",
          "same(t, 1, 2, undefined, undefined); t.end()"]),
        (NODE, "test('it', () => { assert.throws(() => f(2), /44/)\nassert.match(f(3), /^4{2}$/i) })",
         ["report.throws(1, 'said', () => f(2)) report(2, 'matched', f(3))"]),
        (JEST, "it('it', () => { expect(() => f(2)).toThrow('44'); expect(f(3)).toMatch(/44/) })",
         ["report.throws(1, 'told', () => f(2)); report(2, 'matched', f(3))"]),
        (TAPE, "test('it', function (t) { t['deepEqual'](f(2), 44); var same = t.equal; same(f(3), 44); t.end() })",
         ["t.ok(report(1, 'deep', f(2)));", "t.ok(report(2, 'strict', f(3)))"]),
        (NODE, "const { strictEqual: same } = assert\ntest('it', () => { same(f(2), 44) })",
         ["report(1, 'strict', f(2))"]),
        (JEST, "const { expect: found } = require('chai')\nit('it', () => { found(f(2)).to.equal(44) })",
         ["report(1, 'strict', f(2))"]),
        (TAPE, "test('outer', function (t) { t.plan(2)\nt.test('it', function (st) { st.equal(f(2), 44); st.end() })\n"
               "t.test('44', function (st) { st.end() }) })", ["t.pass();"]),
        (TAP, "test('it', (t) => { t.same(f(2), { a: 44 }); t.strictSame(f(3), [44]); t.end() })",
         ["t.ok(report(1, 'loosely', f(2))); t.ok(report(2, 'deep', f(3)))"]),
        (JEST, "test('it', () => { expect(f(2)).toBe(44); expect(f(3)).toHaveLength(44)\nexpect(f()).not.toBeNull() })",
         ["report(1, 'strict', f(2)); report(2, 'size', f(3)) report(3, 'truth', (f()) === null)"]),
        (JEST, "test('it', async () => { expect.assertions(1); await expect(f(2)).resolves.toEqual({ a: 44 }) })",
         ["undefined; await report.resolves(1, 'alike', f(2))"]),
        (JEST, "it.each([[1, 44], [2, 44]])('f of %i', (n, want) => { expect(f(n)).toBe(want) })",
         ["it.each([[1, undefined], [2, undefined]])('f of %i', (n, want) => { report(1, 'strict', f(n)) })"]),
        (CHAI, "it('it', () => { expect(f(2)).to.deep.equal([44]); expect(f(3)).to.be.true\n"
               "expect(() => f(4)).to.throw(RangeError) })",
         ["report(1, 'listed', f(2)); report(2, 'strict', f(3))", "report.throws(3, 'class', () => f(4))"]),
    ],
)  # fmt: skip
def test_what_is_expected_is_not_in_the_form(head: str, code: str, parts: list[str]) -> None:
    names = {"outer": ["outer::it"], "describe": ["is 44::it"], "it.each": ["f of 1", "f of 2"]}
    chosen = next((found for word, found in names.items() if word in code), ["it"])
    text, why = form_of(head, code, *chosen)
    assert not why
    assert "44" not in text
    for part in parts:
        assert part in text


def test_what_texts_must_match_is_judged_elsewhere() -> None:
    code = "it('it', () => { expect(() => f(2)).toThrow('no'); expect(f(3)).toMatch(/a\\/b/i); expect(f()).toBe(1) })"
    found = lifted(f"{JEST}{code}".encode(), ["it"], ["f"])
    assert found is not None
    assert json.loads(found.judging) == {"it": {"1": {"text": "no"}, "2": {"source": "a\\/b", "flags": "i"}}}


def test_what_runners_read_of_comments_stays_first() -> None:
    source = (
        f"/** @jest-environment jsdom */\n// is 44\n'use strict'\n{JEST}it('it', () => {{ expect(f(2)).toBe(44) }})"
    )
    found = lifted(source.encode(), ["it"], ["f"])
    assert found is not None
    assert found.observing.startswith(b"/** @jest-environment jsdom */")
    assert found.observing.index(b"// @ts-nocheck") < found.observing.index(b"'use strict'")
    assert b"44" not in re.sub(rb"report[0-9a-f]+", b"", found.observing)


def test_files_that_are_nested_too_deeply_are_refused() -> None:
    text, why = form_of(NODE, f"test('it', () => {{ assert.equal(f({' + '.join(['a'] * 1100)}), 3) }})")
    assert not text
    assert why == "file that is nested too deeply"


@pytest.mark.parametrize(
    ("head", "code", "reason"),
    [
        (NODE, "test('it', () => { f(2) })", "test without a check"),
        (NODE, "test('it', () => { assert.equal(f(2), f(3)) })", "expected value that a call computes"),
        (NODE, "test('it', () => { assert.notEqual(f(2), 3) })", "inequality"),
        (NODE, "test('it', () => { assert(f(2) > 3) })", "inequality"),
        (NODE, "test('it', () => { const right = f(2) === 3; assert(right) })", "comparison outside a check"),
        (NODE, "test('it', () => { assert.equal(f(2).includes('a'), true) })", "comparison outside a check"),
        (NODE, "test('it', () => { assert(Object.is(f(2))) })", "comparison outside a check"),
        (NODE, "test('it', () => { assert(Number.isInteger(f(2))) })", "truth of what the language computes"),
        (NODE, "test('it', () => { if (f(1)) assert.equal(f(2), 3) })", "check under a condition"),
        (NODE, "test('it', () => { if (f(1)) return\nassert.equal(f(2), 3) })", "test that may end early"),
        (NODE, "test('it', () => { for (const each of f(1)) assert.equal(each, 3) })",
         "check in a loop or a branch that the code may decide"),
        (NODE, "test('it', () => { f(1).forEach((each) => assert.equal(each, 3)) })",
         "check in a function that the code may call"),
        (NODE, "test('it', () => { try { f(1) } catch (error) { assert.equal(error.message, 'a') } })",
         "check in a loop or a branch that the code may decide"),
        (NODE, "test('it', () => { assert.doesNotMatch(f(1), /no/) })", "assertion of another kind"),
        (TAP, "test('it', (t) => { t.throws(() => f(1), /no/); t.end() })", "error that is compared otherwise"),
        (NODE, "test('it', () => { const want = [1, 2]\nassert.deepEqual(f(want.length), want) })", ""),
        (NODE, "test('it', () => { const want = [1, 2]\nfor (let n = 0; n < want.length; n++) "
               "assert.equal(f(n), want[n]) })", "check of two values of the code"),
        (NODE, "test('it', () => { const want = [1, 2]\nconsole.log(want)\n"
               "assert.deepEqual(f(0), want) })", "output that may tell what is expected"),
        (NODE, "const fs = require('fs')\ntest('it', () => { assert.equal(f(1), fs.readFileSync('a', 'utf8')) })",
         "expected value that a call computes"),
        (NODE, "const { same } = require('./helpers')\nconst want = 3\ntest('it', () => { same(f(1), want)\n"
               "assert.equal(f(2), want) })", "value of the code beside a literal"),
        (NODE, "test('it', () => { const want = {}\nwant.a = 3\nassert.deepEqual(f(1), want) })",
         "check of two values of the code"),
        (NODE, "test('it', () => { assert.equal(f(1) ? 'a' : 'b', 'a') })", "condition within an operand"),
        (NODE, "test('it', () => { const given = {}\nassert.equal(f(given), given) })",
         "check that two objects are one"),
        (NODE, "test('it', async () => { await Promise.all([1, 2].map(async (n) => assert.equal(await f(n), 3))) })",
         "check in a function that the code may call"),
        (NODE, "const right = f(1) === 3\ntest('it', () => { assert(right) })", "comparison outside a check"),
        (NODE, "const right = (n) => n === 3\ntest('it', () => { assert(right(f(1))) })", "comparison outside a check"),
        (NODE, "const sinon = require('sinon')\ntest('it', () => { sinon.assert.called(f)\nassert.equal(f(), 4) })",
         "assertion of another kind"),
        (NODE, "test('it', () => { f(1).should.equal(3)\nassert.equal(f(), 4) })", "assertion of another kind"),
        (NODE, "test('it', ({ assert: same }) => { same.equal(f(1), 3) })", "assertion under another name"),
        (TAPE, "test('it', (t) => { const how = 'equal'; t[how](f(1), 3); t.end() })", "assertion under another name"),
        (NODE, "test('it', () => { assertSame(f(1), 3)\nassert.equal(f(2), 4) })", "helper of another file"),
        (NODE, "function same (a, b) { assert.equal(f(a), b) }\ntest('it', () => { [1].forEach(same) })",
         "helper that is not only called"),
        (NODE, "function make (title, want) { it(title, () => { assert.equal(f(1), want) }) }\nmake('it', 3)",
         "test that a function of the file defines"),
        (JEST, "it('it', () => { expect(f(1)).toMatchSnapshot() })", "assertion of another kind"),
        (JEST, "it('it', () => { expect(f(1)).toEqual({ a: expect.any(Number) }) })",
         "check of two values of the code"),
        (NODE, "test('it', () => { assert.throws(() => f(1), { message: new RegExp('no') }) })",
         "error that is compared otherwise"),
        (NODE, "const no = /no/\ntest('it', () => { assert.throws(() => f(1), { message: no }) })",
         "error that is compared otherwise"),
        (CHAI, "it('it', () => { expect(() => f(1)).to.throw(RangeError, 'no') })", "error that is compared otherwise"),
        (JEST, "for (const [title, want] of [['is 3', 3], ['is 4', 4]]) it(`f ${title}`, () => "
               "{ expect(f(1)).toBe(want) })", "title that tells what is expected"),
    ],
)  # fmt: skip
def test_what_cannot_be_divided_is_refused(head: str, code: str, reason: str) -> None:
    names = ["f is 3", "f is 4"] if "f ${" in code else ["it"]
    _, why = form_of(head, code, *names)
    assert why == reason


def test_what_has_effects_stays() -> None:
    code = (
        "const set = require('./setup')\nconst clock = fake(250)\nconst unused = { a: 44 }\n"
        "test('it', () => { assert.equal(f(1), 44) })"
    )
    text, why = form_of(NODE, code)
    assert not why
    assert "require('./setup')" in text
    assert "const clock = fake(250)" in text
    assert "44" not in text


def test_whole_files_report_what_is_expected_beside_what_is_found() -> None:
    code = (
        "let state\ntest('first', () => { state = f(2)\nassert.notEqual(state, 3) })\n"
        "test('it', () => { assert.deepEqual(f(state), [44])\nassert.throws(() => f(0), { code: 'E' }) })"
    )
    found = lifted(f"{NODE}{code}".encode(), ["first", "it"], ["f"])
    assert found is not None
    assert "it" in found.functions
    text = re.sub(r"report[0-9a-f]{8}", "report", found.whole.decode())
    assert "assert.notEqual(state, 3)" in text
    assert "test('t0', () => { report(1, 'loosely', f(state), undefined, () => ([44]))" in text
    assert "report.throws(2, '', () => f(0), ['code'], () => ({ code: 'E' }))" in text


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("describe('d', () => { beforeEach(() => { f(43)\nassert.ok(f) })\n"
         "it('it', () => { assert.deepEqual(f(), [43]) }) })", "check beside the test that cannot be divided"),
        ("describe('d', () => { const same = assert.equal.bind(assert)\n"
         "it('it', () => { same(f(1), 44)\nassert.equal(f(2), 45) }) })",
         "check beside the test that cannot be divided"),
        ("function same (a) { assert.ok(a) }\nbeforeEach(() => { same(f(1)) })\n"
         "describe('d', () => { it('it', () => { same(f(2)) }) })", "check outside of tests"),
        ("const rows = made([[1, 44]])\ntest('other', () => { assert.notEqual(f(1), rows[0]) })\n"
         "describe('d', () => { it('it', () => { assert.equal(f(1), 3) }) })",
         "declaration with effects that other tests use"),
    ],
)  # fmt: skip
def test_tests_whose_setup_cannot_stay_are_refused(code: str, reason: str) -> None:
    assert form_of(NODE, code, "d::it") == ("", reason)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("for (const [a, want] of [[1, 44]]) test(`f(${a}) is ${want}`, () => { assert.equal(f(a), want) })",
         ["f(1) is 44"]),
        ("[{ a: 1, want: 44 }].forEach(({ a, want }) => { it('f(' + a + ') is ' + want, () => { "
         "assert.equal(f(a), want) }) })", ["f(1) is 44"]),
        ("for (const [a, want] of [[1, 44]]) describe(`f ${want}`, () => { "
         "it('x', () => { assert.equal(f(a), want) }) })",
         ["f 44::x"]),
        ("for (const row of [{ a: 1, want: 44 }]) test(`f ${JSON.stringify(row)}`, () => { "
         "assert.equal(f(row.a), row.want) })", ['f {"a":1,"want":44}']),
        ("it.each([[1], [2]])('f of %i is 44', (n) => { assert.equal(f(n), 44) })", ["f of 1 is 44"]),
        ("it.each([['44', 1]])('f %s', (name, n) => { assert.equal(f(n), 44) })", ["f 44"]),
        ("for (const n of [1, 2]) test(`forty-four for ${n}`, () => { assert.equal(f(n), 44) })", ["forty-four for 1"]),
        ("for (const [name, n] of [['gives 44', 1]]) test(name, () => { assert.equal(f(n), 44) })", ["gives 44"]),
    ],
)  # fmt: skip
def test_titles_that_are_computed_may_not_tell_what_is_expected(code: str, names: list[str]) -> None:
    text, why = form_of(NODE, code, *names)
    assert not text
    assert why in {"title that tells what is expected", "expected value that the test uses otherwise"}


def test_titles_may_show_what_the_code_gets() -> None:
    code = "for (const [a, want] of [['x', 44]]) test(`f of ${a}`, () => { assert.equal(f(a), want) })"
    text, why = form_of(NODE, code, "f of x")
    assert not why
    assert "[['x', undefined]]) test(`f of ${a}`, () => { report(1, 'loose', f(a)) })" in text
    code = "for (const weight of [-1]) test(`refuses a weight of ${weight}`, () => { assert.throws(() => f(weight)) })"
    text, why = form_of(NODE, code, "refuses a weight of -1")
    assert not why
    assert "refuses a weight" in text


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("async function same (a, want) { assert.equal(await f(a), want) }\n"
         "test('it', async () => { await Promise.all([same(1, 44), same(2, 45)]) })", "check that nobody waits for"),
        ("test('it', () => Promise.all([[1, 44], [2, 45]].map(([a, want]) => "
         "f(a).then((r) => assert.equal(r, want)))))",
         "checks in no certain order"),
        ("const same = (a, want, next) => { f(a, (r) => { assert.equal(r, want); next() }) }\n"
         "test('it', (t, done) => { same(1, 44, () => {})\nsame(2, 45, done) })", "checks in no certain order"),
        ("test('it', (t, done) => { for (const n of [1, 2]) f(n, (r) => { assert.equal(r, 4); done() }) })",
         "checks in no certain order"),
        ("test('it', () => { assert.rejects(f(1)) })", "check that nobody waits for"),
        ("test('it', (t) => t.assert.rejects(f(1)))", "check that nobody waits for"),
    ],
)  # fmt: skip
def test_checks_that_end_in_any_order_are_refused(code: str, reason: str) -> None:
    assert form_of(NODE, code) == ("", reason)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("test('it', async (t) => { await t.assert.rejects(f(2), TypeError) })",
         "await t.assert.ok(await report.rejects(1, 'class', f(2)))"),
        ("test('it', async () => { await assert.rejects(f(2)) })", "{ await report.rejects(1, 'thrown', f(2)) }"),
        ("test('it', () => assert.equal(f(2), 44))", "() => void (report(1, 'loose', f(2))))"),
        ("test('it', () => { const o = f(1)\nassert.doesNotThrow(o.go)\nassert.equal(o, 4) })", "report.calls(o.go)"),
        ("test('it', () => { return assert.equal(f(2), 44) })", "return void (report(1, 'loose', f(2)))"),
    ],
)  # fmt: skip
def test_what_stands_for_a_check_runs_as_it_did(code: str, part: str) -> None:
    text, why = form_of(NODE, code)
    assert not why
    assert part in text


@pytest.mark.parametrize(
    ("head", "code", "reason"),
    [
        (NODE, "const isEqual = require('lodash.isequal')\ntest('it', () => { assert(isEqual(f(1), [44])) })",
         "value of the code beside a literal"),
        (NODE, "test('it', () => { assert.equal(Buffer.compare(f(1), Buffer.from('44')), 0) })",
         "value of the code beside a literal"),
        (NODE, "test('it', () => { assert.equal(f(1) - 44, 0) })", "value of the code beside a literal"),
        (NODE, "test('it', () => { assert.equal(f(1).replace('44', ''), '') })", "value of the code beside a literal"),
        (NODE, "test('it', () => { assert({ 44: true }[f(1)]) })", "value of the code beside a literal"),
        (NODE, "test('it', () => { assert(new Set([44]).delete(f(1))) })", "value of the code beside a literal"),
        (NODE, "test('it', () => { assert.equal(new Set([44, f(1)]).size, 1) })", "value of the code beside a literal"),
        (NODE, "test('it', () => { assert.equal(Object.keys({ [f(1)]: 2, 44: 1 }).length, 1) })",
         "value of the code beside a literal"),
        (NODE, "const sinon = require('sinon')\ntest('it', () => { const spy = sinon.spy()\nf(spy)\n"
               "assert(spy.calledWith('44')) })", "value of the code beside a literal"),
        (NODE, "const { eq } = require('./helpers')\ntest('it', () => { eq(f(1), 44)\nassert.equal(f(2), 3) })",
         "value of the code beside a literal"),
        (NODE, "test('it', () => { f(1, (r) => { if (r !== 44) throw new Error('no') })\nassert.equal(f(2), 3) })",
         "error that a test throws itself"),
        (NODE, "test('it', () => { f(1, (r) => { right = r === 44 })\nassert.equal(f(2), 3) })",
         "comparison outside a check"),
        (NODE, "test('it', () => { const r = f(1)\nif (!r) throw new Error('not 44')\nassert.equal(r, 44) })",
         "error that a test throws itself"),
        (NODE, "test('it', () => { console.log('is 44')\nassert.equal(f(1), 44) })",
         "output that may tell what is expected"),
        (JEST, "it('it', () => { expect(f(2)).toBe(3)\nassert.equal(f(1), 44) })", "assertion of another kind"),
        (NODE, "test('it', () => { require('assert').equal(f(1), 44)\nassert.equal(f(2), 3) })",
         "assertion of another kind"),
        ("const tap = require('tap')\nconst f = require('..')\n",
         "tap.test('it', (t) => { tap.equal(f(1), 44)\nt.equal(f(2), 3)\nt.end() })", "assertion of another kind"),
        (NODE, "const right = g(f(1) === 44)\ntest('it', () => { assert.equal(f(2), 3) })", "check outside of tests"),
        (NODE, "function same (a, want = 44) { assert.equal(f(a), want) }\ntest('it', () => { same(1) })",
         "check of two values of the code"),
        (NODE, "test('it', () => { const { want = 44 } = {}\nassert.equal(f(1), want) })",
         "check of two values of the code"),
        (NODE, "test('it', () => { const o = { ['want']: 44, a: 1 }\nassert.equal(f(o.a), o.want) })",
         "expected value that is not found"),
        (NODE, "test('it', () => { const w = [, 44]\nassert.equal(f(w.length), w[1]) })",
         "expected value that is not found"),
        (NODE, "const ctx = { want: 1 }\nObject.assign(ctx, { want: 44 })\n"
               "test('it', () => { assert.equal(f(1), ctx.want) })", "check of two values of the code"),
    ],
)  # fmt: skip
def test_what_is_expected_may_not_hide_outside_of_checks(head: str, code: str, reason: str) -> None:
    text, why = form_of(head, code)
    assert not text
    assert why == reason


@pytest.mark.parametrize(
    ("head", "code", "part"),
    [
        (NODE, "test('it', () => { assert.deepEqual(f([1, 2], (n) => n > 1), [44]) })", "f([1, 2], (n) => n > 1)"),
        (NODE, "test('it', () => { assert.deepEqual(f(1).split('\\n'), ['44']) })", "f(1).split('\\n')"),
        (NODE, "const path = require('path')\ntest('it', () => { assert.equal(f(path.join(__dirname, 'a')), 44) })",
         "f(path.join(__dirname, 'a'))"),
        (NODE, "test('it', () => { for (let n = 0; n < 3; n++) assert.equal(f(n * 2), 44) })", "f(n * 2)"),
        (NODE, "test('it', () => { assert.equal(JSON.stringify(f(1), null, 2), '44') })", "JSON.stringify(f(1), null"),
        (TAPE, "test('it', (t) => { t.comment('is 44')\nt.equal(f(1), 44)\nt.pass('44')\nt.end() })", "t.pass('')"),
    ],
)  # fmt: skip
def test_what_only_looks_like_it_is_divided(head: str, code: str, part: str) -> None:
    text, why = form_of(head, code)
    assert not why
    assert part in text
    assert "44" not in text


def test_texts_that_no_parser_takes_for_code() -> None:
    code = "const code = `\nimport a from 'b'\n`\ntest('it', () => { const g = () => { return/* 44 */f(code) }\n"
    text, why = form_of(NODE, f"{code}assert.equal(g(), 44) }})")
    assert not why
    assert "return f(code)" in text
    found = lifted(f"{NODE}{code}assert.equal(g(), 44) }})".encode(), ["it"], ["f"])
    assert found is not None
    assert b"import { inspect" not in found.observing
    pragma = "/**\n * is 44\n * @jest-environment jsdom is 44\n */\n"
    found = lifted(f"{pragma}{JEST}it('it', () => {{ expect(f(2)).toBe(44) }})".encode(), ["it"], ["f"])
    assert found is not None
    assert b"44" not in re.sub(rb"report[0-9a-f]+", b"", found.observing)


def test_files_that_are_no_text_or_too_large_are_refused() -> None:
    found = lifted(f"{JEST}it('it', () => {{ expect(f('é')).toBe(44) }})".encode("latin-1"), ["it"], ["f"])
    assert found is not None
    assert found.refused == {"it": "file that is not UTF-8"}
    found = lifted(f"{JEST}// {'a' * 1_000_000}\nit('it', () => {{}})".encode(), ["it"], ["f"])
    assert found is not None
    assert found.refused == {"it": "file that is too large"}
