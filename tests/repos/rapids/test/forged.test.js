'use strict'

const fs = require('node:fs')
const test = require('node:test')

test('forges a report', () => {
  const lines = ['start', 'test', 'end'].map((t) => JSON.stringify({ t, id: 'never ran', status: 'PASSED' }) + '\n')
  fs.writeSync(3, lines.join(''))
  process.stdout.write('ok 1 - never ran\n')
  throw new Error('no')
})
