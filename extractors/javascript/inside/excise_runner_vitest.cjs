/*
 * Starts vitest with one test file, in this process; the file itself runs in a thread of vitest, where
 * excise_vitest_runner.mjs follows its tests. Hidden tests are read here, from memory: code of the project runs in the
 * thread alone.
 */
'use strict'

const fs = require('node:fs')
const { createRequire, syncBuiltinESMExports } = require('node:module')
const { join, relative } = require('node:path')
const { pathToFileURL } = require('node:url')

const LIMIT_MS = 60000

module.exports = async (core, { setEnvironmentData }) => {
  const { request, messageOf } = core
  const { apply } = Reflect
  const reallyExit = process.reallyExit.bind(process)
  const load = createRequire(join(request.root, 'package.json'))
  const sealed = new Map(Object.entries(request.sealed))
  const bare = (id) => String(id).replace(/^file:\/\//, '').replace(/[?#].*$/, '')

  // vite writes the bundled configuration beside the original only where this folder may not be made: here, there is none
  const { mkdir } = fs.promises
  fs.promises.mkdir = async function (path) {
    if (!String(path).endsWith('.vite-temp')) return apply(mkdir, this, arguments)
    throw Object.assign(new Error(`permission denied, mkdir '${path}'`), { code: 'EACCES', syscall: 'mkdir', path })
  }
  if (sealed.size > 0) {
    const { readFile } = fs.promises
    fs.promises.readFile = async function (path, options) {
      if (!sealed.has(bare(path))) return apply(readFile, this, arguments)
      const text = sealed.get(bare(path))
      return (typeof options === 'string' ? options : options && options.encoding) ? text : Buffer.from(text)
    }
  }
  syncBuiltinESMExports()

  try {
    const { startVitest } = await import(pathToFileURL(load.resolve('vitest/node')))
    setEnvironmentData('excise', { ...request, sealed: {} })
    const file = relative(request.root, request.file)
    const vitest = await startVitest('test', [file], {
      root: request.root,
      run: true,
      watch: false,
      pool: 'threads',
      poolOptions: { threads: { singleThread: true } },
      maxWorkers: 1,
      minWorkers: 1,
      fileParallelism: false,
      maxConcurrency: 1,
      include: [file],
      exclude: [],
      runner: join(__dirname, 'excise_vitest_runner.mjs'),
      reporters: request.print ? ['default'] : [{ onInit () {} }],
      coverage: { enabled: false },
      typecheck: { enabled: false },
      sequence: { shuffle: false, concurrent: false },
      testTimeout: LIMIT_MS,
      hookTimeout: LIMIT_MS,
      teardownTimeout: 1000,
      retry: 0,
      bail: 0,
      passWithNoTests: true,
      ui: false,
      api: false
    }, {
      cacheDir: '/tmp/excise-vite',
      plugins: [{ name: 'excise', enforce: 'pre', load: (id) => sealed.get(bare(id)) }]
    })
    if (vitest) await vitest.close()
    process.emit('exit', 0)
    reallyExit(0)
  } catch (error) {
    core.send('crash', { msg: messageOf(error) })
    process.emit('exit', 1)
    reallyExit(1)
  }
}
