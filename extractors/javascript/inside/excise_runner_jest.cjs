/*
 * Runs one test file in jest, with the project's configuration, in this process.
 *
 * jest runs tests in a context of their own, whose events it passes on to the environment class: `handleTestEvent`, which
 * is added to the class that the configuration or the file names. Time limits below MIN_LIMIT_MS are raised.
 */
'use strict'

const fs = require('node:fs')
const { createRequire } = require('node:module')
const { join, basename } = require('node:path')

const MIN_LIMIT_MS = 10000
const CACHE = '/tmp/excise-jest'

module.exports = async (core, { follow }) => {
  const { request, Block, root, begin, finish, skip, messageOf } = core
  const { apply } = Reflect
  const reallyExit = process.reallyExit.bind(process)
  const load = createRequire(join(request.root, 'package.json'))
  const blocks = core.blockMap()

  /** Make the blocks of all tests, in the order of the file, and leave out the tests that are not wanted. */
  function choose (describe, parent, state) {
    for (const each of describe.children || [...describe.tests, ...describe.children]) {
      const block = new Block(parent, each.name)
      blocks.set(each, block)
      if (each.type === 'describeBlock' || each.children) {
        choose(each, block, state)
        continue
      }
      each.concurrent = false
      each.timeout = Math.max(each.timeout || state.testTimeout || 0, MIN_LIMIT_MS)
      if (!block.isWanted()) each.mode = 'skip'
    }
    for (const hook of describe.hooks) hook.timeout = Math.max(hook.timeout || state.testTimeout || 0, MIN_LIMIT_MS)
  }

  const errorOf = (errors) => {
    const first = Array.isArray(errors[0]) ? errors[0][0] || errors[0][1] : errors[0]
    return messageOf(first)
  }

  function handle (event, state) {
    const block = event.test ? blocks.get(event.test) : undefined
    if (event.name === 'run_start') {
      choose(state.rootDescribeBlock, root, state)
    } else if (block === undefined || block.ended) {
      return
    } else if (event.name === 'test_start') {
      if (block.began === undefined && event.test.mode !== 'skip' && event.test.mode !== 'todo') begin(block)
    } else if (event.name === 'test_skip' || event.name === 'test_todo') {
      if (block.isWanted()) skip(block)
      block.ended = true
    } else if (event.name === 'test_done' && block.began !== undefined) {
      block.failure = event.test.errors.length > 0 ? errorOf(event.test.errors) : null
      finish(block)
    }
  }

  const known = new WeakSet()
  follow.loaded = (exported) => {
    const found = exported !== null && typeof exported === 'object' && 'default' in exported ? exported.default : exported
    for (const each of [found, exported && exported.TestEnvironment]) {
      const prototype = typeof each === 'function' && each.prototype
      if (!prototype || typeof prototype.getVmContext !== 'function' || known.has(prototype)) continue
      known.add(prototype)
      hookEnvironment(prototype)
    }
  }

  /** Environments that extend each other are all hooked, but only one of them handles an event. */
  const handled = new WeakSet()
  function hookEnvironment (prototype) {
    const { handleTestEvent } = prototype
    prototype.handleTestEvent = async function (event, state) {
      if (!handled.has(event)) {
        handled.add(event)
        handle(event, state)
      }
      if (handleTestEvent) await apply(handleTestEvent, this, [event, state])
    }
  }

  /** What jest makes of a hidden test is not left in its cache. */
  function guardCache () {
    const { renameSync, unlinkSync } = fs
    const stem = basename(request.file).replace(/\W/g, '')
    fs.renameSync = function (from, to) {
      apply(renameSync, this, arguments)
      const text = String(to)
      if (text.startsWith(CACHE) && basename(text).replace(/\W/g, '').startsWith(stem.slice(0, 8))) unlinkSync(to)
    }
  }

  try {
    if (Object.keys(request.sealed).length > 0) guardCache()
    const jest = createRequire(load.resolve('jest'))
    const { runCLI } = jest('@jest/core')
    await runCLI({
      _: [request.file],
      $0: 'jest',
      runTestsByPath: true,
      runInBand: true,
      ci: true,
      silent: true,
      watchman: false,
      coverage: false,
      collectCoverage: false,
      injectGlobals: true,
      testTimeout: undefined,
      bail: 0,
      retryTimes: 0,
      randomize: false,
      reporters: request.print ? ["default"] : [],
      forceExit: false,
      passWithNoTests: true,
      testRunner: jest.resolve('jest-circus/runner'),
      cacheDirectory: CACHE
    }, [request.root])
    process.emit('exit', 0)
    reallyExit(0)
  } catch (error) {
    core.send('crash', { msg: messageOf(error) })
    process.emit('exit', 1)
    reallyExit(1)
  }
}
