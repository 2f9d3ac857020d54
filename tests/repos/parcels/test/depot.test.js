'use strict'

const test = require('node:test')
const assert = require('node:assert')
const { Depot } = require('../lib')

test('Depot', async (t) => {
  await t.test('counts by zone', () => {
    const depot = new Depot()
    depot.add({ zone: 'near', weight: 1 })
    depot.add({ zone: 'home', weight: 2 })
    assert.strictEqual(depot.add({ zone: 'near', weight: 3 }), 3)
    assert.deepStrictEqual(depot.byZone(), { home: 1, near: 2 })
    assert.deepStrictEqual(Object.keys(depot.byZone()), ['home', 'near'])
  })

  await t.test('gives the heaviest first', () => {
    const depot = new Depot()
    assert.strictEqual(depot.takeHeaviest(), undefined)
    for (const weight of [2, 9, 4]) depot.add({ zone: 'far', weight })
    assert.deepStrictEqual([1, 2, 3].map(() => depot.takeHeaviest().weight), [9, 4, 2])
  })

  await t.test('begins empty', () => {
    assert.deepStrictEqual(new Depot().parcels, [])
  })
})
