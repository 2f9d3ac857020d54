/*
 * Follows the tests of a file in vitest's thread: vitest loads this before anything of the project, as its test runner.
 */
import { createRequire } from 'node:module'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { VitestTestRunner } from 'vitest/runners'

const request = getEnvironmentData('excise')
setEnvironmentData('excise', undefined)
const load = createRequire(import.meta.url)
const core = load('./excise_hook_core.cjs')(request)
delete load.cache[load.resolve('./excise_hook_core.cjs')]
const { Block, root, running, begin, finish, skip, messageOf } = core
const blocks = new WeakMap()
if (request.cover) core.startCoverage()
if (request.watch) {
  for (const [label, object] of [['JSON', JSON], ['Reflect', Reflect], ['Object', Object], ['Promise', Promise.prototype],
    ['Map', Map.prototype], ['Set', Set.prototype], ['Array', Array.prototype], ['String', String.prototype],
    ['Function', Function.prototype], ['runner', VitestTestRunner.prototype]]) {
    core.watch(label, object)
  }
}

/** Make the blocks of all tests, in the order of the file, and leave out the tests that are not wanted. */
function choose (task, parent) {
  const block = new Block(parent, task.name)
  blocks.set(task, block)
  if (task.tasks) {
    for (const each of task.tasks) choose(each, block)
    return
  }
  task.concurrent = false
  if (!block.isWanted()) task.mode = 'skip'
}

export default class extends VitestTestRunner {
  async onBeforeRunFiles (files) {
    for (const file of files) for (const task of file.tasks) choose(task, root)
    if (super.onBeforeRunFiles) await super.onBeforeRunFiles(files)
  }

  async onBeforeRunTask (task) {
    await super.onBeforeRunTask(task)
    const block = blocks.get(task)
    if (block === undefined || block.began !== undefined) return
    if (task.mode === 'run' || task.mode === 'queued') begin(block)
    else if (block.isWanted()) skip(block)
  }

  async onAfterRunTask (task) {
    await super.onAfterRunTask(task)
    const block = blocks.get(task)
    if (block === undefined || block.began === undefined) return
    const { state, errors } = task.result || {}
    block.skipped = state === 'skip' || state === 'todo'
    block.failure = state === 'pass' || block.skipped ? null : messageOf((errors || [])[0] || 'did not pass')
    finish(block)
  }

  async onAfterRunFiles (files) {
    if (super.onAfterRunFiles) await super.onAfterRunFiles(files)
    core.conclude()
  }
}
