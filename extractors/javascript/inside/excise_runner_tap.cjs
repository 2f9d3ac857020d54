/*
 * Follows the tests of tap: each call of `test` is a block, which passes if its own assertions do.
 *
 * Exports a function of the hook's core (excise_hook_core.cjs) that returns a function for tap's class of tests: that of
 * `libtap` (tap 15 and 16), of tap's own folder (before), or of `@tapjs/core` (since 18).
 */
'use strict'

module.exports = (core) => {
  const { Block, root, begin, finish, skip, MAX_MESSAGE } = core
  const { apply } = Reflect

  const blocks = new WeakMap()
  /** The options of a test that is made, to its block. */
  const made = new WeakMap()

  function hookTap (Test) {
    const { sub, main } = Test.prototype
    Test.prototype.sub = function (Class, extra = {}, ...rest) {
      if (Class !== Test && !(Class.prototype instanceof Test)) return apply(sub, this, arguments)
      const parent = blocks.get(this) || root
      const block = new Block(parent, extra.name)
      this.jobs = 1
      extra.buffered = false
      if (extra.skip || extra.todo) skip(block)
      else if (!block.isWanted()) extra.skip = true
      else made.set(extra, block)
      return apply(sub, this, [Class, extra, ...rest])
    }
    Test.prototype.main = function (done) {
      const block = made.get(this.options)
      if (block === undefined) return apply(main, this, arguments)
      blocks.set(this, block)
      begin(block)
      return apply(main, this, [(...given) => {
        conclude(this, block)
        return apply(done, undefined, given)
      }])
    }
  }

  /** Judge a block by the results of its test, but for those of the tests inside it. */
  function conclude (test, block) {
    const { results } = test
    if (results) {
      const failures = [...(results.failures || [])].filter((each) => each.tapError || !block.names.has(each.name))
      block.asserts = Math.max(results.count - block.children, 0)
      if (failures.length > 0) {
        const { tapError, name } = failures[0]
        block.failure = String(tapError || name || 'an assertion').split('\n')[0].slice(0, MAX_MESSAGE)
      } else if (!results.ok && block.children === 0) {
        block.failure = 'did not pass'
      }
    } else {
      block.failure = 'did not end'
    }
    finish(block)
  }

  return hookTap
}
