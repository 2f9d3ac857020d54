/*
 * Judges texts that lifted tests reported: whether they match the patterns of the tests. Nothing of a solution is here.
 *
 * The request (JSON) is on stdin: `root`, and `texts`, each with the `path` of its test, its `test`, the `number` of the
 * value and the `text`. At `path` there is the judging form, JSON: test to number to `source` and `flags`, or `text`. The
 * answer on stdout is a list of truths, in their order.
 */
'use strict'

const fs = require('node:fs')
const { join } = require('node:path')

const { root, texts } = JSON.parse(fs.readFileSync(0, 'utf8'))
const forms = new Map()

function fits ({ path, test, number, text }) {
  if (!forms.has(path)) forms.set(path, JSON.parse(fs.readFileSync(join(root, path), 'utf8')))
  const pattern = (forms.get(path)[test] || {})[number]
  if (pattern === undefined) return false
  return 'text' in pattern ? text.includes(pattern.text) : new RegExp(pattern.source, pattern.flags).test(text)
}

process.stdout.write(JSON.stringify(texts.map(fits)))
