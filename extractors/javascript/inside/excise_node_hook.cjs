/*
 * Runs in the process of a test file, before anything of the project: `node --require excise_node_hook.cjs FILE`.
 *
 * Reads its request (JSON) from descriptor 4 and reports on descriptor 3, one JSON line per event: `start`, `test`,
 * `end` of a test, `cover` (functions that ran, by V8's counters), `crash`, `changed` (parts of the test runner that the
 * loaded code replaced, if only for a while) and `code` (the regular end). Everything that it needs later is taken before the project's code
 * can replace it. The report is data from an untrusted process all the same: see excise_node_run.py.
 *
 * tape, tap and node:test run the file themselves; mocha, jest and vitest are started here, with the file as their only one.
 */
'use strict'

const fs = require('node:fs')
const Module = require('node:module')
const { isMainThread, setEnvironmentData } = require('node:worker_threads')

/** How code names a file that it loads, not a package or a module of node. */
const IS_FILE = /^\.{0,2}\//

if (isMainThread && process.execArgv.includes(__filename)) main()

/** Processes that tests fork do not load this. */
function forget () {
  const at = process.execArgv.indexOf(__filename)
  process.execArgv.splice(at - 1, 2)
}

/** Whether a file that names tap can load it: it may only speak of it. */
function hasTap (file) {
  try {
    Module.createRequire(file).resolve('tap')
    return true
  } catch {
    return false
  }
}

function main () {
  const request = JSON.parse(fs.readFileSync(4, 'utf8'))
  fs.closeSync(4)
  request.tap = request.tap && hasTap(request.file)
  if (request.tap) process.env.TAP_TIMEOUT = '0' // tap's own limit is that of the author's machine
  forget()
  const parts = ['hook_core', 'runner_tape', 'runner_tap', 'runner_node_test', `runner_${request.runner}`]
  const loaded = new Map(parts.map((name) => [name, take(`./excise_${name}.cjs`)]))
  const core = loaded.get('hook_core')(request)
  const { send, running, inserted, messageOf } = core
  const { apply } = Reflect

  // ----------------------------------------------------------------------------------------------------- loading
  const load = Module._load
  const hookTape = loaded.get('runner_tape')(core)
  const hookTap = loaded.get('runner_tap')(core)
  const hookNodeTest = loaded.get('runner_node_test')(core)
  const hooked = new Map()
  const follow = {}
  const token = `${request.key}:`

  Module._load = function (name, parent, isMain) {
    if (name === `${token}excise:first`) return runInserted(null, request.inserted.first)
    if (name === `${token}excise:last`) return runInserted(null, request.inserted.last)
    const exported = apply(load, this, arguments)
    if (isMain) core.outside.isLoaded = true
    else if (request.tap && parent && parent.filename === request.file && running.length === 0) core.collect(core.outside.block)
    if (follow.idle && String(name).endsWith('/excise_idle.cjs')) { // all that the options of node name is loaded
      setImmediate(follow.idle)
      follow.idle = null
    }
    if (name === 'node:test' || (name === 'test' && exported === load('node:test'))) {
      if (!hooked.has(name)) hooked.set(name, hookNodeTest(exported))
      return hooked.get(name)
    }
    if (typeof exported === 'function' && exported.prototype && !hooked.has(exported)) {
      if (typeof name === 'string' && /(^|\/)(test|results)(\.js)?$/.test(name)) {
        const found = /\/node_modules\/tape\/lib\/(test|results)\.js$/.exec(fileOf(name, parent))
        if (found) {
          hooked.set(exported, true)
          hookTape[found[1]](exported)
          core.watchClass(`tape/${found[1]}`, exported)
        }
      }
    }
    hookTests(exported, name, parent)
    if (follow.loaded) follow.loaded(exported)
    if (IS_FILE.test(name)) core.checkWatched()
    return exported
  }

  /** Follow tap's class of tests, before the first object of it is made. */
  function hookTests (exported, name, parent) {
    const Parser = name === 'tap-parser' && exported && (exported.Parser || exported)
    if (typeof Parser === 'function' && !hooked.has(Parser)) {
      hooked.set(Parser, true)
      core.watchClass('tap/parser', Parser)
    }
    const last = /(^|\/)test(-base)?(\.js)?$/.exec(name)
    const Test = last && (last[2] && exported ? exported.TestBase : exported)
    if (typeof Test !== 'function' || !Test.prototype || hooked.has(Test)) return
    const file = fileOf(name, parent)
    const own = /\/node_modules\/(libtap\/lib|tap\/lib|@tapjs\/core\/dist\/commonjs)\/test(-base)?\.js$/
    if (!own.test(file)) return
    hooked.set(Test, true)
    hookTap(Test)
    core.watchClass('tap/test', Test)
  }

  function fileOf (name, parent) {
    try {
      return Module._resolveFilename(name, parent)
    } catch {
      return ''
    }
  }

  /** Hidden tests are read from memory, by the one who loads them; on disk their files are empty. */
  const sealed = new Map(Object.entries(request.sealed))
  const { readFileSync } = fs

  /** jest reads a test file several times before it compiles it; all others once. */
  function isReader (path) {
    if (request.runner !== 'jest') return sealed.has(path)
    return sealed.has(path) && /[\\/](jest-runner|@jest[\\/]transform)[\\/]/.test(new Error().stack)
  }

  function readSealed (path, options) {
    const text = sealed.get(path)
    if (request.runner !== 'jest' || /[\\/]@jest[\\/]transform[\\/]/.test(new Error().stack)) sealed.delete(path)
    if (sealed.size === 0) fs.readFileSync = readFileSync
    const encoding = typeof options === 'string' ? options : options && options.encoding
    return encoding ? text : Buffer.from(text)
  }

  if (sealed.size > 0) {
    fs.readFileSync = function (path, options) {
      return isReader(path) ? readSealed(path, options) : apply(readFileSync, this, arguments)
    }
  }

  /** Canaries are run before and after the tests of the file. */
  const compile = Module.prototype._compile

  function runInserted (parent, titles) {
    const { file, text } = request.inserted
    inserted.titles = new Set(titles)
    const module = new Module(file, parent)
    module.filename = file
    module.paths = Module._nodeModulePaths(file)
    apply(compile, module, [text, file])
    inserted.titles = null
  }

  if (request.inserted && !request.esm && request.runner === 'node') {
    Module.prototype._compile = function (content, filename) {
      if (filename !== request.file) return apply(compile, this, arguments)
      runInserted(this, request.inserted.first)
      try {
        return apply(compile, this, arguments)
      } finally {
        runInserted(this, request.inserted.last)
      }
    }
  }

  if (request.esm && request.runner !== 'vitest') {
    const exported = Object.keys(load('node:test'))
    Module.register('./excise_esm_loader.mjs', {
      parentURL: `file://${__filename}`,
      data: {
        sealed: request.sealed,
        entry: request.inserted && request.runner === 'node' ? request.file : null,
        token,
        names: exported.filter((name) => /^[A-Za-z]\w*$/.test(name) && name !== 'default')
      }
    })
  }

  if (request.tap) {
    const tap = Module.createRequire(request.file)('tap') // modules get the root that this makes; it changes events
    // tap itself gives it the first three, and test files the last one
    core.watchObject('tap/root', tap, ['pipe', 'resume', 'write', 'cleanSnapshot'])
    process.on('beforeExit', () => { core.outside.isIdle = true })
  }

  // ------------------------------------------------------------------------------------- integrity of the process
  if (request.watch) {
    const assert = require('node:assert')
    core.guard('assert', assert)
    core.guard('assert.strict', assert.strict)
    core.watch('assert', assert)
    core.watch('assert.strict', assert.strict)
    core.watch('AssertionError', assert.AssertionError.prototype)
    core.guard('Module', Module, ['_load', '_resolveFilename', '_findPath'])
    core.guard('Module.prototype', Module.prototype, ['require', 'load', '_compile'])
    const ending = ['reallyExit', 'emit', 'exit']
    core.watch('process', process, ['binding', '_kill', ...(request.tap ? [] : ending)]) // tap replaces these itself
    void [fs.Dir, fs.opendir, fs.opendirSync] // which node loads when they are first used
    for (const [label, object] of [['JSON', JSON], ['Reflect', Reflect], ['Object', Object], ['Promise', Promise.prototype],
      ['Array()', Array], ['Map', Map.prototype], ['WeakMap', WeakMap.prototype], ['Set', Set.prototype],
      ['Array', Array.prototype],
      ['ArrayIterator', Reflect.getPrototypeOf([][Symbol.iterator]())], ['String', String.prototype],
      ['Function', Function.prototype], ['fs.binding', process.binding('fs')], ['Module', Module],
      ['Module.prototype', Module.prototype], ['Buffer', Buffer],
      ['events', require('node:events').prototype]]) {
      core.watch(label, object)
    }
    core.watch('fs', fs, Reflect.ownKeys(fs).filter((key) => key !== 'readFileSync'))
  }

  // ----------------------------------------------------------------------------------------------------- the end
  process.on('uncaughtExceptionMonitor', (error) => {
    const block = running[running.length - 1]
    const failing = block || core.root
    failing.failure = failing.failure || messageOf(error)
    send('crash', { msg: messageOf(error) })
  })

  process.on('exit', (code) => {
    core.conclude()
    send('code', { code, pending: running.length })
  })

  if (request.load_stress) stress(core.later)
  process.argv.splice(2)
  if (request.cover && request.runner !== 'vitest') core.startCoverage()
  if (request.runner !== 'node') {
    const start = loaded.get(`runner_${request.runner}`)
    const around = request.inserted ? (titles) => runInserted(null, request.inserted[titles]) : () => {}
    follow.idle = () => {
      process.argv[1] = request.file
      start(core, { follow, runInserted: around, setEnvironmentData })
    }
  }
}

/** A module of excise, which code of the project will not find among the loaded ones. */
function take (name) {
  const file = require.resolve(name)
  const exported = require(file)
  delete require.cache[file]
  return exported
}

function stress (later) {
  const { performance } = require('node:perf_hooks')
  const pause = () => {
    const until = performance.now() + Math.random() * 20
    while (performance.now() < until);
    later(pause, 5 + Math.random() * 20).unref()
  }
  later(pause, 5).unref()
}
