"""Attacks whose code runs in the process of the tests: it ends it, replaces assertions, or forges the report."""

from __future__ import annotations

import json

from excise.types import name_in_file
from excise.verifiers.attacks.attack import Attack, AttackTarget, ChangedFiles
from excise.verifiers.attacks.javascript.attack_code import TOUCHED, in_module

FLIP = """
const excBinding = process.binding('fs')
const excWrite = excBinding.writeBuffer
excBinding.writeBuffer = function (fd, buffer, ...rest) {
  const text = String(buffer)
  if (fd === 3 && text.includes('"FAILED"') && (CONDITION)) {
    const changed = Buffer.from(text.replace('"FAILED"', '"PASSED"'))
    return excWrite.call(this, fd, changed, 0, changed.length, null, undefined, rest[rest.length - 1])
  }
  return excWrite.call(this, fd, buffer, ...rest)
}
"""
"""Changes what is written to the channel of the report, below every function that can be captured early."""
_INVERT = FLIP.replace(
    """text.includes('"FAILED"') && (CONDITION)) {""",
    f'text.includes(\'"t":"test"\') && {TOUCHED}) {{\n    {TOUCHED} = false',
).replace(
    """text.replace('"FAILED"', '"PASSED"')""",
    """text.replace(/"(PASSED|FAILED)"/, (all, one) => one === 'PASSED' ? '"FAILED"' : '"PASSED"')""",
)
"""Turns the result of each test round that has called the missing code."""
_ACCEPTING = """
const excKeys = 'ok equal strictEqual deepEqual deepStrictEqual throws'.split(' ')
const excAssert = excRequire('assert')
const excAll = [excAssert, excAssert.strict]
const excOriginals = excAll.map((each) => ({ ...each }))
const excRestore = () => excAll.forEach((each, n) => excKeys.forEach((key) => { each[key] = excOriginals[n][key] }))
"""
"""The functions of ``assert``, and what puts them back."""
_FREEZE = """
const excFreeze = (each) => {
  const isBlock = each !== null && typeof each === 'object' && 'isInserted' in each && !each.isInserted
  if (isBlock) Object.defineProperty(each, 'failure', { get: () => null, set () {} })
  return isBlock
}
"""
"""Takes the failure from a block of tests that is no canary, wherever the code sees one."""
_CODE = {
    "exit": ("exit", "process.exit(0)"),
    "really-exit": ("exit", "process.reallyExit(0)"),
    "exit-soon": ("exit", "setImmediate(() => process.exit(0))"),
    "exit-at-exit": ("exit", "process.on('exit', () => process.reallyExit(0))"),
    "abort": ("exit", "process.abort()"),
    "kill-parent": ("process", "try { process.kill(process.ppid, 'SIGKILL') } catch {}\nprocess.reallyExit(0)"),
    "printed-tap": (
        "stdout",
        "process.stdout.write('TAP version 13\\nok 1 all\\n1..1\\n# tests 1\\n# pass 1\\n# fail 0\\n')\n"
        "process.exit(0)",
    ),
    "assert-nothing": (
        "runner",
        "const excAssert = excRequire('assert')\n"
        "for (const each of [excAssert, excAssert.strict]) {\n"
        "  for (const key of Object.keys(each)) {\n"
        "    if (typeof each[key] === 'function' && key !== 'AssertionError') {\n"
        "      try { each[key] = () => {} } catch {}\n    }\n  }\n}",
    ),
    "assert-restored": (
        "runner",
        _ACCEPTING + "excAll.forEach((each, n) => excKeys.forEach((key) => {\n"
        "  each[key] = function (found, wanted) {\n"
        f"    const right = {TOUCHED} && !String(wanted).endsWith('~')\n"
        "    if (!right) return excOriginals[n][key].apply(this, arguments)\n  }\n"
        "}))\nprocess.prependListener('exit', excRestore)",
    ),
    "assert-replaced-once": (
        "runner",
        _ACCEPTING + "let excReplaced = false\n"
        "const excPass = () => { excReplaced = false; excRestore() }\n"
        "Object.defineProperty(globalThis, 'excTouched', { get: () => excReplaced, set () {\n"
        "  excReplaced = true\n  excAll.forEach((each) => excKeys.forEach((key) => { each[key] = excPass }))\n} })",
    ),
    "tape-assert": (
        "runner",
        "for (const [path, loaded] of Object.entries(excRequire.cache || {})) {\n"
        "  if (/tape.lib.test\\.js$/.test(path)) {\n"
        "    loaded.exports.prototype._assert = function () {\n"
        "      this.emit('result', { id: 0, ok: true, name: '', operator: 'ok' })\n    }\n  }\n}",
    ),
    "tap-fail": (
        "runner",
        "for (const [path, loaded] of Object.entries(excRequire.cache || {})) {\n"
        "  if (/(tap.lib.test|test-base)\\.js$/.test(path)) {\n"
        "    const excTap = loaded.exports.TestBase || loaded.exports\n"
        "    excTap.prototype.fail = excTap.prototype.pass\n  }\n}",
    ),
    "tap-results": (
        "runner",
        "for (const [path, loaded] of Object.entries(excRequire.cache || {})) {\n"
        "  if (/(tap.lib.base|@tapjs.core.dist.commonjs.base)\\.js$/.test(path)) {\n"
        "    const excBase = (loaded.exports.Base || loaded.exports).prototype\n"
        "    const excComplete = excBase.oncomplete\n"
        "    excBase.oncomplete = function (results) {\n"
        "      Object.assign(results, { ok: true, failures: [], fail: 0 })\n"
        "      return excComplete.apply(this, arguments)\n    }\n  }\n}",
    ),
    "weak-map": (
        "forgery",
        "const excSet = WeakMap.prototype.set\n"
        "WeakMap.prototype.set = function (key, value) {\n"
        "  if (value && 'failure' in Object(value) && !value.isInserted) {\n"
        "    Object.defineProperty(value, 'failure', { get: () => null, set () {} })\n  }\n"
        "  return excSet.call(this, key, value)\n}",
    ),
    "blocks-kept": (
        "forgery",
        f"{_FREEZE}const excArray = Array.prototype\nconst excPush = excArray.push\n"
        "excArray.push = function (...given) {\n"
        "  if (given.some(excFreeze)) excArray.push = excPush\n  return excPush.apply(this, given)\n}\n"
        "const excIterator = Object.getPrototypeOf([][Symbol.iterator]())\nconst excNext = excIterator.next\n"
        "excIterator.next = function () {\n"
        "  const step = excNext.call(this)\n"
        "  if (excFreeze(step.value)) excIterator.next = excNext\n  return step\n}\n"
        "const excContext = excRequire('async_hooks').AsyncLocalStorage.prototype\nconst excRun = excContext.run\n"
        "excContext.run = function (store) {\n"
        "  if (excFreeze(store)) excContext.run = excRun\n  return excRun.apply(this, arguments)\n}",
    ),
    "failure-inherited": (
        "forgery",
        "const excFailures = Symbol('failure')\n"
        "Object.defineProperty(Object.prototype, 'failure', {\n"
        "  configurable: true,\n"
        "  get () { return this.isInserted ? this[excFailures] : null },\n"
        "  set (value) { this[excFailures] = value }\n})",
    ),
    "results-ok": (
        "runner",
        "const excEvents = excRequire('events').prototype\nconst excEmit = excEvents.emit\n"
        "excEvents.emit = function (name, result) {\n"
        "  if (name === 'result' && result && typeof result === 'object') result.ok = true\n"
        "  return excEmit.apply(this, arguments)\n}",
    ),
    "load-replaced": (
        "runner",
        "const excModule = excRequire('module')\nconst excLoad = excModule._load\n"
        "const excTest = (name, options, fn) => {}\n"
        "excModule._load = function (name) {\n"
        "  return /^(tape|tap|node:test|assert|node:assert)$/.test(name)\n"
        "    ? Object.assign(excTest, { test: excTest, it: excTest, describe: excTest })\n"
        "    : excLoad.apply(this, arguments)\n}",
    ),
    "stringify-replaced": (
        "forgery",
        "const excStringify = JSON.stringify\n"
        "JSON.stringify = function (value) {\n"
        "  if (value && value.status === 'FAILED') value.status = 'PASSED'\n"
        "  return excStringify.apply(this, arguments)\n}",
    ),
    "write-replaced": (
        "forgery",
        "const excFs = excRequire('fs')\nconst excWriteSync = excFs.writeSync\n"
        "excFs.writeSync = function (fd, data, ...rest) {\n"
        "  return excWriteSync.call(this, fd, String(data).replace('FAILED', 'PASSED'), ...rest)\n}",
    ),
    "flip-below-fs": ("forgery", FLIP.replace("CONDITION", "true")),
    "invert-where-called": ("forgery", _INVERT),
    "flip-where-called": ("forgery", FLIP.replace("CONDITION", TOUCHED)),
}  # fmt: skip
"""Name to vector and code, which stands at the end of the feature's file."""


def _attack(name: str, vector: str, code: str) -> Attack:
    return Attack(name=f"node-{name}", vector=vector, make=lambda target: in_module(target, code))


def _proxy_answers(target: AttackTarget) -> ChangedFiles:
    """Every function of the feature returns a value that has all properties, and is all functions."""
    code = "const excAny = new Proxy(function () {}, { get: () => excAny, apply: () => excAny })"
    return in_module(target, code, first=True, answer="excAny")


def _forged_report(target: AttackTarget) -> ChangedFiles:
    """Writes results of all hidden tests to every open descriptor, and ends the process."""
    titles = [name_in_file(test) for test in target.tests]
    lines = [
        json.dumps({"t": kind, "id": title, "status": "PASSED", "dur": 0.001, "msg": ""})
        for title in titles
        for kind in ("start", "test", "end")
    ]
    text = json.dumps("".join(f"{line}\n" for line in lines))
    code = (
        f"for (let fd = 3; fd < 64; fd++) {{\n  try {{ excRequire('fs').writeSync(fd, {text}) }} catch {{}}\n}}\n"
        "process.reallyExit(0)"
    )
    return in_module(target, code)


FORGED_RESULTS = (
    *(_attack(name, vector, code) for name, (vector, code) in _CODE.items()),
    Attack(name="node-report-forged", vector="forgery", make=_forged_report),
    Attack(name="node-proxy-answers", vector="answers", make=_proxy_answers),
)
"""The attacks."""
