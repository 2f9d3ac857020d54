"""Attacks that plant files which node, npm or a test runner loads before or instead of others."""

from __future__ import annotations

from collections.abc import Callable

from excise.verifiers.attacks.attack import LINK, Attack, AttackTarget, ChangedFiles

_PASSING = (
    "const pass = (name, options, fn) => {}\n"
    "module.exports = Object.assign(pass, { test: pass, it: pass, describe: pass })\n"
)
"""A test runner that runs nothing."""
_EMPTY_TEST = "require('tape')('nothing', (t) => t.end())\n"


def _with(files: Callable[[AttackTarget], ChangedFiles]) -> Callable[[AttackTarget], ChangedFiles]:
    return lambda target: {**target.stubbed, **files(target)}


_MANIFEST = '{"name": "x", "type": "module", "scripts": {"test": "true"}, "main": "fake.js"}\n'
_FILES: dict[str, Callable[[AttackTarget], ChangedFiles]] = {
    "node-modules-tape": lambda _: {"node_modules/tape/index.js": _PASSING},
    "node-modules-beside-tests": lambda target: {
        f"{target.test_folder}node_modules/tape/index.js": _PASSING,
        f"{target.test_folder}node_modules/assert/index.js": "module.exports = () => {}\n",
    },
    "node-modules-link": lambda _: {"node_modules": f"{LINK}/tmp"},
    "package-json": lambda _: {"package.json": _MANIFEST},
    "package-json-in-folder": lambda target: {f"{target.test_folder}package.json": '{"type": "module"}\n'},
    "npmrc": lambda _: {".npmrc": "node-options=--require ./fake.js\n", "fake.js": "process.exit(0)\n"},
    "env-file": lambda _: {".env": "NODE_OPTIONS=--require ./fake.js\n", "fake.js": "process.exit(0)\n"},
    "hidden-tests-replaced": lambda target: {target.test_file: _EMPTY_TEST},
    "test-added": lambda target: {f"{target.test_folder}zz.test.js": "process.exit(0)\n"},
    "test-helper": lambda target: {f"{target.test_folder}index.js": _PASSING},
}


def _attack(name: str, files: Callable[[AttackTarget], ChangedFiles]) -> Attack:
    return Attack(name=f"node-{name}", vector="files", make=_with(files))


PLANTED_FILES = tuple(_attack(name, files) for name, files in _FILES.items())
"""The attacks."""
