"""Attacks on lifted tests: they look for what is expected in the process of the tests, or forge what is reported."""

from __future__ import annotations

import json

from excise.verifiers.attacks.attack import Attack, AttackTarget, ChangedFiles
from excise.verifiers.attacks.javascript.attack_code import TOUCHED, in_module
from excise.verifiers.attacks.javascript.forged_results import FLIP

_SOURCE = """
const excInspector = excRequire('inspector')
function excCaller () {
  const frames = new Error().stack.split('\\n').map((line) => /([^\\s(]*FILE):(\\d+):(\\d+)/.exec(line))
  const frame = frames.find((each) => each !== null)
  if (!frame) return ''
  const session = new excInspector.Session()
  session.connect()
  let source = ''
  session.on('Debugger.scriptParsed', ({ params }) => {
    if (!params.url.endsWith('FILE')) return
    session.post('Debugger.getScriptSource', { scriptId: params.scriptId }, (error, found) => {
      if (!error) source = found.scriptSource
    })
  })
  session.post('Debugger.enable')
  session.disconnect()
  return source.split('\\n').slice(frame[2] - 1).join('\\n').slice(frame[3] - 1)
}
function excBeside () {
  const text = excCaller()
  let depth = 0
  let at = text.indexOf('(')
  do {
    depth += '([{'.includes(text[at]) - ')]}'.includes(text[at])
    at++
  } while (depth > 0 && at < text.length)
  const rest = text.slice(at)
  if (!/^\\s*,/.test(rest)) return undefined
  for (let end = 1; end < 600; end++) {
    if (rest[end] !== ')' && rest[end] !== ',') continue
    try {
      return (0, eval)('(' + rest.slice(rest.indexOf(',') + 1, end) + ')')
    } catch {}
  }
}
let excTaken = 0
function excLiteral () {
  const found = excCaller().match(/'[^'\\n]*'|\\b\\d+(?:\\.\\d+)?\\b|\\btrue\\b|\\bfalse\\b|\\bnull\\b/g) || []
  return found.length > 0 ? (0, eval)(found[excTaken++ % found.length]) : undefined
}
"""
"""Reads the text of the test that calls, as the engine has it: the operand beside the call, or any literal."""
_REPORTER = """
const excUtil = excRequire('util')
const excReport = excUtil.inspect.reportValue
if (excReport) {
  const excTell = (number, mode) => excReport(number, mode, GUESS)
  for (const name of Object.keys(excReport)) excTell[name] = async (number, mode) => excReport(number, mode, GUESS)
  Object.defineProperty(excUtil.inspect, 'reportValue', { value: excTell })
}
"""
_PRIMORDIALS = """
for (const [object, name] of [[JSON, 'stringify'], [Object, 'keys'], [Reflect, 'ownKeys'], [Reflect, 'apply'],
  [Array.prototype, 'join'], [Array.prototype, 'sort'], [String.prototype, 'charCodeAt'],
  [Number.prototype, 'toString'],
  [Map.prototype, 'forEach'], [excRequire('util'), 'inspect']]) {
  const original = object[name]
  object[name] = function () {
    const found = new.target ? undefined : original.apply(this, arguments)
    return TOUCHED && typeof found === 'string' ? excLiteral() : found
  }
}
""".replace("TOUCHED", TOUCHED)


def _stolen(target: AttackTarget, answer: str, code: str = "") -> ChangedFiles:
    file = target.test_file.rpartition("/")[2]
    return in_module(target, _SOURCE.replace("FILE", json.dumps(file)[1:-1]) + code, first=True, answer=answer)


def _forged(target: AttackTarget, code: str) -> ChangedFiles:
    return _stolen(target, "undefined", FLIP.replace("CONDITION", TOUCHED) + code)


REPORTED_VALUES: tuple[Attack, ...] = (
    Attack(name="node-operand-beside-the-call", vector="memory", make=lambda target: _stolen(target, "excBeside()")),
    Attack(name="node-literals-of-the-test", vector="memory", make=lambda target: _stolen(target, "excLiteral()")),
    Attack(
        name="node-reporter-replaced",
        vector="forgery",
        make=lambda target: _forged(target, _REPORTER.replace("GUESS", "excLiteral()")),
    ),
    Attack(name="node-primordials-replaced", vector="forgery", make=lambda target: _forged(target, _PRIMORDIALS)),
)
"""The attacks."""
