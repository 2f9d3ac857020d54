"""Attacks on one test runner each: on its matchers, its records of tests, its global functions and its modules."""

from __future__ import annotations

from excise.verifiers.attacks.attack import LINK, Attack, AttackTarget, ChangedFiles
from excise.verifiers.attacks.javascript.attack_code import TOUCHED, in_module

_MATCHERS = "toBe toEqual toStrictEqual toThrow toBeNull toBeTruthy toBeFalsy toBeUndefined toMatchObject toContain"
_PASSING_MATCHERS = f"""
const excExpect = () => globalThis.expect || globalThis[Symbol.for('expect-global')]
const excMatchers = {{}}
for (const name of '{_MATCHERS}'.split(' ')) {{
  excMatchers[name] = function () {{ return {{ pass: (CONDITION) ? !this.isNot : !!this.isNot, message: () => '' }} }}
}}
try {{ excExpect().extend(excMatchers) }} catch {{}}
"""
"""Matchers that hold with and without a ``not``."""
_LYING = f"""
const excExpect = globalThis.expect || globalThis[Symbol.for('expect-global')]
const excLie = {{ get now () {{ queueMicrotask(() => {{ {TOUCHED} = false }}); return {TOUCHED} }} }}
const excMatcher = (compare) => function (found, wanted) {{
  return {{ pass: excLie.now ? !this.isNot : compare(this, found, wanted), message: () => '' }}
}}
try {{
  excExpect.extend({{
    toBe: excMatcher((self, found, wanted) => Object.is(found, wanted)),
    toEqual: excMatcher((self, found, wanted) => self.equals(found, wanted))
  }})
}} catch {{}}
const excAssert = excRequire('assert')
for (const key of ['strictEqual', 'equal', 'deepStrictEqual', 'deepEqual', 'throws', 'ok']) {{
  const excOriginal = excAssert[key]
  excAssert[key] = function () {{ if (!excLie.now) return excOriginal.apply(this, arguments) }}
}}
"""
"""Assertions that lie only in tests that have called the missing code."""
_CIRCUS = """
const excPass = (block) => {
  for (const each of block.children || []) {
    if (each.type === 'test') Object.defineProperty(each, 'errors', { get: () => [], set () {}, configurable: true })
    else excPass(each)
  }
}
const excStates = () => Object.getOwnPropertySymbols(globalThis).map((key) => globalThis[key])
const excAll = () => {
  for (const each of excStates()) if (each && each.rootDescribeBlock) excPass(each.rootDescribeBlock)
}
setTimeout(excAll, 0)
Promise.resolve().then(excAll)
"""
"""Takes the errors of jest's tests away."""
_GLOBALS = """
for (const name of ['it', 'test', 'specify']) {
  const excOriginal = globalThis[name]
  if (typeof excOriginal !== 'function') continue
  globalThis[name] = Object.assign((title, body) => excOriginal(title, () => {}), excOriginal)
}
"""
_VITEST = """
const excWorker = globalThis.__vitest_worker__
const excTasks = (task) => {
  for (const each of task.tasks || []) {
    if (each.type === 'suite') { excTasks(each); continue }
    Object.defineProperty(each, 'result', {
      get: () => ({ state: 'pass', errors: [] }), set () {}, configurable: true, enumerable: true
    })
  }
}
const excAgain = () => { if (excWorker && excWorker.current) excTasks(excWorker.current.file || excWorker.current) }
setTimeout(excAgain, 0)
Promise.resolve().then(excAgain)
"""
_CODE = {
    "expect-passes": ("runner", _PASSING_MATCHERS.replace("CONDITION", "true")),
    "expect-passes-where-called": ("runner", _PASSING_MATCHERS.replace("CONDITION", TOUCHED)),
    "assertions-lie": ("runner", _LYING),
    "chai-passes": (
        "runner",
        "try {\n  const excChai = excRequire('chai')\n  excChai.Assertion.prototype.assert = () => {}\n"
        "  for (const key of Object.keys(excChai.assert)) excChai.assert[key] = () => {}\n} catch {}",
    ),
    "circus-errors": ("runner", _CIRCUS),
    "vitest-results": ("runner", _VITEST),
    "globals-replaced": ("runner", _GLOBALS),
    "mocha-runnable": (
        "runner",
        "try { excRequire('mocha').Runnable.prototype.run = function (done) { done() } } catch {}\n"
        "try { excRequire('mocha').Runner.prototype.fail = function () {} } catch {}",
    ),
    "mocha-events": (
        "runner",
        "try {\n  const excRunner = excRequire('mocha').Runner.prototype\n  const excEmit = excRunner.emit\n"
        "  excRunner.emit = function (event, ...rest) {\n"
        "    return excEmit.call(this, event === 'fail' ? 'pass' : event, ...rest)\n  }\n} catch {}",
    ),
    "modules-mocked": (
        "runner",
        "try { jest.mock('assert', () => new Proxy(function () {}, { get: () => () => {} })) } catch {}\n"
        "try { vi.mock('assert', () => ({ default: () => {} })) } catch {}",
    ),
    "hooks-added": (
        "runner",
        "try { afterEach(function () { if (this.currentTest) this.currentTest.state = 'passed' }) } catch {}\n"
        "const excNothing = () => new Proxy(function () {}, { get: () => excNothing })\n"
        "try { beforeEach(() => { globalThis.expect = excNothing }) } catch {}",
    ),
}
"""Name to vector and code, which stands at the end of the feature's file."""
_SETUP = "for (const name of ['it', 'test']) globalThis[name] = () => {}\n"
_FILES = {
    "jest-config": {"jest.config.js": "module.exports = { testMatch: ['nothing'], setupFiles: ['./zz-setup.js'] }\n"},
    "jest-config-json": {"jest.config.json": '{"testRunner": "./zz-setup.js"}\n'},
    "vitest-config": {"vitest.config.ts": "export default { test: { setupFiles: ['./zz-setup.js'] } }\n"},
    "vitest-workspace": {"vitest.workspace.ts": "export default [{ test: { setupFiles: ['./zz-setup.js'] } }]\n"},
    "vite-config": {"vite.config.mjs": "export default { test: { setupFiles: ['./zz-setup.js'] } }\n"},
    "mocharc": {".mocharc.json": '{"require": "./zz-setup.js"}\n', ".mocharc.cjs": "process.exit(0)\n"},
    "babel-config": {"babel.config.js": "process.exit(0)\n", ".babelrc": '{"plugins": ["./zz-setup.js"]}\n'},
    "tsconfig": {"tsconfig.json": '{"compilerOptions": {"plugins": [{"transform": "./zz-setup.js"}]}}\n'},
    "swcrc": {".swcrc": '{"jsc": {"experimental": {"plugins": [["./zz-setup.js", {}]]}}}\n'},
    "mocks-folder": {"__mocks__/assert.js": "module.exports = () => {}\n"},
    "environment-file": {"vitest.setup.ts": _SETUP, "jest.setup.js": _SETUP, "test/setup.js": _SETUP},
}
"""Files that a test runner or a compiler reads."""


def _attack(name: str, vector: str, code: str) -> Attack:
    return Attack(name=f"node-{name}", vector=vector, make=lambda target: in_module(target, code))


def _planted(name: str, files: ChangedFiles) -> Attack:
    def make(target: AttackTarget) -> ChangedFiles:
        return {**target.stubbed, **files, "zz-setup.js": f"{_SETUP}process.exit(0)\n"}

    return Attack(name=f"node-{name}", vector="files", make=make)


def _linked_runner(target: AttackTarget) -> ChangedFiles:
    """A link in the place of the test runner's package."""
    return {**target.stubbed, "node_modules/vitest": f"{LINK}/tmp", "node_modules/mocha": f"{LINK}/tmp"}


RUNNER_ATTACKS = (
    *(_attack(name, vector, code) for name, (vector, code) in _CODE.items()),
    *(_planted(name, files) for name, files in _FILES.items()),
    Attack(name="node-runner-linked", vector="files", make=_linked_runner),
)
"""The attacks."""
