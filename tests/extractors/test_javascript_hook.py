"""What code of a project can do to the program that follows its tests: nothing that changes a result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from excise.extractors.javascript.execution.node_runner import INSIDE

FREEZE = """
const freeze = (each) => {
  const isBlock = each !== null && typeof each === 'object' && 'isInserted' in each
  if (isBlock) Object.defineProperty(each, 'failure', { get: () => null, set () {} })
}
"""
"""Takes the failure from a block of tests."""
SEEING = {
    "context": "const found = require('async_hooks').AsyncLocalStorage.prototype\nconst { run } = found\n"
    "found.run = function (store) { freeze(store); return run.apply(this, arguments) }",
    "resource": "const { executionAsyncResource } = require('async_hooks')\nglobalThis.during = () => {\n"
    "  const resource = executionAsyncResource()\n"
    "  for (const key of Reflect.ownKeys(resource)) freeze(resource[key])\n}",
    "push": "const { push } = Array.prototype\n"
    "Array.prototype.push = function (...given) { given.forEach(freeze); return push.apply(this, given) }",
    "iterator": "const found = Object.getPrototypeOf([][Symbol.iterator]())\nconst { next } = found\n"
    "found.next = function () { const step = next.call(this); freeze(step.value); return step }",
    "index": "Object.defineProperty(Array.prototype, '0', { configurable: true, set (value) {\n"
    "  freeze(value)\n"
    "  Object.defineProperty(this, '0', { value, writable: true, enumerable: true, configurable: true })\n} })",
    "map": "for (const found of [Map.prototype, WeakMap.prototype]) {\n  const { set } = found\n"
    "  found.set = function (key, value) { freeze(key); freeze(value); return set.call(this, key, value) }\n}",
    "member": "Object.defineProperty(Object.prototype, 'failure', { get: () => null, set () {} })",
    "message": "Object.prototype.toJSON = function () {\n"
    "  return this.status === 'FAILED' ? { ...this, status: 'PASSED' } : this\n}",
}
"""Ways in which code might see a block, or what is reported of one."""
TESTS = """
const { test } = require('node:test')
test('outer', async (t) => {
  await t.test('inner', () => {
    if (globalThis.during) globalThis.during()
    throw new Error('no')
  })
})
test('passes', () => {})
"""


def statuses(folder: Path, text: str) -> dict[str, str]:
    """The results of one test file."""
    (folder / "a.test.js").write_text(text)
    report = folder / "report.jsonl"
    request = {
        "report": str(report), "root": str(folder), "files": ["a.test.js"], "timeout_s": 30, "test_timeout_s": 10,
        "watch": True,
    }  # fmt: skip
    program = [sys.executable, "-I", "-S", str(INSIDE / "excise_node_run.py")]
    subprocess.run(program, input=json.dumps(request).encode(), check=True, timeout=60)
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert not [line for line in lines if line["t"] == "collect_error"]
    return {line["id"].partition("::")[2]: line["status"] for line in lines if line["t"] == "test"}


@pytest.mark.parametrize("way", sorted(SEEING))
def test_code_of_a_project_cannot_take_a_failure_away(tmp_path: Path, way: str) -> None:
    found = statuses(tmp_path, FREEZE + SEEING[way] + TESTS)
    assert (found["outer::inner"], found["passes"]) == ("FAILED", "PASSED")


@pytest.mark.parametrize("note", ['tests were moved here from "tap"', "see require('tap')"])
def test_a_file_that_only_speaks_of_tap_runs_without_it(tmp_path: Path, note: str) -> None:
    text = f"// {note}\nrequire('node:test').test(String(process.env.TAP_TIMEOUT), () => {{}})\n"
    assert statuses(tmp_path, text) == {"undefined": "PASSED"}
