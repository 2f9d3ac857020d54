/*
 * Follows the tests of tape: each call of `test` is a block, which passes if all its assertions do.
 *
 * Exports a function of the hook's core (excise_hook_core.cjs) that returns functions for tape's own classes.
 */
'use strict'

module.exports = (core) => {
  const { Block, root, begin, finish, skip, messageOf, MAX_MESSAGE } = core
  const { apply } = Reflect

  const tapeBlocks = core.blockMap()

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

  return { test: hookTape, results: hookTapeResults }
}
