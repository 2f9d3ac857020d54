/*
 * Follows the tests of node:test, by `test`, `it`, `describe` and `suite`, and subtests of a test's context.
 *
 * Exports a function of the hook's core (excise_hook_core.cjs) that returns a function: it wraps what node:test exports.
 */
'use strict'

const { AsyncLocalStorage } = require('node:async_hooks')

module.exports = (core) => {
  const { Block, blockMap, root, running, begin, finish, skip, messageOf } = core
  const { apply, ownKeys, getOwnPropertyDescriptor, defineProperty } = Reflect

  /** Holds what stands for the block in which code runs: code of the project can read what it holds. */
  const context = new AsyncLocalStorage()
  const blocks = blockMap()

  function runIn (block, body) {
    const key = {}
    blocks.set(key, block)
    return context.run(key, body)
  }

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
      const block = new Block(blocks.get(context.getStore()) || root, title)
      if ('concurrency' in options) options.concurrency = 1
      if (!fn || options.skip || options.todo) {
        if (!isSuite) skip(block)
        return apply(original, this, [title, options, fn])
      }
      if (!block.isWanted()) return apply(original, this, [title, { ...options, skip: true }, fn])
      const body = isSuite ? (...rest) => runIn(block, () => apply(fn, this, rest)) : testBody(block, fn)
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
        answer = runIn(block, () => apply(fn, this, given))
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
        return runIn(block, () => apply(wrapped, t, arguments))
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

  return hookNodeTest
}
