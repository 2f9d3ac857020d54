'use strict'

const test = require('node:test')
const assert = require('node:assert')
const { double } = require('..')

test('first', () => assert.strictEqual(double(2), 4))
test('ends the process', () => process.exit(0))
test('after the end', () => assert.strictEqual(double(3), 6))
test('blocks for ever', () => { for (;;); })
test('waits for ever', () => new Promise(() => { setInterval(() => {}, 1000) }))
test('fails late', async () => {
  setTimeout(() => { throw new Error('late') }, 5)
  await new Promise((resolve) => setTimeout(resolve, 50))
})
test('fails', () => assert.strictEqual(double(1), 3))
test('is skipped', { skip: true }, () => {})
test('misses its plan', (t) => {
  t.plan(2)
  t.assert.strictEqual(1, 1)
})
test('last', () => assert.strictEqual(double(4), 8))
