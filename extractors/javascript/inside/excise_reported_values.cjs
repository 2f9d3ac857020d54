/*
 * Texts of values, for lifted tests: canonical, and as lenient as the checks that they stand for.
 *
 * Exports a function that makes the reporter of a test file from a function that sends (number, text) to the supervisor.
 * Values that a check may take for equal have one text: the order of keys, the class of an object, signs of zeros, holes
 * and members that are undefined are not told. A value without such a text (a function, a promise, an object that holds
 * itself) has none. Everything that is needed later is taken before the project's code can replace it.
 */
'use strict'

const { types } = require('node:util')
const { createHash } = require('node:crypto')

const MAX_NODES = 50000
const MAX_DEPTH = 60
const MAX_TEXT = 4000
/** Classes of errors of the language: the nearest one in the chain of prototypes is what a check for a class tells. */
const ERRORS = ['Error', 'AggregateError', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError',
  'URIError']

class Opaque {}

module.exports = (send) => {
  const { apply, ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect
  const { setPrototypeOf, is } = Object
  const { isArray } = Array
  const { sort, join } = Array.prototype
  const { charCodeAt, slice, indexOf } = String.prototype
  const { toString: functionText } = Function.prototype
  const { toString: numberText } = Number.prototype
  const { toString: bigText } = BigInt.prototype
  const getOf = (object, key) => getOwnPropertyDescriptor(object, key).get
  const { forEach: forEachOfMap } = Map.prototype
  const { forEach: forEachOfSet } = Set.prototype
  const { getTime } = Date.prototype
  const source = getOf(RegExp.prototype, 'source')
  const flags = getOf(RegExp.prototype, 'flags')
  const viewLength = getOf(getPrototypeOf(Uint8Array.prototype), 'length')
  const bufferLength = getOf(ArrayBuffer.prototype, 'byteLength')
  const description = getOf(Symbol.prototype, 'description')
  const valueOfBoxed = [Number.prototype.valueOf, String.prototype.valueOf, Boolean.prototype.valueOf,
    BigInt.prototype.valueOf, Symbol.prototype.valueOf]
  const { Uint8Array: Bytes, Number: toNumber, String: toText, Boolean: toTruth, isNaN: isNaNOf } = globalThis
  const { isDate, isRegExp, isMap, isSet, isTypedArray, isNativeError, isAnyArrayBuffer, isBoxedPrimitive, isPromise,
    isWeakMap, isWeakSet, isGeneratorObject, isNumberObject, isStringObject, isBooleanObject, isBigIntObject } = types
  const hash = (text) => createHash('sha256').update(text).digest('hex')
  const { hasOwnProperty } = Object.prototype
  const known = { __proto__: null }
  for (let n = 0; n < ERRORS.length; n++) known[ERRORS[n]] = true

  const list = () => setPrototypeOf([], null)
  const joined = (texts) => apply(join, texts, [','])
  const sorted = (texts) => joined(apply(sort, texts, []))

  /** A text in quotes, in ASCII. */
  function quoted (text) {
    let made = '"'
    let from = 0
    for (let n = 0; n < text.length; n++) {
      const code = apply(charCodeAt, text, [n])
      if (code >= 32 && code < 127 && code !== 34 && code !== 92) continue
      made += apply(slice, text, [from, n]) + '\\' + apply(numberText, code, [16]) + ';'
      from = n + 1
    }
    return made + apply(slice, text, [from]) + '"'
  }

  function primitive (value, isLoose) {
    if (value === null) return isLoose ? 'undefined' : 'null'
    const kind = typeof value
    if (kind === 'undefined') return 'undefined'
    if (kind === 'symbol') return `symbol ${apply(description, value, [])}`
    if (!isLoose) {
      if (kind === 'number') return is(value, -0) ? '0' : apply(numberText, value, [])
      if (kind === 'bigint') return `${apply(bigText, value, [])}n`
      return kind === 'string' ? quoted(value) : value ? 'true' : 'false'
    }
    const number = toNumber(value) // '' == 0, '5' == 5, true == 1
    if (!isNaNOf(number)) return number === 0 ? '0' : apply(numberText, number, [])
    return kind === 'string' ? quoted(value) : 'NaN'
  }

  /** The text of one value. Throws `Opaque` for one that has none. */
  function textOf (value, isLoose, state, depth) {
    const kind = typeof value
    if (kind === 'function') throw new Opaque()
    if (value === null || kind !== 'object') return primitive(value, isLoose)
    if (++state.nodes > MAX_NODES || depth > MAX_DEPTH) throw new Opaque()
    for (let n = 0; n < depth; n++) if (state.around[n] === value) throw new Opaque()
    state.around[depth] = value
    const text = textOfObject(value, isLoose, state, depth)
    state.around[depth] = undefined
    return text
  }

  function textOfObject (value, isLoose, state, depth) {
    const inner = (each) => textOf(each, isLoose, state, depth + 1)
    if (isBoxedPrimitive(value)) return primitive(unboxed(value), isLoose)
    if (isDate(value)) return `date ${apply(numberText, apply(getTime, value, []), [])}`
    if (isRegExp(value)) return `/${apply(source, value, [])}/${apply(flags, value, [])}`
    if (isPromise(value) || isWeakMap(value) || isWeakSet(value) || isGeneratorObject(value)) throw new Opaque()
    const texts = list()
    if (isArray(value) || isTypedArray(value)) {
      const length = isArray(value) ? value.length : apply(viewLength, value, [])
      for (let n = 0; n < length; n++) texts[n] = inner(value[n])
      return `[${joined(texts)}]`
    }
    if (isAnyArrayBuffer(value)) {
      const bytes = new Bytes(value)
      for (let n = 0; n < apply(bufferLength, value, []); n++) texts[n] = apply(numberText, bytes[n], [])
      return `bytes[${joined(texts)}]`
    }
    if (isMap(value)) {
      apply(forEachOfMap, value, [(each, key) => { texts[texts.length] = `${inner(key)}:${inner(each)}` }])
      return `map{${sorted(texts)}}`
    }
    if (isSet(value)) {
      apply(forEachOfSet, value, [(each) => { texts[texts.length] = inner(each) }])
      return `set{${sorted(texts)}}`
    }
    if (isNativeError(value)) texts[0] = `message:${inner(toText(value.message))}`
    const keys = isNativeError(value) && state.isBrief ? list() : state.isListed ? listed(value) : ownKeys(value)
    for (let n = 0; n < keys.length; n++) {
      const key = keys[n]
      if (typeof key === 'symbol') continue
      const found = state.isListed ? true : getOwnPropertyDescriptor(value, key)
      if (found === undefined || found.enumerable === false) continue
      const each = value[key]
      if (each !== undefined && !(isLoose && each === null)) texts[texts.length] = `${quoted(key)}:${inner(each)}`
    }
    return `${isNativeError(value) ? 'error' : ''}{${sorted(texts)}}`
  }

  /** The keys that a loop finds, inherited ones too. */
  function listed (value) {
    const keys = list()
    for (const key in value) keys[keys.length] = key
    return keys
  }

  function unboxed (value) {
    const at = isNumberObject(value) ? 0 : isStringObject(value) ? 1 : isBooleanObject(value) ? 2 : isBigIntObject(value) ? 3 : 4
    return apply(valueOfBoxed[at], value, [])
  }

  const isObject = (value) => value !== null && (typeof value === 'object' || typeof value === 'function')

  /** A value that `==` or `===` compares with one that is written out: of an object, no more is told than the check tells. */
  function compared (value, isLoose) {
    if (!isObject(value)) return primitive(value, isLoose)
    if (isLoose) {
      const plain = value + ''
      return primitive(plain, true)
    }
    return textOf(value, false, { nodes: 0, around: list() }, 0)
  }

  /** The nearest class of errors of the language, of whatever context; empty for what is no error. */
  function classOf (error) {
    for (let each = isObject(error) ? error : null; each !== null; each = getPrototypeOf(each)) {
      const found = apply(hasOwnProperty, each, ['constructor']) ? each.constructor : undefined
      if (typeof found !== 'function' || found.prototype !== each) continue
      const name = found.name
      const isOfLanguage = apply(indexOf, apply(functionText, found, []), ['[native code]']) >= 0
      if (isOfLanguage && typeof name === 'string' && known[name]) return name
    }
    return ''
  }

  const MODES = {
    __proto__: null,
    strict: (value) => compared(value, false),
    loose: (value) => compared(value, true),
    deep: (value) => textOf(value, false, { nodes: 0, around: list() }, 0),
    // as jest compares: of errors only the message; as chai does: inherited members, too
    alike: (value) => textOf(value, false, { nodes: 0, around: list(), isBrief: true }, 0),
    listed: (value) => textOf(value, false, { nodes: 0, around: list(), isBrief: true, isListed: true }, 0),
    loosely: (value) => textOf(value, true, { nodes: 0, around: list() }, 0),
    truth: (value) => toTruth(value) ? 'true' : 'false',
    size: (value) => compared(isMap(value) || isSet(value) ? value.size : value.length, false),
    thrown: () => 'threw',
    error: (error) => classOf(error) ? 'threw' : 'threw no error',
    class: (error) => `threw ${classOf(error)}`,
    matched: (value) => `~${toText(value)}`, // what a pattern must match is told as it is
    said: (error) => `~${toText(error)}`,
    told: (error) => `~${isObject(error) ? toText(error.message) : toText(error)}`,
    message: (error) => `threw ${isObject(error) ? textOf(error.message, false, { nodes: 0, around: list() }, 0) : ''}`
  }

  /** `expected` is there in whole files alone: a check whose two values have two texts has none. */
  function tell (number, mode, value, keys, expected) {
    let text = null
    try {
      text = keys === undefined ? MODES[mode](value) : membersOf(value, keys)
      if (expected !== undefined && text !== textOfExpected(mode, expected(), keys)) text = null
      if (text !== null && text.length > MAX_TEXT) text = text[0] === '~' ? null : hash(text)
    } catch (error) {
      if (!(error instanceof Opaque)) throw error
    }
    send(number, text)
    return true
  }

  function textOfExpected (mode, value, keys) {
    if (keys !== undefined) return membersOf(value, keys)
    return mode === 'size' ? compared(value, false) : MODES[mode](value)
  }

  /** What an error has in the members that a check compares. */
  function membersOf (error, keys) {
    const texts = list()
    for (let n = 0; n < keys.length; n++) {
      const member = isObject(error) ? error[keys[n]] : undefined
      texts[n] = textOf(member, false, { nodes: 0, around: list() }, 0)
    }
    return `threw {${joined(texts)}}`
  }

  const report = (number, mode, value, keys, expected) => tell(number, mode, value, keys, expected)

  report.throws = (number, mode, body, keys, expected) => {
    try {
      body()
    } catch (error) {
      return tell(number, mode, error, keys, expected)
    }
    send(number, 'nothing thrown')
    return true
  }

  report.rejects = async (number, mode, given, keys, expected) => {
    try {
      await (typeof given === 'function' ? given() : given)
    } catch (error) {
      return tell(number, mode, error, keys, expected)
    }
    send(number, 'nothing thrown')
    return true
  }

  report.calls = (body) => {
    body()
    return true
  }

  report.done = async (given) => {
    await (typeof given === 'function' ? given() : given)
    return true
  }

  report.resolves = async (number, mode, given, keys, expected) =>
    tell(number, mode, await (typeof given === 'function' ? given() : given), keys, expected)

  return report
}
