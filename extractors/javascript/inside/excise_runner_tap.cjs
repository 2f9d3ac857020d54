/*
 * Follows the tests of tap: each call of `test` is a block, which passes if its own assertions do. The assertions of a
 * file outside of all tests, by the root that tap makes, are those of one test more, `(file)`; it is reported at the end.
 *
 * Exports a function of the hook's core (excise_hook_core.cjs) that returns a function for tap's class of tests: that of
 * `libtap` (tap 15 and 16), of tap's own folder (before), or of `@tapjs/core` (since 18).
 */
'use strict'

module.exports = (core) => {
  const { Block, root, begin, finish, skip, blockMap, outside: file, MAX_MESSAGE } = core
  const { apply } = Reflect

  /** Tests to their places: the block, the place around it, and how many tests inside it failed, by name. */
  const places = blockMap()
  /** The options of a test that is made, to its place. */
  const made = blockMap()
  const placeOf = (block, around) => ({ block, around, failed: { __proto__: null } })
  const outside = placeOf(root, null)

  /** Whether a test that is left out is reported at the moment: that is no assertion of the file's own. */
  let skipping = false
  /** What was thrown outside of tests fails the file's own test, but does not make one. */
  let throwing = false
  let thrown = null

  /** Note an assertion of a test if it is the root. */
  function note (test, ok, extra, message) {
    if (skipping || test.parent || places.has(test) || core.inserted.titles !== null) return
    const isExpected = ok || (extra !== null && typeof extra === 'object' && (extra.skip || extra.todo))
    const failure = isExpected ? null : String(message || 'an assertion').split('\n')[0].slice(0, MAX_MESSAGE)
    if (throwing && file.block === null) {
      thrown = failure
      return
    }
    file.note(() => planFailure(test))
    if (file.block.failure === null) file.block.failure = thrown || failure
  }

  /** What tap says of the number of a test's assertions, at its end. */
  function planFailure ({ results }) {
    if (!results) return 'did not end'
    const failures = results.failures || []
    for (let n = 0; n < failures.length; n++) if (failures[n].tapError) return String(failures[n].tapError)
    return null
  }

  /** Follow the functions by which all assertions give their results: `printResult`, which is private since tap 18. */
  function hookAssertions ({ prototype }) {
    const { printResult, pass, fail, threw } = prototype
    if (typeof printResult === 'function') {
      prototype.printResult = function (ok, message, extra, front) {
        if (!front) note(this, extra && extra.expectFail ? !ok : ok, extra, message)
        return apply(printResult, this, arguments)
      }
    } else {
      prototype.pass = function (message, extra) {
        note(this, true, extra, message)
        return apply(pass, this, arguments)
      }
      prototype.fail = function (message, extra) {
        note(this, Boolean(extra && extra.expectFail), extra, message)
        return apply(fail, this, arguments)
      }
    }
    prototype.threw = function () {
      throwing = true
      try {
        return apply(threw, this, arguments)
      } finally {
        throwing = false
      }
    }
  }

  function hookTap (Test) {
    const { sub, main } = Test.prototype
    hookAssertions(Test)
    Test.prototype.sub = function (Class, extra = {}, ...rest) {
      if (Class !== Test && !(Class.prototype instanceof Test)) return apply(sub, this, arguments)
      const around = places.get(this) || outside
      const block = new Block(around.block, extra.name)
      this.jobs = 1
      extra.buffered = false
      if (extra.skip || extra.todo) skip(block)
      else if (!block.isWanted()) extra.skip = true
      else made.set(extra, placeOf(block, around))
      skipping = Boolean(extra.skip || extra.todo)
      try {
        return apply(sub, this, [Class, extra, ...rest])
      } finally {
        skipping = false
      }
    }
    Test.prototype.main = function (done) {
      const place = made.get(this.options)
      if (place === undefined) return apply(main, this, arguments)
      places.set(this, place)
      begin(place.block)
      return apply(main, this, [(...given) => {
        conclude(this, place)
        return apply(done, undefined, given)
      }])
    }
  }

  /** Judge a block by the results of its test, but for those of the tests inside it. */
  function conclude (test, { block, around, failed }) {
    const { results } = test
    if (!results || !results.ok) around.failed[written(test.name)] = (around.failed[written(test.name)] || 0) + 1
    if (results) {
      const failures = results.failures || []
      block.asserts = Math.max(results.count - block.children, 0)
      for (let n = 0; n < failures.length && block.failure === null; n++) {
        const { tapError, name } = failures[n]
        if (!tapError && failed[written(name)] > 0) failed[written(name)]--
        else block.failure = String(tapError || name || 'an assertion').split('\n')[0].slice(0, MAX_MESSAGE)
      }
      if (block.failure === null && !results.ok && block.children === 0) block.failure = 'did not pass'
    } else {
      block.failure = 'did not end'
    }
    finish(block)
  }

  /** What tap leaves of a name that it writes and reads: it cuts, escapes and replaces other characters. */
  function written (name) {
    return String(name).split('#')[0].replace(/[^\p{L}\p{N}]/gu, '')
  }

  return hookTap
}
