"""Readers of CI files, lock files, nox, hatch, Pipfile and conda."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.envs.interpreters import find_interpreters
from excise.envs.manifests.manifest import Manifest
from excise.envs.manifests.pytest_calls import pytest_commands
from excise.envs.manifests.read_manifest import read_manifest
from excise.envs.plan.plan_recipe import plan_recipe
from excise.envs.plan.pytest_command import common_pytest_command
from excise.types import Recipe, Repo, SourceSpec


def manifest(root: Path, files: dict[str, str]) -> Manifest:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return read_manifest(root)


def recipe(root: Path, files: dict[str, str]) -> Recipe:
    manifest(root, {"kit/__init__.py": "", "tests/test_kit.py": "import kit\ndef test_it(): pass\n", **files})
    repo = Repo(repo="kit", base_commit="", tree="", source="dir:kit")
    return plan_recipe(root, repo, SourceSpec(spec="dir:kit"), find_interpreters(), "")


CI = {
    "github": (
        ".github/workflows/ci.yml",
        """
        jobs:
          test:
            strategy:
              matrix:
                python-version: [3.9, "3.10", 3.11, pypy-3.10]
            steps:
              - uses: awalsh128/cache-apt-pkgs-action@v1
                with: {packages: libpq-dev}
              - run: |
                  sudo apt-get update && sudo apt-get install -y --no-install-recommends libxml2-dev
                  pip install six -r req.txt
                  wget https://example.org/built.whl && pip install setuptools-28.8.0-py2.py3-none-any.whl old-1.tar.gz
                  python -m pytest -m "not slow" tests
          lint: {steps: [{run: pip install ruff pytest}]}
        """,
    ),
    "gitlab": (
        ".gitlab-ci.yml",
        """
        image: python:3.9
        before_script: [apt-get install -y libpq-dev libxml2-dev]
        .hidden: &x {tags: [a]}
        py310:
          image: python:3.10-slim
          script: [pip install six -r req.txt, 'pytest -m "not slow" tests']
        py311:
          image: python:3.11
          script: [!reference [.hidden, script], pytest -m "not slow" tests]
        pages: {script: [pip install mkdocs]}
        """,
    ),
    "travis": (
        ".travis.yml",
        """
        language: python
        python: [3.9, 3.10, 3.11, pypy3]
        addons: {apt: {packages: [libpq-dev, libxml2-dev]}}
        install: pip install six -r req.txt
        script: py.test -m "not slow" tests
        """,
    ),
    "circle": (
        ".circleci/config.yml",
        """
        version: 2.1
        jobs:
          unit:
            docker: [{image: "cimg/python:3.9"}]
            steps:
              - run: {name: x, command: "sudo apt-get install libpq-dev libxml2-dev; pip install six -r req.txt"}
              - run: python -m pytest -m "not slow" tests
        workflows:
          all: {jobs: [{unit: {matrix: {parameters: {python: ["3.10", "3.11"]}}}}]}
        """,
    ),
    "azure": (
        "azure-pipelines.yml",
        """
        strategy:
          matrix:
            a: {python.version: '3.9'}
            b: {python.version: '3.10'}
            c: {python.version: '3.11'}
        steps:
          - task: UsePythonVersion@0
            inputs: {versionSpec: $(python.version)}
          - script: sudo apt-get install -y libpq-dev libxml2-dev && pip install six -r req.txt
          - bash: pytest -m "not slow" tests
        """,
    ),
}


@pytest.mark.parametrize("system", CI)
def test_every_ci_system_is_read(tmp_path: Path, system: str) -> None:
    name, text = CI[system]
    found = manifest(tmp_path, {name: text, "req.txt": "attrs>=20\n", "tests/x.py": ""})
    assert set(found.tested_pythons) == {"3.9", "3.10", "3.11"}
    assert set(found.system_packages) >= {"libpq-dev", "libxml2-dev"}
    assert set(found.test_requirements) == {"six", "attrs>=20"}
    assert set(found.test_commands) == {("-m", "not slow", "tests")}


@pytest.mark.parametrize(
    "text", ["jobs: [", "- x", "jobs: {a: {steps: [{run: }]}}", "a: *b", "x: !!python/object:os.x {}"]
)
def test_broken_automation_declares_nothing(tmp_path: Path, text: str) -> None:
    for name in (".github/workflows/a.yml", ".gitlab-ci.yml", ".travis.yml", ".circleci/config.yml"):
        assert manifest(tmp_path, {name: text}).test_commands == ()


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        ("pytest -x tests && echo done", [("-x", "tests")]),
        ("coverage run --source=kit -m pytest tests -q", [("tests", "-q")]),
        ("python3 -m pytest --cov=kit ${{ matrix.args }} tests", [("--cov=kit", "tests")]),
        ("    pytest {posargs:tests} -k 'a and b'", [("-k", "a and b")]),
        ("pip install pytest pytest-cov", []),
        ("poetry run pytest; tox", [()]),
        ("pip install -e . && pytest -m 'not slow' > log 2>&1", [("-m", "not slow")]),
        ("bash -c 'cd kit && pytest tests -q' | tee log", [("tests", "-q")]),
        ("pytest $OPTIONS tests/*.py -k 'a*' \"$(ls)\"", [("-k", "a*")]),
        ("if ! FOO=1 sudo pytest -x; then\n  cat <<EOF\npytest failed\nEOF\nfi", [("-x",)]),
        ("pytest \\\n  -x \\\n  tests # all of them", [("-x", "tests")]),
    ],
)
def test_calls_of_pytest(script: str, calls: list[tuple[str, ...]]) -> None:
    assert list(pytest_commands(script)) == calls


@pytest.mark.parametrize(
    ("calls", "arguments", "paths"),
    [
        ([("-m", "not slow", "tests")], ("-m", "not slow"), ("tests",)),
        ([("-m", "a", "tests/unit"), ("-m", "b", "tests/more")], (), ("tests/unit", "tests/more")),
        ([("-v", "tests/unit"), ("--cov", "kit")], (), ()),
        ([("--cov", "kit", "tests/unit")], (), ("tests/unit",)),
        ([("-c", "setup.cfg", "-W", "error", "-n", "4", "nowhere", "../x", "/etc")], (), ()),
        ([("--doctest-modules", "-ra", "kit.py", "tests/unit/test_a.py::test_x")], ("--doctest-modules",),
         ("kit.py", "tests/unit/test_a.py")),
        ([("tests/unit", ".")], (), ()),
    ],
)  # fmt: skip
def test_options_that_all_calls_share(
    tmp_path: Path, calls: list[tuple[str, ...]], arguments: object, paths: object
) -> None:
    for name in ("kit/__init__.py", "kit.py", "setup.cfg", "tests/unit/test_a.py", "tests/more/test_b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = common_pytest_command(tmp_path, Manifest(test_commands=tuple(calls)))
    assert (found.arguments, found.paths) == (arguments, paths)


def test_the_command_of_the_automation_decides_what_is_run(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "kit"\n[tool.pytest.ini_options]\ntestpaths = ["tests", "more"]\n',
        "more/test_b.py": "def test_b(): pass\n",
        "tox.ini": "[testenv]\ncommands = pytest -m 'not slow' tests {posargs}\n",
    }
    found = recipe(tmp_path, files)
    assert (found.test_paths, found.test_args) == (("tests",), ("-m", "not slow"))


UV = '[[package]]\nname = "{}"\nversion = "{}"\nsource = {{ {} }}\n'
LOCKS = {
    "uv.lock": UV.format("Six", "1.16.0", 'registry = "https://i.invalid"') + UV.format("kit", "1", 'editable = "."')
    + UV.format("two", "1.0", 'registry = "x"') + UV.format("two", "2.0", 'registry = "x"'),
    "poetry.lock": '[[package]]\nname = "six"\nversion = "1.16.0"\n[package.source]\ntype = "legacy"\n'
    '[[package]]\nname = "kit"\nversion = "1"\n[package.source]\ntype = "git"\nurl = "x"\n',
    "pdm.lock": '[[package]]\nname = "six"\nversion = "1.16.0"\n[[package]]\nname = "kit"\nversion = "1"\npath = "."\n',
    "pylock.toml": '[[packages]]\nname = "six"\nversion = "1.16.0"\n[[packages]]\nname = "kit"\nvcs = {type = "git"}\n',
    "Pipfile.lock": json.dumps({"default": {"six": {"version": "==1.16.0"}}, "develop": {"kit": {"git": "x"}}}),
}  # fmt: skip


@pytest.mark.parametrize("name", LOCKS)
def test_lock_files_give_versions(tmp_path: Path, name: str) -> None:
    pyproject = '[project]\nname = "kit"\ndependencies = ["six"]\n'
    found = recipe(tmp_path, {name: LOCKS[name], "pyproject.toml": pyproject})
    assert found.constraints == ("six==1.16.0",)
    assert any(line.startswith(f"{name}: versions of 1 ") for line in found.evidence)


@pytest.mark.parametrize("name", LOCKS)
def test_a_broken_lock_file_gives_none(tmp_path: Path, name: str) -> None:
    assert manifest(tmp_path, {name: "{[["}).locked == {}


def test_nox_sessions(tmp_path: Path) -> None:
    text = """
import nox

@nox.session(python=["3.9", "3.12"])
def tests(session):
    session.run_install("uv", "sync", "--group", "check", "--extra=fast", external=True)
    session.install("-e", ".[more]", "six>=1")
    session.run("pytest", "-k", "quick", "tests", *session.posargs)

@nox.session
def lint(session):
    session.install("ruff")
"""
    found = manifest(tmp_path, {"noxfile.py": text, "tests/test_a.py": ""})
    assert found.tested_pythons == ("3.9", "3.12")
    assert found.test_requirements == ("six>=1",)
    assert set(found.test_extras) == {"more", "fast"}
    assert found.test_groups == ("check",)
    assert found.test_commands == (("-k", "quick", "tests"),)


def test_hatch(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "kit"\n[project.optional-dependencies]\nfast = ["six"]\n',
        "hatch.toml": '[envs.hatch-test]\nextra-dependencies = ["mock"]\nfeatures = ["fast"]\n',
    }
    found = recipe(tmp_path, files)
    assert set(found.requirements) == {"mock", "six", "pytest"}


def test_pipfile(tmp_path: Path) -> None:
    text = '[packages]\nattrs = "*"\n[dev-packages]\nmock = ">=3"\npytest = "*"\n[requires]\npython_version = "3.11"\n'
    found = recipe(tmp_path, {"Pipfile": text})
    assert found.requirements == ("mock>=3", "pytest")
    assert found.python.startswith("3.11")


def test_conda_files_give_hints_only(tmp_path: Path) -> None:
    text = "dependencies:\n- python=3.11\n- strange-thing\n- libpng\n- conda-forge::numpy>=1\n- pip: [mock]\n"
    files = {"environment.yml": text, "tests/test_kit.py": "import kit, strange_thing\ndef test_it(): pass\n"}
    found = recipe(tmp_path, files)
    assert found.requirements == ("pytest", "strange-thing")
    assert found.python.startswith("3.11")
