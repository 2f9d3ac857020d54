"""Readers of manifests of many kinds, on real files."""

from __future__ import annotations

import textwrap
import tomllib
from pathlib import Path

import pytest

from excise.envs.manifests.manifest import Manifest
from excise.envs.manifests.pyproject import poetry_specifier, static_metadata
from excise.envs.manifests.read_manifest import read_manifest


def manifest(root: Path, **files: str) -> Manifest:
    """Write files (``__`` in a name is ``/``, ``_dot_`` is ``.``) and read them."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return read_manifest(root)


def test_pep_621_and_735(tmp_path: Path) -> None:
    found = manifest(
        tmp_path,
        pyproject_dot_toml="""
            [project]
            name = "kit"
            requires-python = ">=3.9"
            dependencies = ["click>=8"]
            classifiers = ["Programming Language :: Python :: 3.11"]
            [project.optional-dependencies]
            test = ["pytest", "kit[yaml]"]
            yaml = ["pyyaml"]
            [dependency-groups]
            base = ["hypothesis"]
            Tests = [{include-group = "base"}, "pytest>=7", {include-group = "tests"}]
            [build-system]
            build-backend = "hatchling.build"
            [tool.hatch.build.targets.wheel]
            packages = ["src/kit"]
            """,
    )
    assert found.name == "kit"
    assert found.requires_python == ">=3.9"
    assert found.dependencies == ("click>=8",)
    assert found.extras["test"] == ("pytest", "kit[yaml]")
    assert found.groups["Tests"] == ("hypothesis", "pytest>=7")
    assert found.source_roots == ("src",)
    assert found.packages == ("kit",)
    assert found.build_backend == "hatchling.build"


def test_poetry(tmp_path: Path) -> None:
    found = manifest(
        tmp_path,
        pyproject_dot_toml="""
            [tool.poetry]
            name = "kit"
            packages = [{include = "kit", from = "lib"}]
            [tool.poetry.dependencies]
            python = "^3.8"
            requests = "^2.1"
            redis = {version = "~4.2", optional = true, extras = ["hiredis"]}
            local = {path = "../x"}
            [tool.poetry.extras]
            cache = ["redis"]
            [tool.poetry.group.test.dependencies]
            pytest = "*"
            """,
    )
    assert found.requires_python == ">=3.8,<4"
    assert found.dependencies == ("requests>=2.1,<3",)
    assert found.extras == {"cache": ("redis[hiredis]>=4.2,<4.3",)}
    assert found.groups == {"test": ("pytest",)}
    assert (found.source_roots, found.packages) == (("lib",), ("kit",))


@pytest.mark.parametrize(
    ("constraint", "specifier"),
    [
        *(("^1.2.3", ">=1.2.3,<2"), ("^0.2.3", ">=0.2.3,<0.3"), ("~1.2", ">=1.2,<1.3"), ("~1", ">=1,<2")),
        *(("*", ""), (">=1,<3", ">=1,<3"), ("1.2", "==1.2"), ("^0.0.3", ">=0.0.3,<0.0.4")),
    ],
)
def test_poetry_constraints(constraint: str, specifier: str) -> None:
    assert poetry_specifier(constraint) == specifier


def test_setup_py_is_read_not_run(tmp_path: Path) -> None:
    found = manifest(
        tmp_path,
        setup_dot_py=f"""
            import os, sys
            open({str(tmp_path / "ran")!r}, "w").close()
            from setuptools import setup, find_packages, Extension
            tests = ["pytest", "mock"]
            with open("requirements.txt") as f:
                needs = f.read().splitlines()
            extra = dict(extras_require={{"test": tests + ["six"], ":python_version<'3'": ["enum34"]}})
            setup(name="kit", install_requires=read("requirements.txt"), tests_require=tests, python_requires=">=3.8",
                  package_dir={{"": "src"}}, packages=find_packages("src"), ext_modules=[Extension("kit.c", ["c.c"])],
                  extras_require={{"test": tests + ["six"], ":python_version<'3'": ["enum34"]}})
            """,
        requirements_dot_txt="click  # a comment\n-e .\n--hash=x\nattrs==22.1 --hash=sha256:00\n",
    )
    assert not (tmp_path / "ran").exists()
    assert found.dependencies == ("click", "attrs==22.1")
    assert found.tests_require == ("pytest", "mock")
    assert found.extras == {"test": ("pytest", "mock", "six")}
    assert found.source_roots == ("src",)
    assert found.has_extensions
    assert found.requires_python == ">=3.8"


def test_metadata_of_an_sdist(tmp_path: Path) -> None:
    found = manifest(
        tmp_path,
        PKGINFO="",
        **{
            "kit_dot_egg-info__PKG-INFO": """\
                Metadata-Version: 2.1
                Name: kit
                Requires-Python: >=3.7
                Requires-Dist: six
                Requires-Dist: pytest; extra == 'test'
                Requires-Dist: mock; python_version < '3.9' and extra == 'test'
                """,
            "kit_dot_egg-info__top_level_dot_txt": "kit\n_kit\n",
        },
    )
    assert found.dependencies == ("six",)
    assert found.extras == {"test": ("pytest", "mock ; python_version < '3.9'")}
    assert found.packages == ("kit", "_kit")


def test_tox(tmp_path: Path) -> None:
    found = manifest(
        tmp_path,
        tox_dot_ini="""
            [tox]
            envlist = py{38,310}-{a,b}, py3{11-12}, pypy3, lint
            [testenv]
            deps =
                -rtest-requirements.txt
                py38: six
                test: mock
                # a comment
                coverage
            extras = yaml
            setenv =
                KIT_MODE = fast
                COVERAGE_FILE = x
                CACHE = {envtmpdir}/x
            [testenv:lint]
            deps = flake8
            """,
        **{"test-requirements_dot_txt": "pytest>=6\n"},
    )
    assert found.tested_pythons == ("3.8", "3.10", "3.11", "3.12")
    assert found.test_requirements == ("pytest>=6", "mock", "coverage")
    assert found.test_extras == ("yaml",)
    assert found.test_env == (("KIT_MODE", "fast"),)


def test_workflows_dockerfile_and_nox(tmp_path: Path) -> None:
    found = manifest(
        tmp_path,
        _dot_github__workflows__ci_dot_yml="""
            on: push
            jobs:
              tests:
                strategy:
                  matrix:
                    python-version: ["3.9", "3.12", "pypy-3.10"]
                steps:
                  - run: |
                      sudo apt-get update && sudo apt-get install -y libxml2-dev zlib1g-dev
                      pip install -e ".[test]" \\
                        pytest-mock
                      pytest
              docs:
                steps:
                  - run: pip install sphinx && make test
            """,
        Dockerfile="FROM python:3.10-slim\nRUN apt-get install -y git\n",
        noxfile_dot_py="""
            import nox
            @nox.session(python=["3.13"])
            def tests(session):
                session.install("-r", "requirements-test.txt", "hypothesis")
            @nox.session
            def lint(session):
                session.install("ruff")
            """,
        **{"requirements-test_dot_txt": "pytest\n"},
    )
    assert set(found.tested_pythons) == {"3.9", "3.12", "3.10", "3.13"}
    assert found.system_packages == ("libxml2-dev", "zlib1g-dev", "git")
    assert set(found.test_requirements) == {"pytest-mock", "pytest", "hypothesis"}
    assert found.test_extras == ("test",)


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject_dot_toml": '[tool.pytest.ini_options]\naddopts = "-q --doctest-modules"\ntestpaths = ["t"]'},
        {"pyproject_dot_toml": '[tool.pytest]\naddopts = ["-q", "--doctest-modules"]\ntestpaths = ["t"]'},
        {"pytest_dot_ini": "[pytest]\naddopts = -q\n  --doctest-modules\ntestpaths = t"},
        {"setup_dot_cfg": "[tool:pytest]\naddopts = -q --doctest-modules\ntestpaths = t"},
        {"tox_dot_ini": "[pytest]\naddopts = -q --doctest-modules\ntestpaths =\n  t  # here\n"},
    ],
    ids=["ini_options", "native", "pytest.ini", "setup.cfg", "tox.ini"],
)
def test_pytest_configuration(tmp_path: Path, files: dict[str, str]) -> None:
    found = manifest(tmp_path, **files)
    assert found.addopts == ("-q", "--doctest-modules")
    assert found.testpaths == ("t",)


def test_an_option_that_stands_twice_in_addopts_stays_twice(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p no:logging -p no:warnings -W error -W ignore::UserWarning\n"
    )
    expected = ("-p", "no:logging", "-p", "no:warnings", "-W", "error", "-W", "ignore::UserWarning")
    assert read_manifest(tmp_path).addopts == expected


def test_requirement_files_about_tests(tmp_path: Path) -> None:
    found = manifest(
        tmp_path,
        **{
            "requirements__test_dot_txt": "-r base.txt\npytest\n",
            "requirements__base_dot_txt": "click\n",
            "requirements__docs_dot_txt": "sphinx\n",
            "dev-requirements_dot_txt": "git+https://host.invalid/x\nmock ; python_version >= '3'\n",
            "requirements_dot_txt": "flask\n",
        },
    )
    assert found.requirement_files == {
        "dev-requirements.txt": ("mock ; python_version >= '3'",),
        "requirements/test.txt": ("click", "pytest"),
    }


@pytest.mark.parametrize("name", ["pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini", "noxfile.py"])
def test_broken_files_declare_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xff[[[ = not : anything\n\t(((\x00")
    assert read_manifest(tmp_path).dependencies == ()


STATIC = """
[project]
name = "kit"
dynamic = ["version"]
requires-python = ">=3.9"
dependencies = ["attrs>=20; python_version < '4'", "tom\\"li"]
[project.optional-dependencies]
test = ["pytest", "kit[fast]"]
fast = []
"""


def test_requirements_that_pyproject_fixes_are_known_without_building(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(STATIC)
    project = tomllib.loads(static_metadata(tmp_path, "1.5"))["project"]
    assert project == {
        "name": "kit", "version": "1.5", "requires-python": ">=3.9",
        "dependencies": ["attrs>=20; python_version < '4'", 'tom"li'],
        "optional-dependencies": {"test": ["pytest", "kit[fast]"], "fast": []},
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[build-system]\nrequires = []\n",
        '[project]\nname = "kit"\ndynamic = ["dependencies"]\n',
        '[project]\nname = "kit"\ndynamic = ["optional-dependencies"]\n',
        '[project]\nname = "kit"\n[tool.uv.sources]\na = { path = "a" }\n',
        '[project]\nname = "kit"\n[tool.poetry.dependencies]\na = "^1"\n',
    ],
)
def test_requirements_that_may_come_from_elsewhere_are_not_fixed(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert static_metadata(tmp_path, "1.5") == ""
