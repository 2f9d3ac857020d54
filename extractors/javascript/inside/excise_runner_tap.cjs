/*
 * Follows the tests of tap: each call of `test` is a block, which passes if its own assertions do.
 *
 * Exports a function of the hook's core (excise_hook_core.cjs) that returns a function for tap's class of tests: that of
 * `libtap` (tap 15 and 16), of tap's own folder (before), or of `@tapjs/core` (since 18).
 */
'use strict'

module.exports = (core) => {
  const { Block, root, begin, finish, skip, blockMap, MAX_MESSAGE } = core
  const { apply } = Reflect

  const blocks = blockMap()
  /** The options of a test that is made, to its block and that around it. */
  const made = blockMap()
  /** A block to the names of the blocks inside it that failed, with their numbers. */
  const failed = blockMap()

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
      else made.set(extra, [block, parent])
      return apply(sub, this, [Class, extra, ...rest])
    }
    Test.prototype.main = function (done) {
      const own = made.get(this.options)
      if (own === undefined) return apply(main, this, arguments)
      const [block, parent] = own
      blocks.set(this, block)
      begin(block)
      return apply(main, this, [(...given) => {
        conclude(this, block, parent)
        return apply(done, undefined, given)
      }])
    }
  }

  /** Judge a block by the results of its test, but for those of the tests inside it. */
  function conclude (test, block, parent) {
    const { results } = test
    if (!results || !results.ok) {
      const around = failed.get(parent) || new Map()
      around.set(written(test.name), (around.get(written(test.name)) || 0) + 1)
      failed.set(parent, around)
    }
    if (results) {
      const inside = new Map(failed.get(block) || [])
      const failures = [...(results.failures || [])].filter((each) => {
        const number = each.tapError ? 0 : inside.get(written(each.name)) || 0
        if (number > 0) inside.set(written(each.name), number - 1)
        return number === 0
      })
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

  /** A name as tap's parser reads it: without what stands behind a number sign, and without its own escapes. */
  function written (name) {
    return String(name).split(/\s\\?#/)[0].replace(/\\(.)/g, '$1').trim()
  }

  return hookTap
}
