"""Versions of packages by a JavaScript project's own lock file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.envs.javascript.lock_files import locked_versions
from excise.envs.javascript.package_manifest import read_project

WANTED = {"mocha": "^10.0.0", "@scope/assert": "~1.2", "own": "*"}
FOUND = {"mocha": "10.2.0", "@scope/assert": "1.2.9"}
NPM_7 = {
    "lockfileVersion": 3,
    "packages": {
        "": {"name": "p"},
        "node_modules/mocha": {"version": "10.2.0", "integrity": "sha512-x"},
        "node_modules/own": {"resolved": "packages/own", "link": True},
        "node_modules/@scope/assert": {"version": "1.2.9"},
        "node_modules/other/node_modules/mocha": {"version": "5.0.0"},
    },
}
NPM_6 = {
    "lockfileVersion": 1,
    "dependencies": {
        "mocha": {"version": "10.2.0", "requires": {"own": "1"}},
        "@scope/assert": {"version": "1.2.9"},
        "own": {"version": "git+ssh://git@host/own.git#0123456"},
    },
}
PNPM_9 = """\
lockfileVersion: '9.0'
importers:
  .:
    devDependencies:
      mocha:
        specifier: ^10.0.0
        version: 10.2.0(supports-color@8.1.1)
      '@scope/assert':
        specifier: ~1.2
        version: 1.2.9
    dependencies:
      own:
        specifier: workspace:*
        version: link:packages/own
  packages/own:
    devDependencies:
      mocha:
        specifier: ^5.0.0
        version: 5.0.0
"""
PNPM_5 = """\
lockfileVersion: 5.4
specifiers:
  mocha: ^10.0.0
devDependencies:
  mocha: 10.2.0_supports-color@8.1.1
  '@scope/assert': 1.2.9
"""
YARN_1 = """\
# yarn lockfile v1


"@scope/assert@~1.2":
  version "1.2.9"
  integrity sha512-x

mocha@^5.0.0:
  version "5.0.0"

mocha@^10.0.0, mocha@^10.1.0:
  version "10.2.0"
  dependencies:
    own "*"
"""
YARN_4 = """\
__metadata:
  version: 8

"@scope/assert@npm:~1.2":
  version: 1.2.9
  resolution: "@scope/assert@npm:1.2.9"

"mocha@npm:^10.0.0, mocha@npm:^10.1.0":
  version: 10.2.0
  dependencies:
    own: "npm:*"
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package-lock.json", json.dumps(NPM_7)), ("npm-shrinkwrap.json", json.dumps(NPM_6)),
        ("pnpm-lock.yaml", PNPM_9), ("pnpm-lock.yaml", PNPM_5), ("yarn.lock", YARN_1), ("yarn.lock", YARN_4),
    ],
)  # fmt: skip
def test_direct_packages_have_the_versions_of_the_lock_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert locked_versions(tmp_path, WANTED) == (FOUND, name)


@pytest.mark.parametrize("text", ["", "[]", "{", "a: [", '{"packages": []}', '{"packages": {"node_modules/mocha": 3}}'])
@pytest.mark.parametrize("name", ["package-lock.json", "pnpm-lock.yaml", "yarn.lock"])
def test_a_lock_file_that_cannot_be_read_says_nothing(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert locked_versions(tmp_path, WANTED)[0] == {}


def test_a_plan_prefers_the_versions_of_the_lock_file(tmp_path: Path) -> None:
    manifest = {"name": "p", "scripts": {"test": "mocha"}, "devDependencies": {"mocha": "^10.0.0", "chai": "^4"}}
    (tmp_path / "package.json").write_text(json.dumps(manifest))
    (tmp_path / "package-lock.json").write_text(json.dumps(NPM_7))
    (tmp_path / "test").mkdir()
    (tmp_path / "test/a.js").write_text("require('chai'); it('runs', () => {})")
    project = read_project(tmp_path)
    assert project.packages == {"chai": "^4", "mocha": "10.2.0"}
    assert "package-lock.json: mocha@10.2.0" in project.evidence
