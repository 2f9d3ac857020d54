/*
 * What the programs for all test runners share: messages to the supervisor, blocks of tests, coverage.
 *
 * Exports a function that makes the core from a request. Nothing of a core can be reached from this module afterwards, so
 * that code of the project that loads it gets functions without a key. Everything that is needed later is taken before
 * the project's code can replace it.
 */
'use strict'

const fs = require('node:fs')
const { SourceMap } = require('node:module')
const { isMainThread } = require('node:worker_threads')

module.exports = (request) => {
  const { apply, ownKeys, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect
  const { setPrototypeOf } = Object
  const { stringify } = JSON
  const { writeSync } = fs
  const { from } = Buffer
  const { subarray } = Uint8Array.prototype
  const { splice, lastIndexOf } = Array.prototype
  const { get, set, has } = WeakMap.prototype
  const { hrtime, pid } = process
  const now = () => Number(hrtime.bigint()) / 1e9
  const later = setTimeout
  const cancel = clearTimeout
  const kill = process.kill.bind(process)
  const reallyExit = isMainThread ? process.reallyExit.bind(process) : () => kill(pid, 'SIGKILL')
  const MAX_MESSAGE = 300
  const JOIN = '::'
  const FILE = '(file)'

  /** An array without methods: accessors that are added to `Array.prototype` do not get what is put in. */
  const bareArray = () => setPrototypeOf([], null)

  /** A `WeakMap` whose values code of the project cannot see: it does not call what that may replace. */
  function blockMap () {
    const map = new WeakMap()
    return {
      get: (key) => apply(get, map, [key]),
      set: (key, value) => apply(set, map, [key, value]),
      has: (key) => apply(has, map, [key])
    }
  }

  function send (kind, fields) {
    const message = { __proto__: null, t: kind, key: request.key, ...fields } // a `toJSON` of all objects is not found
    let data = from(stringify(message) + '\n')
    while (data.length > 0) {
      try {
        data = apply(subarray, data, [writeSync(3, data)])
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error
      }
    }
  }

  // ---------------------------------------------------------------------------------------------- which tests run
  const asked = request.ids === null ? null : new Set(request.ids)
  const leftOut = new Set([...request.without, ...request.done])
  const parentsOfAsked = new Set()
  for (const id of request.ids || []) {
    for (let at = id.indexOf(JOIN); at >= 0; at = id.indexOf(JOIN, at + 1)) parentsOfAsked.add(id.slice(0, at))
  }

  /** Canaries: their titles while they are being defined by code of their own, else null. */
  const inserted = { titles: null }
  /** Canaries in the text of the test file, once before the rest and once after it: which ones run there. */
  const textual = request.textual ? [new Set(request.textual.first), new Set(request.textual.last)] : null
  const places = new Map()

  /**
   * A block of tests; `id` is empty for the file itself. No code of the project may see a block: it tells canaries
   * from other tests, and holds the result. So all members are declared: accessors of `Object.prototype` get none.
   */
  class Block {
    id = ''
    isInserted = inserted.titles !== null
    isChosen = false
    children = 0
    titles = new Map()
    failure = null
    asserts = 0
    skipped = false
    began = undefined
    timer = undefined
    ended = false

    constructor (parent, title) {
      if (parent === null) return
      parent.children++
      const clean = String(title).replace(/\s+/g, ' ').replace(/\[/g, '(').replace(/\]/g, ')').replace(/::/g, ':').trim()
      const name = clean.slice(0, 300) || '(anonymous)'
      const number = (parent.titles.get(name) || 0) + 1
      parent.titles.set(name, number)
      this.isChosen = this.isInserted && inserted.titles.has(name)
      if (textual !== null && textual.some((titles) => titles.has(name))) {
        const place = places.get(name) || 0
        places.set(name, place + 1)
        this.isInserted = true
        this.isChosen = textual[place] !== undefined && textual[place].has(name)
      }
      if (this.isInserted) {
        this.id = name
        return
      }
      const unique = number > 1 ? `${name}[${number}]` : name
      this.id = parent.id ? parent.id + JOIN + unique : unique
    }

    /** Whether the block's function is to be called: it is asked for, or holds a test that is. */
    isWanted () {
      if (leftOut.has(this.id)) return false
      if (this.isInserted) return this.isChosen
      return asked === null || asked.has(this.id) || parentsOfAsked.has(this.id)
    }

    isReported () {
      if (this.isInserted) return this.isChosen && !leftOut.has(this.id)
      return !leftOut.has(this.id) && (asked === null || asked.has(this.id))
    }
  }

  const root = new Block(null, '')
  const running = bareArray()

  /** The test of what a file asserts outside of its tests; it has no block until the file does so. */
  const outside = {
    __proto__: null,
    block: null,
    /** Gives what fails it at its end, or null. */
    atEnd: null,
    /** Whether all of the file ran, and whether nothing is left to be done: else the file did not assert all it has. */
    isLoaded: request.esm,
    isIdle: false,
    note (atEnd) {
      if (outside.block === null) {
        outside.atEnd = atEnd
        outside.block = new Block(root, FILE)
        outside.block.began = now()
        if (running.length === 0) collect(outside.block)
      }
      outside.block.asserts++
    }
  }

  function reportOutside () {
    const { block, atEnd, isLoaded, isIdle } = outside
    if (block === null || running.length > 0 || !isLoaded || !isIdle || !block.isReported()) return
    const failure = block.failure || root.failure || atEnd()
    send('start', { id: block.id })
    send('test', { id: block.id, status: failure === null ? 'PASSED' : 'FAILED', dur: now() - block.began, msg: failure || '' })
    send('end', { id: block.id })
  }

  function begin (block) {
    checkWatched()
    collect(running[running.length - 1] || outside.block)
    running[running.length] = block
    block.began = now()
    if (block.isReported()) send('start', { id: block.id })
    block.timer = later(() => timeOut(block), request.limit_s * 1000)
    block.timer.unref()
  }

  function timeOut (block) {
    if (!block.ended && block.children === 0) {
      send('test', { id: block.id, status: 'FAILED', dur: request.limit_s, msg: `ran for more than ${request.limit_s} s` })
      send('end', { id: block.id })
      reallyExit(3)
    }
  }

  function finish (block) {
    if (block.ended) return
    block.ended = true
    cancel(block.timer)
    checkWatched()
    collect(block)
    apply(splice, running, [apply(lastIndexOf, running, [block]), 1])
    if (!block.isReported()) return
    if (block.children === 0 || block.asserts > 0) {
      const status = block.skipped ? 'SKIPPED' : block.failure === null ? 'PASSED' : 'FAILED'
      send('test', { id: block.id, status, dur: now() - block.began, msg: block.failure || '' })
    }
    send('end', { id: block.id })
  }

  function skip (block) {
    if (!block.isReported()) return
    send('start', { id: block.id })
    send('test', { id: block.id, status: 'SKIPPED', dur: 0, msg: '' })
    send('end', { id: block.id })
  }

  function messageOf (error) {
    try {
      const isError = error !== null && typeof error === 'object' && 'message' in error
      const text = isError ? `${error.name || 'Error'}: ${error.message}` : String(error)
      return text.trim().split('\n')[0].slice(0, MAX_MESSAGE) || 'an error without a text'
    } catch {
      return 'an error without a text'
    }
  }

  // ----------------------------------------------------------------------------------------------------- coverage
  let profiler = null

  function startCoverage () {
    const inspector = require('node:inspector')
    profiler = new inspector.Session()
    profiler.connect()
    profiler.post('Profiler.enable')
    profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  }

  /** Report the functions that ran since the last call: those of a test, or, if no test runs, of loading. */
  function collect (block) {
    if (profiler === null) return
    const rows = []
    profiler.post('Profiler.takePreciseCoverage', (error, taken) => {
      if (error) return
      for (const script of taken.result) {
        const path = pathOf(script.url)
        if (!path.startsWith(request.root + '/') || path.includes('/node_modules/')) continue
        const name = path.slice(request.root.length + 1)
        for (const each of script.functions) {
          const { startOffset, endOffset, count } = each.ranges[0]
          if (count === 0) continue
          const made = transformed(script)
          if (made === null) rows.push([name, startOffset, endOffset])
          else rows.push(...made.placesOf(script.functions, each).map(([file, at]) => [file, at, at]))
        }
      }
    })
    if (rows.length > 0) send('cover', { id: block === null ? null : block.id, rows })
  }

  function pathOf (url) {
    const path = url.startsWith('file://') ? decodeURIComponent(url.slice(7)) : url
    return path.replace(/\?.*$/, '')
  }

  /** Script id to what was made of its text by a compiler; null for text as it is in the file. */
  const scripts = new Map()

  function transformed (script) {
    if (!scripts.has(script.scriptId)) {
      let text = ''
      profiler.post('Debugger.enable')
      profiler.post('Debugger.getScriptSource', { scriptId: script.scriptId }, (error, found) => {
        if (!error) text = found.scriptSource
      })
      profiler.post('Debugger.disable')
      scripts.set(script.scriptId, Transformed.of(text, pathOf(script.url)))
    }
    return scripts.get(script.scriptId)
  }

  /** The text of a script that has a source map in it, and the places of its functions in the original file. */
  class Transformed {
    static of (text, path) {
      const found = text.match(/\n\/\/[#@] sourceMappingURL=data:application\/json[^,\n]*,[A-Za-z0-9+/=]+/g)
      if (found === null) return null
      try {
        const last = found[found.length - 1]
        const map = JSON.parse(Buffer.from(last.slice(last.indexOf(',') + 1), 'base64').toString())
        return new Transformed(text, path, map)
      } catch {
        return null
      }
    }

    constructor (text, path, payload) {
      this.path = path
      this.cache = new Map()
      this.lines = lineStarts(text)
      this.original = lineStarts((payload.sourcesContent || [])[0] || readText(path))
      this.map = new SourceMap(payload)
      // jest and vitest put the head of a function before the first line
      const head = /^(\(\{"Object\.<anonymous>":function\([^)]*\)\{|('use strict';)?\(?(0,)?\s*async \([^)]*\)\s*=>\s*\{\{?)/.exec(text)
      this.head = head === null ? 0 : head[0].length
      this.marks = this.positions(text)
    }

    /** Offsets in the text that the map may know: the beginnings of words and signs. */
    positions (text) {
      const found = []
      const word = /[\w$]+|[^\s\w$]/g
      for (let match = word.exec(text); match !== null; match = word.exec(text)) found.push(match.index)
      return found
    }

    /** The original offset of an offset in the text, or -1. */
    toOriginal (offset) {
      const line = lineOf(this.lines, offset)
      const column = offset - this.lines[line] - (line === 0 ? this.head : 0)
      if (column < 0) return -1
      const entry = this.map.findEntry(line, column)
      if (!entry || entry.originalLine === undefined || entry.generatedLine !== line) return -1
      const start = this.original[entry.originalLine]
      return start === undefined ? -1 : start + entry.originalColumn
    }

    /** A place in the middle of a function's own code, outside functions in it; for scripts as a whole none. */
    placesOf (functions, wanted) {
      const { startOffset, endOffset } = wanted.ranges[0]
      const key = `${startOffset} ${endOffset}`
      if (!this.cache.has(key)) this.cache.set(key, this.search(functions, startOffset, endOffset))
      return this.cache.get(key)
    }

    search (functions, start, end) {
      if (start <= this.head) return []
      const inner = functions.map((each) => each.ranges[0]).filter((range) => (
        range.startOffset >= start && range.endOffset <= end && range.endOffset - range.startOffset < end - start))
      const own = []
      for (let at = firstAtLeast(this.marks, start); at < this.marks.length && this.marks[at] < end; at++) {
        const offset = this.marks[at]
        if (inner.some((range) => range.startOffset <= offset && offset < range.endOffset)) continue
        const original = this.toOriginal(offset)
        if (original >= 0) own.push(original)
      }
      if (own.length === 0) return []
      own.sort((a, b) => a - b)
      return [[this.path.slice(request.root.length + 1), own[own.length >> 1]]]
    }
  }

  function readText (path) {
    try {
      return fs.readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }

  function lineStarts (text) {
    const found = [0]
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) found.push(at + 1)
    return found
  }

  function firstAtLeast (sorted, value) {
    let low = 0
    let high = sorted.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (sorted[middle] < value) low = middle + 1
      else high = middle
    }
    return low
  }

  const lineOf = (starts, offset) => firstAtLeast(starts, offset + 1) - 1

  // -------------------------------------------------------------------------------- integrity of the test runner
  const watched = bareArray()
  const MAX_NAMES = 50
  let numChanged = 0

  /** Report a member that was replaced, at once and only once. */
  function noteChange (entry) {
    if (entry.isNoted || numChanged === MAX_NAMES) return
    entry.isNoted = true
    numChanged++
    send('changed', { names: [`${entry.label}.${String(entry.key)}`] })
  }

  /** Remember the members of an object of the test runner, to be compared before and after each test. */
  function watch (label, object, names = ownKeys(object)) {
    if (!request.watch) return
    for (let n = 0; n < names.length; n++) {
      const key = names[n]
      const before = getOwnPropertyDescriptor(object, key)
      watched[watched.length] = { label, object, key, before, isNoted: false }
    }
  }

  /**
   * Report every assignment to a method of an object, even one that is taken back before the next comparison. It has its
   * effect: some projects replace such methods themselves. A property cannot be defined instead.
   */
  function guard (label, object, names = ownKeys(object)) {
    if (!request.watch) return
    for (let n = 0; n < names.length; n++) guardMethod(label, object, names[n])
  }

  function guardMethod (label, object, key) {
    const before = getOwnPropertyDescriptor(object, key)
    if (!before || !before.configurable || !before.writable || typeof before.value !== 'function') return
    if (key === 'constructor') return
    const entry = { label, key, isNoted: false }
    let { value } = before
    const set = function (given) {
      if (this === object) {
        if (given !== value) noteChange(entry)
        value = given
      } else {
        defineProperty(this, key, { value: given, writable: true, enumerable: true, configurable: true })
      }
    }
    defineProperty(object, key, { get: () => value, set, enumerable: before.enumerable, configurable: false })
  }

  /** Watch the methods of a class, those that it inherits, and whether it gets its own ones instead of these. */
  function watchClass (label, { prototype }) {
    const names = bareArray()
    for (let each = prototype; each !== null && each !== Object.prototype; each = getPrototypeOf(each)) {
      const own = ownKeys(each)
      for (let n = 0; n < own.length; n++) names[names.length] = own[n]
    }
    for (let each = prototype; each !== null && each !== Object.prototype; each = getPrototypeOf(each)) {
      watch(label, each, names)
    }
  }

  /** Watch whether an object gets methods of its own in place of those of its class, but for some. */
  function watchObject (label, object, without) {
    const names = bareArray()
    for (let each = getPrototypeOf(object); each !== null && each !== Object.prototype; each = getPrototypeOf(each)) {
      const own = ownKeys(each)
      for (let n = 0; n < own.length; n++) {
        const found = getOwnPropertyDescriptor(each, own[n])
        if (without.includes(own[n])) continue
        if (found && typeof found.value === 'function') names[names.length] = own[n] // a proxy lists what it has not
      }
    }
    watch(label, object, names)
  }

  /** Report the members that were replaced. The methods of arrays, which may be among these, are not called. */
  function checkWatched () {
    for (let n = 0; n < watched.length; n++) {
      const entry = watched[n]
      if (entry.isNoted) continue
      const { object, key, before } = entry
      const after = getOwnPropertyDescriptor(object, key)
      const same = after === before || (after && before && after.value === before.value && after.get === before.get)
      if (!same) noteChange(entry)
    }
  }

  // ------------------------------------------------------------------------------------------------ lifted tests
  /** Give lifted tests their reporter, as a member of a function of node, which every context can load. */
  function observe () {
    const { inspect } = require('node:util')
    const file = require.resolve('./excise_reported_values.cjs')
    const make = require(file)
    delete require.cache[file]
    const value = make((number, text) => {
      const block = running[running.length - 1]
      if (block && block.isReported()) send('value', { id: block.id, number, text })
    })
    defineProperty(inspect, 'reportValue', { value, configurable: true })
  }

  /** What is reported at the end of the process, or of the thread that runs the tests. */
  function conclude () {
    for (let n = running.length - 1; n >= 0; n--) collect(running[n])
    if (running.length === 0) collect(outside.block)
    checkWatched()
    reportOutside()
  }

  if (request.observe) observe()
  return {
    request, send, Block, blockMap, root, outside, running, collect, begin, finish, skip, messageOf, startCoverage, watch, guard,
    watchClass, watchObject, checkWatched, conclude, inserted, later, MAX_MESSAGE
  }
}
