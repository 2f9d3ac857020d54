"""How a project in JavaScript runs its tests, as its manifest and files tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.envs.javascript import toolchain
from excise.envs.javascript.package_manifest import read_project
from excise.envs.javascript.test_command import read_test_command
from excise.errors import EnvironmentFailure


def command(scripts: dict[str, str], *packages: str, files: tuple[str, ...] = ()) -> tuple[str, ...]:
    manifest = {"scripts": scripts, "devDependencies": dict.fromkeys(packages, "*")}
    return read_test_command(manifest, files).options


@pytest.mark.parametrize(
    ("scripts", "packages", "options"),
    [
        ({"test": "node --test"}, ("typescript",), ()),
        ({"test": "mocha -r ./test/setup.js --ui tdd test/*.js"}, ("mocha",),
         ("runner=mocha", "mocha:-r", "mocha:./test/setup.js", "mocha:--ui", "mocha:tdd")),
        ({"test": "eslint . && npm run unit", "unit": "nyc mocha"}, ("mocha",), ("runner=mocha",)),
        ({"test": "vitest run --coverage"}, ("vitest", "jest"), ("runner=vitest",)),
        ({"test": "NODE_OPTIONS=--experimental-vm-modules npx jest"}, ("jest",),
         ("runner=jest", "--experimental-vm-modules")),
        ({"test": "node --experimental-vm-modules node_modules/jest/bin/jest.js"}, ("jest",),
         ("runner=jest", "--experimental-vm-modules")),
        ({"test": "tsx --test test/*.ts"}, ("tsx",), ("--import=tsx",)),
        ({"test": "node -r ts-node/register --test"}, ("ts-node",), ("--require=ts-node/register",)),
        ({}, ("jest",), ("runner=jest",)),
        ({}, (), ()),
    ],
)  # fmt: skip
def test_scripts_and_packages_tell_the_test_runner(
    scripts: dict[str, str], packages: tuple[str, ...], options: tuple[str, ...]
) -> None:
    assert command(scripts, *packages) == options


def test_files_of_configuration_tell_the_test_runner() -> None:
    assert command({"test": "make test"}, files=(".mocharc.yml",)) == ("runner=mocha",)


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_packages_that_configuration_names_are_installed(tmp_path: Path) -> None:
    manifest = {
        "name": "p",
        "scripts": {"test": "jest"},
        "jest": {"preset": "ts-jest", "testEnvironment": "jsdom"},
        "dependencies": {"tslib": "^2"},
        "devDependencies": {
            "jest": "^29", "ts-jest": "^29", "typescript": "^5", "eslint": "^9", "rollup": "^4", "@types/jest": "^29",
            "jest-environment-jsdom": "^29", "@babel/preset-env": "^7", "fast-check": "^3",
        },
    }  # fmt: skip
    root = write(
        tmp_path,
        {
            "package.json": json.dumps(manifest),
            "tsconfig.json": "{}",
            "babel.config.js": "module.exports = { presets: ['@babel/env'] }",
            "src/a.ts": "export const a = 1\n",
            "src/a.test.ts": "import fc from 'fast-check'\nimport { a } from './a'\ntest('a', () => {})\n",
        },
    )
    project = read_project(root)
    assert project.options == ("runner=jest",)
    assert project.tests == ("src/a.test.ts",)
    assert set(project.packages) == {
        "jest", "ts-jest", "typescript", "@types/jest", "jest-environment-jsdom", "@babel/preset-env", "fast-check",
        "tslib",
    }  # fmt: skip


def test_files_in_typescript_are_compiled_when_they_are_loaded(tmp_path: Path) -> None:
    files = {
        "package.json": '{"name": "p", "type": "module"}',
        "src/a.ts": "export const a = 1\n",
        "test/a.test.js": "import { test } from 'node:test'\nimport { a } from '../src/a.js'\ntest('a', () => {})\n",
    }
    project = read_project(write(tmp_path, files))
    assert (project.options, dict(project.packages)) == (("--import=tsx",), {"tsx": "*"})


def test_projects_with_other_test_runners_are_refused(tmp_path: Path) -> None:
    files = {"package.json": '{"name": "p"}', "test/a.js": "const { test } = require('uvu')\ntest('a', () => {})\n"}
    with pytest.raises(EnvironmentFailure) as refused:
        read_project(write(tmp_path, files))
    assert refused.value.reason == "unknown_test_runner"


def test_a_package_that_tape_needs_by_another_one_is_required(tmp_path: Path) -> None:
    packages = {
        "tape": {"call-bind": "1", "minimist": "1"},
        "call-bind": {"function-bind": "1"},
        "minimist": {"other": "1"},
        "function-bind": {},
    }
    for name, dependencies in packages.items():
        (tmp_path / name / "lib").mkdir(parents=True)
        (tmp_path / name / "package.json").write_text(json.dumps({"dependencies": dependencies}))
    (tmp_path / "tape" / "lib" / "test.js").write_text("var bind = require('call-bind/callBound')\n")
    found = {name: toolchain._is_required(tmp_path, "tape", name) for name in (*packages, "other")}
    assert found == {"tape": False, "call-bind": True, "function-bind": True, "minimist": False, "other": False}
