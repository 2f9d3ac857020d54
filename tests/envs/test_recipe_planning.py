"""Recipes planned for small projects; the interpreters are fixed, so that results are equal on every machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.envs.interpreters import Interpreter, choose, find_interpreters, fits
from excise.envs.manifests.manifest import Manifest
from excise.envs.manifests.read_manifest import read_manifest
from excise.envs.plan.plan_recipe import plan_recipe
from excise.envs.plan.project_layout import find_layout
from excise.envs.plan.pytest_options import safe_addopts
from excise.errors import EnvironmentFailure
from excise.types import Recipe, Repo, SourceSpec

PRESENT = tuple(
    Interpreter(version=v, executable=Path(f"/x/{v}/bin/python"), prefix=Path(f"/x/{v}"))
    for v in ("3.8.18", "3.9.18", "3.10.13", "3.11.7", "3.12.1", "3.13.0", "3.14.0")
)
TEST = {"tests/test_kit.py": "import kit\ndef test_it(): pass\n", "kit/__init__.py": ""}


def make(root: Path, files: dict[str, str], created_at: str = "", **spec: object) -> Recipe:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    repo = Repo(repo="kit", base_commit="0" * 40, tree="0" * 40, source="dir:kit", created_at=created_at)
    return plan_recipe(root, repo, SourceSpec(spec="dir:kit", **spec), PRESENT, created_at)  # type: ignore[arg-type]


def pyproject(text: str, head: str = "") -> dict[str, str]:
    return {"pyproject.toml": f'[project]\nname = "kit"\n{head}\n{text}', **TEST}


@pytest.mark.parametrize(
    ("head", "created_at", "version"),
    [
        ("", "", "3.13.0"),
        ('requires-python = ">=3.8,<3.12"', "", "3.11.7"),
        ('requires-python = ">=3.14"', "", "3.14.0"),
        ('classifiers = ["Programming Language :: Python :: 3.10"]', "", "3.10.13"),
        ('classifiers = ["Programming Language :: Python :: 3.5"]', "", "3.13.0"),
        ("", "2021-05-16T00:00:00Z", "3.10.13"),
        ("", "2014-05-16T00:00:00Z", "3.8.18"),
        ('requires-python = ">= nonsense"', "", "3.13.0"),
    ],
)
def test_interpreter(tmp_path: Path, head: str, created_at: str, version: str) -> None:
    assert make(tmp_path, pyproject("", head), created_at).python == version


def test_the_sources_file_decides(tmp_path: Path) -> None:
    files = pyproject('[dependency-groups]\ntest = ["pytest<8", "mock"]')
    recipe = make(tmp_path, files, python="3.9", requirements=("pytest==7.4",), extras=("fast",), test_args=("-k", "x"))
    assert recipe.python == "3.9.18"
    assert recipe.requirements == ("pytest==7.4", "mock")
    assert recipe.extras == ("fast",)
    assert recipe.test_args[-2:] == ("-k", "x")


def test_a_missing_interpreter_lists_the_existing_ones(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"3\.8\.18.*uv python install") as caught:
        make(tmp_path, pyproject("", 'requires-python = ">=3.15"'))
    assert caught.value.reason == "python_unavailable"


def test_no_tests(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure) as caught:
        make(tmp_path, {"kit/__init__.py": "", "setup.py": ""})
    assert caught.value.reason == "no_tests"


def test_tools_are_left_out_unless_tests_import_them(tmp_path: Path) -> None:
    files = pyproject('[dependency-groups]\ntest = ["ruff", "mypy", "pytest-cov", "coverage", "pytest", "hypothesis"]')
    files["tests/test_mypy.py"] = "import mypy.api\ndef test(): pass\n"
    assert make(tmp_path, files).requirements == ("mypy", "pytest", "hypothesis")


def test_what_tests_use_is_added(tmp_path: Path) -> None:
    files = pyproject("", 'dependencies = ["attrs"]')
    files["tests/test_more.py"] = (
        "import yaml, attr, six, os, kit, helper, strange_local_thing\nfrom dateutil import tz\n"
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"
        "import pytest\npandas = pytest.importorskip('pandas')\n"
        "@pytest.mark.asyncio\nasync def test_a(mocker, own): pass\n"
    )
    files["tests/conftest.py"] = (
        "import pytest\n@pytest.fixture\ndef own(): pass\n@pytest.fixture\ndef settings(): pass\n"
    )
    files["tests/helper.py"] = "import scipy\n"
    recipe = make(tmp_path, files)
    assert recipe.requirements == ("pytest", "pytest-asyncio", "pytest-mock", "python-dateutil", "six", "PyYAML")


def test_pins_of_other_interpreters_and_markers_do_not_mix(tmp_path: Path) -> None:
    files = pyproject(
        """[dependency-groups]\ndev = ["pytest<8 ; python_version < '3.9'", "pytest>=8 ; python_version >= '3.9'"]"""
    )
    assert make(tmp_path, files).requirements == ("pytest>=8 ; python_version >= '3.9'",)


def test_extras_that_name_each_other(tmp_path: Path) -> None:
    files = pyproject('[project.optional-dependencies]\ntest = ["pytest", "kit[all]"]\nall = ["six", "kit[test]"]')
    recipe = make(tmp_path, files)
    assert recipe.requirements == ("pytest", "six")
    assert recipe.extras == ()


@pytest.mark.parametrize(
    ("files", "roots", "packages", "paths"),
    [
        ({"src/kit/__init__.py": "", "tests/test_a.py": ""}, ("src",), ("kit",), ("tests",)),
        ({"kit/__init__.py": "", "kit/tests/test_a.py": "", "docs/x.py": ""}, (".",), ("kit",), ("kit",)),
        ({"kit.py": "", "test_kit.py": "", "setup.py": ""}, (".",), ("kit",), ("test_kit.py",)),
        ({"src/ns/kit/__init__.py": "", "test/test_a.py": ""}, ("src",), ("ns.kit",), ("test",)),
        ({"other/__init__.py": "", "examples/__init__.py": "", "tests/test_a.py": ""}, (".",), ("other",), ("tests",)),
        ({"kit/__init__.py": "", "test/testodd.py": "def test_a(): pass\n"}, (".",), ("kit",), ("test/testodd.py",)),
        ({"kit.py": "", "tests.py": "def test_a(): pass\n"}, (".",), ("kit",), ("tests.py",)),
    ],
    ids=["src", "inside", "module", "namespace", "other-name", "odd-names", "odd-place"],
)
def test_layouts(
    tmp_path: Path, files: dict[str, str], roots: tuple[str, ...], packages: tuple[str, ...], paths: tuple[str, ...]
) -> None:
    recipe = make(tmp_path, {"pyproject.toml": '[project]\nname = "kit"\n', **files})
    assert (recipe.roots, recipe.packages, recipe.test_paths) == (roots, packages, paths)


def test_a_project_may_be_called_like_a_folder_of_tools(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "packaging"\n',
        "src/packaging/__init__.py": "",
        "src/docs/__init__.py": "",
    }
    assert make(tmp_path, {**files, "tests/test_a.py": ""}).packages == ("packaging",)


def test_cutoff_is_not_older_than_what_the_interpreter_needs(tmp_path: Path) -> None:
    assert make(tmp_path, pyproject(""), "2026-01-02T03:04:05Z").cutoff == "2026-03-31T00:00:00Z"
    assert make(tmp_path, pyproject(""), "2014-01-01T00:00:00Z").cutoff == "2022-09-01T00:00:00Z"
    assert make(tmp_path, pyproject(""), "").cutoff == ""


def test_strict_projects_tolerate_absent_plugins(tmp_path: Path) -> None:
    text = '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\nstrict_markers = true\nsome_plugin = 1\n'
    assert make(tmp_path, pyproject(text)).test_args == (
        *("-o", "strict_markers=false"),
        *("-W", "ignore::pytest.PytestConfigWarning"),
    )


def test_planning_is_deterministic(tmp_path: Path) -> None:
    files = pyproject('[dependency-groups]\ntest = ["pytest", "mock"]\nci = ["six"]\ndev = ["attrs"]')
    assert make(tmp_path, files) == make(tmp_path, files)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("--cov=x --cov-report term -n auto -x -ra -vv --tb=short --maxfail 1 --color=yes --durations=3", ""),
        (
            "--doctest-modules --doctest-glob=*.rst --import-mode=importlib",
            "--doctest-modules --doctest-glob=*.rst --import-mode=importlib",
        ),
        ("-m slow -k not_this -mfast --ignore=x --ignore y", "-m slow -k not_this -m fast --ignore=x --ignore=y"),
        ("-p no:warnings -p xdist -p pytest_cov -p my.plugin", "-p no:warnings -p my.plugin"),
        (
            "-o junit_family=x -o python_files=t_*.py --strict-markers --strict-config --strict",
            "-o python_files=t_*.py",
        ),
        ("tests --lf --junitxml out.xml -W error", "-W error"),
        (
            "-m=slow -k=not_this -W=error -p=my.plugin -o=asyncio_mode=auto",
            "-m slow -k not_this -W error -p my.plugin -o asyncio_mode=auto",
        ),
    ],
)
def test_addopts(given: str, kept: str) -> None:
    assert safe_addopts(given.split()) == tuple(kept.split())


def test_interpreters_of_this_machine() -> None:
    found = find_interpreters()
    assert found
    for interpreter in found:
        assert interpreter.executable.is_file()
        assert interpreter.executable == interpreter.executable.resolve()
        assert not (interpreter.prefix / "pyvenv.cfg").exists()
        assert "shims" not in interpreter.executable.parts
    assert choose(found[-1].version) == found[-1]


@pytest.mark.parametrize(
    ("requirement", "version", "expected"),
    [("3.1", "3.10.1", False), ("3.11", "3.11.7", True), (">=3.9,<3.12", "3.12.0", False), ("", "3.12.0", True)],
)
def test_fits(requirement: str, version: str, expected: bool) -> None:
    assert fits(requirement, version) is expected


@pytest.mark.parametrize(
    ("init", "packages"),
    [
        ("__import__('pkg_resources').declare_namespace(__name__)\n", ("zope.kit",)),
        ("__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n", ("zope.kit",)),
        (None, ("zope.kit",)),
        ("x = 1\n", ("zope",)),
    ],
)
def test_a_namespace_is_shared_so_the_packages_in_it_count(tmp_path: Path, init: str | None, packages: object) -> None:
    (tmp_path / "src/zope/kit").mkdir(parents=True)
    (tmp_path / "src/zope/kit/__init__.py").write_text("")
    if init is not None:
        (tmp_path / "src/zope/__init__.py").write_text(init)
    manifest = Manifest(name="zope.kit", source_roots=("src",), packages=("zope",))
    assert find_layout(tmp_path, manifest) == (("src",), packages)


def test_a_distribution_of_compiled_modules_alone_has_their_names(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(
        "from setuptools import *\nm = Extension('fast', ['a.c'])\nsetup(ext_modules=[m])\n"
    )
    assert find_layout(tmp_path, read_manifest(tmp_path)) == ((".",), ("fast",))


@pytest.mark.parametrize("told", [".", "./", "/", "", "/etc", "..", "tests/../..", "a**b", "tests .", "nothing*"])
def test_invalid_testpaths_are_ignored(tmp_path: Path, told: str) -> None:
    recipe = make(tmp_path, pyproject(f'[tool.pytest.ini_options]\ntestpaths = ["{told}"]'))
    assert recipe.test_paths == ("tests",)


def test_paths_may_be_patterns_from_the_root(tmp_path: Path) -> None:
    text = '[tool.pytest.ini_options]\ntestpaths = ["./t*s/", "..", "/etc"]'
    assert make(tmp_path, pyproject(text)).test_paths == ("tests",)


def test_of_distributions_with_the_same_modules_one_is_installed(tmp_path: Path) -> None:
    wanted = '["pytest", "polars-lts-cpu", "psycopg2-binary", "psycopg2>=2", "psycopg", "psycopg-binary"]'
    group = f'dependencies = ["polars"]\n[dependency-groups]\ntest = {wanted}'
    expected = ("pytest", "psycopg2-binary", "psycopg", "psycopg-binary")
    assert make(tmp_path, pyproject(group)).requirements == expected


def test_an_invalid_marker_is_ignored(tmp_path: Path) -> None:
    group = """[dependency-groups]\ntest = ["pytest", "mock; os_name ~= 'posix'", "attrs; os_name == 'posix'"]"""
    assert make(tmp_path, pyproject(group)).requirements == ("pytest", "attrs; os_name == 'posix'")
