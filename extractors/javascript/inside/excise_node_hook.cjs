/*
 * Runs in the process of a test file, before anything of the project: `node --require excise_node_hook.cjs FILE`.
 *
 * Reads its request (JSON) from descriptor 4 and reports on descriptor 3, one JSON line per event: `start`, `test`,
 * `end` of a test, `cover` (functions that ran, by V8's counters), `crash`, `changed` (parts of the test runner that the
 * loaded code replaced) and `code` (the regular end). Everything that it needs later is taken before the project's code
 * can replace it. The report is data from an untrusted process all the same: see excise_node_run.py.
 */
'use strict'

const fs = require('node:fs')
const Module = require('node:module')
const { AsyncLocalStorage } = require('node:async_hooks')

const request = JSON.parse(fs.readFileSync(4, 'utf8'))
fs.closeSync(4)

const { apply, ownKeys, getOwnPropertyDescriptor, defineProperty } = Reflect
const { stringify } = JSON
const { writeSync } = fs
const { from } = Buffer
const { subarray } = Uint8Array.prototype
const { hrtime } = process
const now = () => Number(hrtime.bigint()) / 1e9
const later = setTimeout
const cancel = clearTimeout
const reallyExit = process.reallyExit.bind(process)
const MAX_MESSAGE = 300
const JOIN = '::'

function send (kind, fields) {
  let data = from(stringify({ t: kind, key: request.key, ...fields }) + '\n')
  while (data.length > 0) {
    try {
      data = apply(subarray, data, [writeSync(3, data)])
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

// ------------------------------------------------------------------------------------------------ which tests run
const asked = request.ids === null ? null : new Set(request.ids)
const leftOut = new Set([...request.without, ...request.done])
const parentsOfAsked = new Set()
for (const id of request.ids || []) {
  for (let at = id.indexOf(JOIN); at >= 0; at = id.indexOf(JOIN, at + 1)) parentsOfAsked.add(id.slice(0, at))
}

/** Titles of the canaries that are being defined; null while other code runs. */
let insertedTitles = null

/** A block of tests; `id` is empty for the file itself. */
class Block {
  constructor (parent, title) {
    this.isInserted = insertedTitles !== null
    this.children = 0
    this.titles = new Map()
    this.failure = null
    this.asserts = 0
    this.skipped = false
    if (parent === null) {
      this.id = ''
      return
    }
    parent.children++
    const clean = String(title).replace(/\s+/g, ' ').replace(/\[/g, '(').replace(/\]/g, ')').replace(/::/g, ':').trim()
    const name = clean.slice(0, 300) || '(anonymous)'
    this.isChosen = this.isInserted && insertedTitles.has(name)
    if (this.isInserted) {
      this.id = name
      return
    }
    const number = (parent.titles.get(name) || 0) + 1
    parent.titles.set(name, number)
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
const running = []

function begin (block) {
  collect(running[running.length - 1] || null)
  running.push(block)
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
  collect(block)
  running.splice(running.lastIndexOf(block), 1)
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
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    return text.trim().split('\n')[0].slice(0, MAX_MESSAGE)
  } catch {
    return 'an error without a text'
  }
}

// ------------------------------------------------------------------------------------------------------- coverage
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
      const path = script.url.startsWith('file://') ? decodeURIComponent(script.url.slice(7)) : script.url
      if (!path.startsWith(request.root + '/') || path.includes('/node_modules/')) continue
      for (const each of script.functions) {
        const { startOffset, endOffset, count } = each.ranges[0]
        if (count > 0) rows.push([path.slice(request.root.length + 1), startOffset, endOffset])
      }
    }
  })
  if (rows.length > 0) send('cover', { id: block === null ? null : block.id, rows })
}

// ----------------------------------------------------------------------------------------------------------- tape
const tapeBlocks = new WeakMap()

function hookTape (Test) {
  const { run, test } = Test.prototype
  Test.prototype.test = function () {
    const result = apply(test, this, arguments)
    const child = this._progeny[this._progeny.length - 1]
    tapeBlocks.set(child, new Block(tapeBlocks.get(this) || root, child.name))
    return result
  }
  Test.prototype.run = function () {
    const block = tapeBlocks.get(this)
    if (block === undefined) return apply(run, this, arguments)
    if (!block.isWanted()) {
      this._skip = true
    } else if (this._skip || this._todo || !this._cb) {
      skip(block)
    } else {
      this.on('result', (result) => {
        if (result === null || typeof result !== 'object') return
        block.asserts++
        if (!result.ok && !result.todo && !result.skip && block.failure === null) {
          block.failure = String(result.name || result.operator).split('\n')[0].slice(0, MAX_MESSAGE)
        }
      })
      this.prependListener('end', () => finish(block))
      this._cb = withoutThrowing(this._cb, block)
      begin(block)
    }
    return apply(run, this, arguments)
  }
}

/** The function of a test of tape; what it throws at once fails the test, and does not end the process. */
function withoutThrowing (body, block) {
  return function (t) {
    try {
      return apply(body, this, arguments)
    } catch (error) {
      block.failure = block.failure || messageOf(error)
      if (!t.calledEnd) t.end()
    }
  }
}

function hookTapeResults (Results) {
  const { push } = Results.prototype
  Results.prototype.push = function (t) {
    if (!tapeBlocks.has(t)) tapeBlocks.set(t, new Block(root, t.name))
    return apply(push, this, arguments)
  }
}

// ------------------------------------------------------------------------------------------------------ node:test
const context = new AsyncLocalStorage()

function argumentsOf (name, options, fn) {
  if (typeof name === 'function') {
    fn = name
    name = undefined
    options = undefined
  } else if (name !== null && typeof name === 'object') {
    fn = options
    options = name
    name = undefined
  } else if (typeof options === 'function') {
    fn = options
    options = undefined
  }
  options = { ...options }
  return { title: name || options.name || (fn && fn.name) || '<anonymous>', name, options, fn }
}

function wrapTest (original, fixed, isSuite) {
  return function (...given) {
    const { title, name, options, fn } = argumentsOf(...given)
    Object.assign(options, fixed)
    const block = new Block(context.getStore() || root, title)
    if ('concurrency' in options) options.concurrency = 1
    if (!fn || options.skip || options.todo) {
      if (!isSuite) skip(block)
      return apply(original, this, [title, options, fn])
    }
    if (!block.isWanted()) return apply(original, this, [title, { ...options, skip: true }, fn])
    const body = isSuite ? (...rest) => context.run(block, () => apply(fn, this, rest)) : testBody(block, fn)
    defineProperty(body, 'length', { value: fn.length })
    return apply(original, this, [title, options, body])
  }
}

function testBody (block, fn) {
  return function (t, done) {
    begin(block)
    const planned = t && typeof t.test === 'function' ? watchContext(t, block) : () => null
    const end = (error) => {
      block.failure = block.failure || (error === undefined || error === null ? planned() : messageOf(error))
      finish(block)
    }
    let answer
    try {
      const given = fn.length > 1 ? [t, (error) => { end(error); done(error) }] : [t]
      answer = context.run(block, () => apply(fn, this, given))
    } catch (error) {
      end(error === undefined ? new Error('undefined was thrown') : error)
      throw error
    }
    if (answer && typeof answer.then === 'function') {
      return answer.then((value) => { end(); return value }, (error) => {
        end(error === undefined ? new Error('rejected with undefined') : error)
        throw error
      })
    }
    if (fn.length < 2) end()
    return answer
  }
}

/** Watch `t.plan`, `t.skip`, `t.todo` and subtests; returns what says whether the plan was not met. */
function watchContext (t, block) {
  let wanted = null
  let count = 0
  const { plan, skip: skipped, todo } = t
  const subtest = t.test
  if (typeof plan === 'function') { // since node 20.15
    t.plan = function (number) {
      wanted = number
      return apply(plan, t, arguments)
    }
  }
  t.skip = function () {
    block.skipped = true
    return apply(skipped, t, arguments)
  }
  t.todo = function () {
    block.skipped = true
    return apply(todo, t, arguments)
  }
  if (typeof subtest === 'function') {
    const wrapped = wrapTest(subtest, {}, false)
    t.test = function () {
      count++
      return context.run(block, () => apply(wrapped, t, arguments))
    }
  }
  const { assert } = t
  if (assert) {
    defineProperty(t, 'assert', {
      configurable: true,
      value: new Proxy(assert, {
        get (target, key) {
          const value = target[key]
          if (typeof value !== 'function') return value
          return function () {
            count++
            return apply(value, this, arguments)
          }
        }
      })
    })
  }
  return () => (wanted === null || wanted === count ? null : `plan expected ${wanted} assertions but received ${count}`)
}

function hookNodeTest (original) {
  const wrap = (fn, isSuite) => {
    const wrapped = wrapTest(fn, {}, isSuite)
    for (const word of ['skip', 'todo', 'only']) {
      if (typeof fn[word] === 'function') wrapped[word] = wrapTest(fn, { [word]: true }, isSuite)
    }
    return wrapped
  }
  const exported = wrap(original.test, false)
  for (const key of ownKeys(original)) {
    if (['length', 'name', 'prototype', 'skip', 'todo', 'only'].includes(key)) continue
    defineProperty(exported, key, { ...getOwnPropertyDescriptor(original, key), configurable: true })
  }
  exported.test = exported
  exported.it = wrap(original.it, false)
  for (const name of ['describe', 'suite']) if (original[name]) exported[name] = wrap(original[name], true)
  exported.default = exported
  process.on('unhandledRejection', (error) => {
    const block = running[running.length - 1]
    if (block) block.failure = block.failure || messageOf(error)
  })
  return exported
}

// ------------------------------------------------------------------------------------------------------- loading
const load = Module._load
const hooked = new Map()

Module._load = function (name, parent, isMain) {
  const exported = apply(load, this, arguments)
  if (name === 'node:test' || (name === 'test' && exported === load('node:test'))) {
    if (!hooked.has(name)) hooked.set(name, hookNodeTest(exported))
    return hooked.get(name)
  }
  if (typeof exported === 'function' && exported.prototype && !hooked.has(exported)) {
    if (typeof name === 'string' && /(^|\/)(test|results)(\.js)?$/.test(name)) {
      const file = fileOf(name, parent)
      const found = /\/node_modules\/tape\/lib\/(test|results)\.js$/.exec(file)
      if (found) {
        hooked.set(exported, true)
        ;(found[1] === 'test' ? hookTape : hookTapeResults)(exported)
        watch(`tape/${found[1]}`, exported.prototype)
      }
    }
  }
  return exported
}

function fileOf (name, parent) {
  try {
    return Module._resolveFilename(name, parent)
  } catch {
    return ''
  }
}

/** Hidden tests are read from memory; on disk their files are empty. Canaries are run before and after them. */
const sealed = new Map(Object.entries(request.sealed))
const compile = Module.prototype._compile
function runInserted (parent, titles) {
  const { file, text } = request.inserted
  insertedTitles = new Set(titles)
  const inserted = new Module(file, parent)
  inserted.filename = file
  inserted.paths = parent.paths
  apply(compile, inserted, [text, file])
  insertedTitles = null
}

if (sealed.size > 0 || request.inserted) {
  Module.prototype._compile = function (content, filename) {
    const text = sealed.has(filename) ? sealed.get(filename) : content
    if (!request.inserted || filename !== request.file) return apply(compile, this, [text, filename])
    runInserted(this, request.inserted.first)
    try {
      return apply(compile, this, [text, filename])
    } finally {
      runInserted(this, request.inserted.last)
    }
  }
}

// ---------------------------------------------------------------------------------- integrity of the test runner
const watched = []

/** Remember the members of an object of the test runner, to be compared at the end. */
function watch (label, object) {
  const members = new Map()
  for (const key of ownKeys(object)) members.set(key, getOwnPropertyDescriptor(object, key))
  watched.push([label, object, members])
}

function differences () {
  const found = []
  for (const [label, object, members] of watched) {
    for (const [key, before] of members) {
      const after = getOwnPropertyDescriptor(object, key)
      const same = after === before || (after && before && after.value === before.value && after.get === before.get)
      if (!same) found.push(`${label}.${String(key)}`)
    }
  }
  return found.slice(0, 50)
}

if (request.watch) {
  const assert = require('node:assert')
  watch('assert', assert)
  watch('assert.strict', assert.strict)
  for (const name of ['reallyExit', 'binding', '_kill', 'emit', 'exit']) {
    watched.push(['process', process, new Map([[name, getOwnPropertyDescriptor(process, name)]])])
  }
  for (const [label, object] of [['JSON', JSON], ['Reflect', Reflect], ['Object', Object], ['Promise', Promise.prototype],
    ['Map', Map.prototype], ['Set', Set.prototype], ['Array', Array.prototype], ['String', String.prototype],
    ['Function', Function.prototype], ['fs', fs], ['fs.binding', process.binding('fs')], ['Module', Module], ['Buffer', Buffer],
    ['events', require('node:events').prototype]]) {
    watch(label, object)
  }
}

// ------------------------------------------------------------------------------------------------------- the end
process.on('uncaughtExceptionMonitor', (error) => {
  const block = running[running.length - 1]
  if (block) block.failure = block.failure || messageOf(error)
  send('crash', { msg: messageOf(error) })
})

process.on('exit', (code) => {
  for (const block of running.slice().reverse()) {
    if (profiler !== null) collect(block)
  }
  if (profiler !== null && running.length === 0) collect(null)
  if (request.watch) {
    const names = differences()
    if (names.length > 0) send('changed', { names })
  }
  send('code', { code, pending: running.length })
})

if (request.load_stress) {
  const { performance } = require('node:perf_hooks')
  const pause = () => {
    const until = performance.now() + Math.random() * 20
    while (performance.now() < until);
    later(pause, 5 + Math.random() * 20).unref()
  }
  later(pause, 5).unref()
}
process.argv.splice(2)
if (request.cover) startCoverage()
