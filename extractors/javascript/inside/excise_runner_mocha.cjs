/*
 * Runs one test file in mocha, with the project's configuration (`.mocharc`, `package.json`, options of its test command).
 *
 * A test passes if mocha says so of its function, and of the hooks before it. Time limits below MIN_LIMIT_MS are raised:
 * they are those of the author's idle machine.
 */
'use strict'

const { createRequire } = require('node:module')
const { join } = require('node:path')

const MIN_LIMIT_MS = 10000
const HOOKS = ['_beforeAll', '_beforeEach', '_afterAll', '_afterEach']
/** Options of a command that say which tests run, and how often: these are excise's to choose. */
const OURS = ['grep', 'fgrep', 'invert', 'parallel', 'watch', 'bail', 'retries', 'forbidOnly', 'forbidPending', 'spec',
  'delay', 'dryRun', 'reporter', 'reporterOption', 'reporterOptions', 'forbid-only', 'forbid-pending']

module.exports = async (core, { runInserted }) => {
  const { request, Block, root, begin, finish, skip, messageOf } = core
  const load = createRequire(join(request.root, 'package.json'))
  const reallyExit = process.reallyExit.bind(process)
  const blocks = core.blockMap()

  const blockOf = (suite) => {
    if (!blocks.has(suite)) blocks.set(suite, suite.root ? root : new Block(blockOf(suite.parent), suite.title))
    return blocks.get(suite)
  }

  const raise = (runnable) => {
    if (runnable.timeout() > 0 && runnable.timeout() < MIN_LIMIT_MS) runnable.timeout(MIN_LIMIT_MS)
  }

  /** Make the blocks of all tests in the order of the file, and take out the tests that are not wanted. */
  function choose (suite, isOuter) {
    const parent = blockOf(suite)
    for (const test of suite.tests) {
      const block = new Block(parent, test.title)
      blocks.set(test, block)
      raise(test)
      if (test.isPending() && block.isWanted()) skip(block)
    }
    suite.tests = suite.tests.filter((test) => blocks.get(test).isWanted() && !test.isPending())
    for (const inner of suite.suites) if (!isOuter || !blocks.has(inner)) choose(inner, false)
    for (const name of HOOKS) suite[name].forEach(raise)
  }

  /** Canaries are in suites of their own; their blocks are those of the file's main level. */
  function insert (mocha, which) {
    const before = mocha.suite.suites.length
    mocha.suite.emit('pre-require', globalThis, null, mocha)
    runInserted(which)
    if (!request.inserted) return
    core.inserted.titles = new Set(request.inserted[which])
    mocha.suite.suites.slice(before).forEach((suite) => choose(suite, false))
    core.inserted.titles = null
  }

  function follow (runner) {
    const blockFor = (test) => {
      if (!blocks.has(test) && test.retriedTest && test.retriedTest()) blocks.set(test, blockFor(test.retriedTest()))
      return blocks.get(test)
    }
    const on = (event, handle) => runner.on(event, (test, error) => {
      const block = test && blockFor(test)
      if (block && !block.ended) handle(block, error)
    })
    on('test', (block) => {
      if (block.began !== undefined) return
      begin(block)
      block.failure = 'did not pass'
    })
    on('pass', (block) => { block.failure = null })
    on('pending', (block) => { block.skipped = true })
    on('fail', (block, error) => { block.failure = messageOf(error) })
    on('test end', finish)
    runner.on('fail', (hook, error) => {
      const block = hook.type === 'hook' && hook.ctx && hook.ctx.currentTest && blocks.get(hook.ctx.currentTest)
      if (!block || block.ended || block.began === undefined) return
      block.failure = messageOf(error)
      finish(block)
    })
  }

  try {
    const exported = load('mocha')
    const Mocha = exported.default || exported
    const options = optionsOf(load, request.mocha || [])
    for (const name of OURS) delete options[name]
    Object.assign(options, await requireAll(load, request.root, list(options.require)))
    for (const part of ['Runner', 'Runnable', 'Test', 'Suite', 'Hook', 'Context']) {
      if (typeof Mocha[part] !== 'function') continue
      core.guard(`mocha/${part}`, Mocha[part].prototype)
      core.watch(`mocha/${part}`, Mocha[part].prototype)
    }
    const mocha = new Mocha({ ...options, reporter: class {} })
    insert(mocha, 'first')
    mocha.files = [...list(options.file).map((file) => join(request.root, file)), request.file]
    if (request.esm && mocha.loadFilesAsync) await mocha.loadFilesAsync()
    else mocha.loadFiles()
    mocha.files = []
    choose(mocha.suite, true)
    insert(mocha, 'last')
    follow(mocha.run(() => {
      process.emit('exit', 0)
      reallyExit(0)
    }))
  } catch (error) {
    core.send('crash', { msg: messageOf(error) })
    process.exitCode = 1
  }
}

const list = (value) => (value === undefined ? [] : [value].flat())

/** The options of the project, and of the command line `words`. */
function optionsOf (load, words) {
  try {
    return load('mocha/lib/cli/options').loadOptions(words)
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND' && error.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error
  }
  return oldOptions(words)
}

/** Those of mocha before version 6, which knew no files but `test/mocha.opts`. */
function oldOptions (words) {
  const options = { require: [], ui: 'bdd' }
  words.forEach((word, at) => {
    const [name, value = words[at + 1]] = word.split('=')
    if (name === '--require' || name === '-r') options.require.push(value)
    if (name === '--ui' || name === '-u') options.ui = value
  })
  return options
}

/** Load the modules of `--require`; returns their root hooks, as options. */
async function requireAll (load, root, names) {
  let handle = null
  try {
    handle = load('mocha/lib/cli/run-helpers').handleRequires
  } catch {}
  if (handle) return { ...await handle(names) }
  const { existsSync } = require('node:fs')
  for (const name of names) {
    const file = join(root, name)
    load(existsSync(file) || existsSync(`${file}.js`) ? file : name)
  }
  return {}
}
