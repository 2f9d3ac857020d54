"""What hidden tests in JavaScript need from removed code besides names and signatures."""

from __future__ import annotations

import pytest

from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.test_code import code_of_test
from excise.extractors.javascript.needs import find_needs

ACCOUNT = """\
class Account {
  constructor (owner) { this.owner = owner; this.total = 0; this.size = 1 }
  pay (amount, opts) {
    if (typeof amount === 'string') amount = Number(amount)
    if (!(amount > 0)) throw new RangeError(`cannot pay ${amount}: must be positive`)
    const { currency } = opts || {}
    if (currency && currency !== 'EUR') throw new TypeError('unknown currency')
    this.total += amount
    return { paid: amount, note: 'thank you', 'left over': 0 }
  }
  bank () { return 'Bank of Ghent' }
}
module.exports = Account
"""
TEST = """\
const test = require('tape')
const Account = require('../lib/account')
const foreign = { currency: 'XXX' }
const unused = { owner: 'unknown currency' }
function fresh () { return new Account('ann') }
test('pays', function (t) {
  const found = fresh()
  t.deepEqual(found.pay(3), { paid: 3, note: 'thank you' })
  t.equal(found.total + found.size, 4, 'string')
})
test('refuses', function (t) {
  t.throws(() => fresh().pay(-1), /pay -1: must be positive/)
  t.throws(() => fresh().pay(1, foreign), TypeError)
})
test('knows its bank', (t) => t.equal(fresh().bank(), 'Bank of Ghent'))
"""
IDS = [f"test/account.js::{title}" for title in ("pays", "refuses", "knows its bank")]


def found(*removed: str) -> dict[str, tuple[str, ...]]:
    codebase = JavaScriptCodebase.from_texts({"lib/account.js": ACCOUNT, "test/account.js": TEST})
    needs = find_needs(codebase, [f"lib/account.js::Account{name}" for name in removed], IDS)
    own = {f"{each.label}{f' of {each.exception}' if each.exception else ''}": each for each in needs}
    return {name: tuple(test.rpartition("::")[2] for test in each.tests) for name, each in own.items()}


def test_texts_errors_and_properties() -> None:
    assert found(".pay") == {
        "exception TypeError": ("refuses",),
        "key currency": ("refuses",),
        "key note": ("pays",),
        "key paid": ("pays",),
        "message : must be positive of RangeError": ("refuses",),
        "text thank you": ("pays",),
    }


def test_each_detail_belongs_to_the_innermost_removed_code() -> None:
    assert found("", ".constructor", ".pay", ".bank").keys() - found(".pay").keys() == {
        "attribute total",
        "attribute size",
        "text Bank of Ghent",
    }


def test_a_function_that_is_no_more_than_a_text_is_an_answer() -> None:
    codebase = JavaScriptCodebase.from_texts({"lib/account.js": ACCOUNT, "test/account.js": TEST})
    (need,) = find_needs(codebase, ["lib/account.js::Account.bank"], IDS)
    assert (need.word, need.is_answer) == ("Bank of Ghent", True)
    arrow = "exports.bank = (branch) => 'Bank of Ghent'\n"
    codebase = JavaScriptCodebase.from_texts({"lib/account.js": arrow, "test/account.js": TEST})
    (need,) = find_needs(codebase, ["lib/account.js::bank"], IDS)
    assert (need.word, need.is_answer) == ("Bank of Ghent", True)


def parts(source: str, title: str) -> list[str]:
    spans = code_of_test(source.encode(), f"test/a.js::{title}")
    return [source.encode()[start:end].decode().split("\n")[0] for start, end in spans]


def test_short_texts_outside_ascii_are_details_with_what_is_around_them() -> None:
    tree = "exports.line = (node) => (node.nodes ? '\u252c' : '-') + ` \u251c\u2500 ${node.label} ms`\n"
    test = (
        "const { line } = require('../lib/tree')\ntest('line', (t) => t.match(line({}), /^- \u251c\u2500 \\w+ ms$/))\n"
    )
    codebase = JavaScriptCodebase.from_texts({"lib/tree.js": tree, "test/tree.js": test})
    needs = find_needs(codebase, ["lib/tree.js::line"], ["test/tree.js::line"])
    assert [(each.word, each.template) for each in needs] == [
        (" \u251c\u2500 ", "\u2026 \u251c\u2500 ${node.label} ms")
    ]


def test_the_code_of_a_test_has_what_it_uses_and_no_other_test() -> None:
    assert parts(TEST, "refuses") == [
        "const test = require('tape')",
        "const Account = require('../lib/account')",
        "const foreign = { currency: 'XXX' }",
        "function fresh () { return new Account('ann') }",
        "test('refuses', function (t) {",
    ]
    assert parts(TEST, "no such test") == ["const test = require('tape')"]


def test_hooks_and_declarations_of_the_blocks_around_belong_to_a_test() -> None:
    source = """\
describe('outer', () => {
  const used = { a: 1 }, other = 2
  const unused = 3
  beforeEach(() => { used.a = 2 })
  describe('inner', () => {
    it('works', () => { expect(used.a).toBe(2) })
    it('fails', () => {})
  })
  describe('third', () => { beforeAll(() => {}); it('x', () => {}) })
})
"""
    assert parts(source, "outer::inner::works") == [
        "const used = { a: 1 }, other = 2",
        "beforeEach(() => { used.a = 2 })",
        "it('works', () => { expect(used.a).toBe(2) })",
    ]


def test_errors_that_are_given_to_functions_are_not_thrown_and_own_properties_are_no_keys() -> None:
    source = (
        "exports.close = function (cb) {\n  if (this.fd) cb(new TypeError('closed by hand'))\n"
        "  this.emit('error', new Error('stream is closed'))\n  this.used = opts.mode + this.mode\n}\n"
    )
    test = (
        "const { close } = require('./a')\ntest('closes', (t) => {\n  close({ fd: 1, mode: 2 })\n"
        "  t.match(x, /closed by hand/)\n  t.equal(y, 'stream is closed')\n})\n"
    )
    codebase = JavaScriptCodebase.from_texts({"a.js": source, "a.test.js": test})
    needs = find_needs(codebase, ["a.js::close"], ["a.test.js::closes"])
    assert [(each.kind, each.word, each.exception) for each in needs] == [
        ("message", "closed by hand", "cb of TypeError"),
        ("message", "stream is closed", "emit of Error"),
        ("key", "mode", ""),
    ]


def test_names_of_the_language_that_code_assigns_are_its_properties() -> None:
    source = (
        "exports.make = () => {\n  const f = () => /a/.flags\n  f.source = 'a'\n  f.prototype = {}\n  return f\n}\n"
    )
    test = "const { make } = require('./a')\ntest('made', (t) => t.equal(make().source + x.flags + x.prototype, 1))\n"
    codebase = JavaScriptCodebase.from_texts({"a.js": source, "a.test.js": test})
    needs = find_needs(codebase, ["a.js::make"], ["a.test.js::made"])
    assert [(each.kind, each.word) for each in needs] == [("attribute", "source")]


@pytest.mark.parametrize(
    ("written", "pattern", "template"),
    [
        ("'bad range: ' + util.inspect(...args)", r"/bad range: \[ 1, 2 \]/", "bad range: ${util.inspect(...args)}"),
        ("'bad range: ' + a + ' of ' + b.map(x => `{${x}}`)", "/bad range: 1/", "bad range: ${a} of …"),
        ("1 + a + ('bad ' + 'range: ')", "/bad range:/", "bad range: "),
        ("'bad range: ' + a - b", "/bad range: 1/", "bad range: ${a}"),
        ("'bad range:' + a" + " + a.longer" * 20, "/bad range:/", ""),
        ("'-' + a + f('bad range:')", "/- bad range:/", ""),
        ("a + 1 + 'bad range: ' + b", "/4bad range: 1/", "…bad range: ${b}"),
        ("a + 'bad range: ' + b + 1", "/4bad range: 1/", "${a}bad range: ${b}${1}"),
    ],
)
def test_a_sum_of_texts_is_a_template(written: str, pattern: str, template: str) -> None:
    source = f"exports.make = (a, b) => {{\n  note({written})\n}}\n"
    test = f"const {{ make }} = require('./a')\ntest('made', (t) => t.match(make(), {pattern}))\n"
    codebase = JavaScriptCodebase.from_texts({"a.js": source, "a.test.js": test})
    (need,) = find_needs(codebase, ["a.js::make"], ["a.test.js::made"])
    assert (need.word.strip(), need.template) == ("bad range:", template)


@pytest.mark.parametrize(
    ("code", "exception"),
    [
        ("throw new RangeError('bad range')", "RangeError"),
        ("return new RangeError('bad range')", "return of RangeError"),
        ("return a ? null : new RangeError('bad range')", "return of RangeError"),
        ("const e = new RangeError('bad range'); e.code = 1; throw e", "RangeError"),
        ("let e; e = new RangeError('bad range'); return e", "return of RangeError"),
        ("const e = new RangeError('bad range'); throw (e)", "RangeError"),
        ("throw Object.assign(new RangeError('bad range'), { code: 1 })", "RangeError"),
        ("this.error = new RangeError('bad range')", "new of RangeError"),
        ("a(b || new RangeError('bad range'))", "a of RangeError"),
        ("if (a) return new RangeError('bad range'); throw new RangeError('bad range')", "RangeError"),
    ],
)
def test_what_is_done_with_an_error_is_known(code: str, exception: str) -> None:
    source = f"exports.make = (a, b) => {{\n  {code}\n}}\n"
    test = "const { make } = require('./a')\ntest('made', (t) => t.throws(make, RangeError, 'bad range'))\n"
    codebase = JavaScriptCodebase.from_texts({"a.js": source, "a.test.js": test})
    needs = find_needs(codebase, ["a.js::make"], ["a.test.js::made"])
    assert [(each.kind, each.exception or each.word) for each in needs] == [
        ("message", exception),
        ("exception", exception),
    ]
