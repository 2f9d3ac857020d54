'use strict'

const { test, describe, it } = require('node:test')
const assert = require('node:assert')
const { postage } = require('..')

describe('postage', () => {
  it('is cheap for light parcels', () => {
    assert.strictEqual(postage(200, 'home'), 250)
    assert.strictEqual(postage(500, 'near'), 375)
  })

  it('grows with the weight', () => {
    assert.strictEqual(postage(10000, 'home'), 990)
    assert.strictEqual(postage(12500, 'far'), 3225)
  })

  for (const weight of [0, -1, NaN]) {
    it(`refuses a weight of ${weight}`, () => {
      assert.throws(() => postage(weight, 'home'), RangeError)
    })
  }
})

test('zones are known', async () => {
  const { zones } = require('../lib/postage')
  assert.deepStrictEqual(zones(), ['home', 'near', 'far'])
})

test('an unknown zone is refused', () => {
  assert.throws(() => postage(1, 'moon'), /unknown zone: moon/)
})
