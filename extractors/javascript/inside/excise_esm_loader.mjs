/*
 * Loads ECMAScript modules for the hook, in node's thread for loaders: `node:test` as the hook has wrapped it, hidden tests
 * from memory, and canaries before and after the test file.
 */

let request = { sealed: {}, entry: null, token: '' }

const NODE_TEST = `
import { createRequire } from 'node:module'
const found = createRequire('file:///excise/')('node:test')
export default found
`
const FIRST = 'excise:first'
const LAST = 'excise:last'
const ENTRY = 'excise:entry'
const RUNNER = 'excise:node-test'

export function initialize (data) {
  request = data
  request.sealed = new Map(Object.entries(data.sealed))
}

export async function resolve (specifier, context, next) {
  if (specifier === 'node:test' && context.parentURL !== RUNNER) return made(RUNNER)
  if ((specifier === FIRST || specifier === LAST) && context.parentURL === ENTRY) return made(specifier)
  if (context.parentURL === undefined && request.entry !== null) {
    request.main = (await next(specifier, context)).url
    if (decodeURIComponent(new URL(request.main).pathname) === request.entry) return made(ENTRY)
  }
  return next(specifier, context)
}

const made = (url) => ({ url, format: 'module', shortCircuit: true })

export async function load (url, context, next) {
  if (url.startsWith('excise:')) return { format: 'module', shortCircuit: true, source: sourceOf(url) }
  const path = url.startsWith('file:') ? decodeURIComponent(new URL(url).pathname) : ''
  if (request.sealed.has(path)) {
    const source = request.sealed.get(path)
    request.sealed.delete(path)
    return { format: formatOf(path, context.format, source), shortCircuit: true, source }
  }
  return next(url, context)
}

function formatOf (path, format, source) {
  if (/\.c[jt]s$/.test(path)) return 'commonjs'
  if (/\.m[jt]s$/.test(path) || /^\s*(import|export)\b(?!\s*\()/m.test(source)) return 'module'
  return format || 'commonjs'
}

function sourceOf (url) {
  if (url === RUNNER) return NODE_TEST + request.names.map((name) => `export const ${name} = found.${name}\n`).join('')
  if (url === ENTRY) return `import '${FIRST}'\nimport ${JSON.stringify(request.main)}\nimport '${LAST}'\n`
  const word = JSON.stringify(request.token + url)
  return `import { createRequire } from 'node:module'\ncreateRequire('file:///excise/')(${word})\n`
}
