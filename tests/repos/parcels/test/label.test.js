'use strict'

const test = require('node:test')
const assert = require('node:assert')
const { label } = require('..')

test('label', () => {
  assert.strictEqual(label({ name: 'Ada', street: ' Mill Lane 3 ', town: 'Ely' }), 'Ada, Mill Lane 3, Ely')
  assert.strictEqual(label({ name: 'Ada', town: 'Ely' }), 'Ada, Ely')
})

test('label', () => {
  assert.strictEqual(label({ name: 'Bartholomew Featherstonehaugh', town: 'Ely' }), 'Bartholomew…, Ely')
})

test('a long word is cut', () => {
  assert.strictEqual(label({ name: 'x'.repeat(30) }), 'x'.repeat(23) + '…')
})
