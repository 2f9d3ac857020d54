"""How a project in JavaScript runs its tests, as its manifest and files tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.envs.javascript import toolchain
from excise.envs.javascript.loaded_packages import drop_unloaded
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


@pytest.mark.parametrize("runner", ["tape", "tap"])
def test_a_package_that_a_runner_loads_by_another_one_is_required(tmp_path: Path, runner: str) -> None:
    files = {
        f"{runner}/index.js": "module.exports = require('./lib/test')\n",
        f"{runner}/lib/test.js": "const bind = require('call-bind/callBound')\n",
        f"{runner}/bin/run.js": "require('minimist')\n",
        "call-bind/callBound.js": "require.resolve('function-bind')\n",
        "call-bind/package.json": json.dumps({"exports": {"./callBound": {"require": "./callBound.js"}}}),
        "function-bind/index.js": "",
        "minimist/index.js": "",
        "@own/used/lib/main.js": "",
        "@own/used/package.json": json.dumps({"main": "lib/main.js", "dependencies": {"minimist": "1"}}),
        "@own/unused/index.js": "",
        f"{runner}/node_modules/react/index.js": "",
    }
    write(tmp_path, files)
    names = (runner, "call-bind", "function-bind", "minimist", "other")
    found = [name for name in names if toolchain._is_required(tmp_path, runner, name)]
    assert found == [runner, "call-bind", "function-bind"]
    drop_unloaded(tmp_path, runner, ["@own/used"])
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.js")}
    assert left == files.keys() - {"@own/unused/index.js", f"{runner}/node_modules/react/index.js"} - {
        name for name in files if name.endswith(".json")
    }


def test_what_a_runner_may_load_is_kept(tmp_path: Path) -> None:
    """Also what it names in another form, what only modules load, and what a package needs whose files do not tell."""
    exports = {".": {"import": ["./esm.mjs"]}, "./*": "./lib/*.js"}
    files = {
        "tap/index.js": "require ('blank'); import(`lazy`); require('computed'); require('odd')\nrequire(settings)\n"
        "require('#own'); require('./folder'); require(/* note */ 'bundled'); require('pattern/deep/x')\n",
        "tap/folder/package.json": json.dumps({"main": "main.js"}),
        "tap/folder/main.js": "require('of-folder')\n",
        "tap/node_modules/bundled/other.txt": "",
        "pattern/package.json": json.dumps({"exports": {"./deep/*": {"default": ["./lib/*.js"]}}}),
        "pattern/lib/x.js": "require('of-pattern')\n",
        "blank/package.json": json.dumps({"exports": exports}),
        "blank/esm.mjs": "import deep from 'deep'\nexport * from 'again'\nimport 'effect'\n",
        **{f"{name}/index.js": "" for name in ("lazy", "deep", "again", "effect", "needed", "own", "unused")},
        **{f"{name}/index.js": "" for name in ("of-folder", "of-pattern", "of-imports", "of-parts", "of-nested")},
        "computed/index.js": "require('./parts/' + process.argv[2]); require('nested')\n",
        "computed/parts/one.js": "require('of-parts/index')\n",
        "computed/node_modules/nested/index.js": "module.exports = (name) => require(path.join(name))\n",
        "computed/node_modules/nested/package.json": json.dumps({"optionalDependencies": {"of-nested": "1"}}),
        "computed/package.json": json.dumps({"dependencies": {"needed": "1"}}),
        "odd/package.json": json.dumps({"main": "build/none.js", "dependencies": {"own": "1"}}),
        "tap/package.json": json.dumps({"imports": {"#own": "of-imports"}, "dependencies": {"unused": "1"}}),
    }
    write(tmp_path / "real", files)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    drop_unloaded(tmp_path / "link", "tap", [])
    left = {path.name for path in (tmp_path / "real").iterdir()}
    assert left == {name.partition("/")[0] for name in files} - {"unused"}
    assert (tmp_path / "real/tap/node_modules/bundled").is_dir()


def test_names_that_are_too_long_for_a_file_are_those_of_no_file(tmp_path: Path) -> None:
    files = {
        "tap/index.js": f"require('{'x' * 300}'); require('./{'é' * 190}'); require('odd')\n",
        "odd/package.json": json.dumps({"main": "y" * 5000, "dependencies": {"z" * 300: "1"}}),
        "unused/index.js": "",
    }
    drop_unloaded(write(tmp_path, files), "tap", [])
    assert {path.name for path in tmp_path.iterdir()} == {"tap", "odd"}


def test_if_the_entry_of_a_runner_is_not_found_nothing_is_deleted(tmp_path: Path) -> None:
    write(tmp_path, {"tap/package.json": '{"main": "none.js"}', "other/index.js": ""})
    drop_unloaded(tmp_path, "tap", [])
    assert {path.name for path in tmp_path.iterdir()} == {"tap", "other"}
    assert toolchain._is_required(tmp_path, "tap", "other")


def test_if_a_runner_loads_too_much_to_follow_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("excise.envs.javascript.loaded_packages.MAX_FILES", 1)
    write(
        tmp_path, {"tap/index.js": "require('a')\n", "a/index.js": "require('b')\n", "b/index.js": "", "c/index.js": ""}
    )
    drop_unloaded(tmp_path, "tap", [])
    assert {path.name for path in tmp_path.iterdir()} == {"tap", "a", "b", "c"}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("~0.7.1", "^14.11.0"), ("^16.0.0", "^16.0.0"), ("*", "*"), (">=5", ">=5"), (">=5 <10", "^14.11.0"),
     ("<10.0.0", "^14.11.0"), ("<=10", "<=10"), ("^5 || ^16", "^5 || ^16"), ("5 - 9", "^14.11.0"),
     ("5 - 12", "5 - 12"), ("5.x || 6.x", "^14.11.0"), ("latest", "latest")],
)  # fmt: skip
def test_a_tap_that_cannot_be_followed_is_replaced_by_a_later_one(tmp_path: Path, wanted: str, found: str) -> None:
    manifest = json.dumps({"name": "p", "devDependencies": {"tap": wanted}})
    files = {"package.json": manifest, "test/a.js": "const t = require('tap')\nt.test('a', t => t.end())\n"}
    assert read_project(write(tmp_path, files)).packages == {"tap": found}


@pytest.mark.parametrize(("version", "found"), [("5.8.0", "^14.11.0"), ("16.3.0", "16.3.0")])
def test_a_locked_tap_that_cannot_be_followed_is_replaced_too(tmp_path: Path, version: str, found: str) -> None:
    files = {
        "package.json": json.dumps({"name": "p", "devDependencies": {"tap": ">=5"}}),
        "package-lock.json": json.dumps({"packages": {"node_modules/tap": {"version": version}}}),
        "test/a.js": "const t = require('tap')\nt.test('a', t => t.end())\n",
    }
    assert read_project(write(tmp_path, files)).packages == {"tap": found}


def test_files_of_tap_that_only_assert_are_tests(tmp_path: Path) -> None:
    files = {
        "package.json": '{"name": "p", "devDependencies": {"tap": "^16.0.0"}}',
        "test/a.js": "const t = require('tap')\n\nt.same(require('..')(), 1)\n",
        "test/b.mjs": "import t from 'tap'\n\nt.same(1, 1)\n",
        "test/c.js": "const t = require('tap')\n\nmodule.exports = t\n",
    }
    assert set(read_project(write(tmp_path, files)).tests) == {"test/a.js", "test/b.mjs"}
