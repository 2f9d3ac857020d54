"""Finds the requirements that tests need in addition to those of the project itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from excise.envs.manifests.manifest import Manifest
from excise.envs.plan.import_names import distribution_of, known_distribution
from excise.envs.plan.plugin_names import AMBIGUOUS_FIXTURES, AMBIGUOUS_MARKERS, CONFIG_KEYS, FIXTURES, MARKERS
from excise.envs.plan.scan_tests import TestUsage

_TOOLS = re.compile(
    r"""
    (flake8|pylint|mypy|pyright|basedpyright|pytype|pyre-check|ty|pyrefly|black|blacken-docs|isort|ruff|autopep8|yapf
    |autoflake|pyupgrade|flynt|bandit|safety|vulture|codespell|interrogate|docformatter|pydocstyle|pycodestyle|pyflakes
    |pep8|pep8-naming|doc8|darglint|pydoclint|radon|xenon|semgrep|yamllint|djlint|rstcheck|slotscheck|refurb|typos
    |types|sphinx|sphinxcontrib|furo|myst-parser|mkdocs|mkdocstrings|numpydoc|nbsphinx|pdoc|pdoc3|pallets-sphinx-themes
    |recommonmark|docutils-stubs|alabaster|griffe|towncrier|scriv|cogapp|restview|readme-renderer
    |tox|tox-uv|tox-gh|tox-gh-actions|tox-travis|nox|invoke|pre-commit|pre-commit-uv|gha-update|detox
    |coverage|pytest-cov|coveralls|codecov|diff-cover|covdefaults|coverage-conditional-plugin|nose-cov
    |twine|build|wheel|setuptools|bump2version|bumpversion|bump-my-version|zest-releaser|commitizen|python-semantic-release
    |check-manifest|check-wheel-contents|flit|flit-core|hatchling|hatch-vcs|poetry-core|poetry|hatch|pdm|pip|pip-tools|pip-compile-multi|uv|pipenv|cibuildwheel
    |auditwheel|setuptools-scm|pyroma|validate-pyproject|build-and-inspect-python-package|virtualenv|pip-audit
    |asv|pyperf|pytest-benchmark|pytest-codspeed|memory-profiler|line-profiler|snakeviz|py-spy|scalene
    |pytest-xdist|pytest-parallel|pytest-sugar|pytest-randomly|pytest-random-order|pytest-rerunfailures|pytest-instafail
    |pytest-clarity|pytest-icdiff|pytest-pretty|pytest-html|pytest-json-report|pytest-reportlog|pytest-profiling
    |pytest-mypy|pytest-mypy-plugins|pytest-flake8|pytest-black|pytest-ruff|pytest-pylint|pytest-isort|pytest-checkdocs
    |pytest-enabler|pytest-pycodestyle|pytest-pep8|pytest-flakes|pytest-watch|pytest-watcher|pytest-timeout
    |pytest-github-actions-annotate-failures|pytest-travis-fold|pytest-memray|pytest-insta|pytest-beartype
    |ipython|ipdb|ipykernel|jupyter|jupyterlab|notebook|nbstripout|pudb|pdbpp|bpython|ptpython|mutmut|cosmic-ray|atheris
    |jaraco-packaging|jaraco-tidelift|rst-linker|sphinx-lint)
    """,
    re.VERBOSE,
)
_TOOL_FAMILIES = ("flake8-", "types-", "sphinx-", "sphinxcontrib-", "mkdocs-", "pylint-", "mypy-", "mdformat")
_TEST = re.compile(r"(unit-?)?tests?|testing|tests?-(deps|base|core|requirements|all|extras?)|pytest")
_DEVELOP = re.compile(r"dev|develop|development|ci|all-dev|dev-dependencies")
_NOT_FOR_TESTS = re.compile(
    r"doc|lint|typ|mypy|bench|pre-?commit|release|publish|format|style|random|update|changelog|upload"
)

_SAME_MODULES = (
    frozenset({"polars", "polars-lts-cpu", "polars-u64-idx", "polars-rtcompat"}),
    frozenset({"psycopg2", "psycopg2-binary"}),
    frozenset({"tensorflow", "tensorflow-cpu"}),
    frozenset({"mysqlclient", "mysql-python"}),
)
"""Distributions with the same files: of two, neither may work."""


class RequirementSet:
    """Collects requirements by distribution; the first source that names a distribution determines its requirement."""

    def __init__(self, manifest: Manifest, usage: TestUsage, local: frozenset[str], python: str) -> None:
        self.manifest, self.usage, self.local = manifest, usage, local
        self.by_name: dict[str, str] = {}
        self.extras: list[str] = []
        self.evidence: list[str] = []
        self._expanded: set[str] = set()
        minor = ".".join(python.split(".")[:2])
        self._target = {"python_version": minor, "python_full_version": python, "implementation_version": python}
        self._project = canonicalize_name(manifest.name) if manifest.name else ""
        self._imported = {canonicalize_name(distribution_of(m)) for m in usage.imports if distribution_of(m)}
        self._required = {_name(text) for text in manifest.required_plugins}
        self._plugins = {canonicalize_name(name) for name in self._used_plugins()}

    def take(self, source: str, requirements: Iterable[str]) -> None:
        """Add requirements of a source, except linters and tools for coverage, documentation and releases."""
        new: list[str] = []
        for text in requirements:
            new += self._take_one(text)
        if new:
            self.evidence.append(f"{source}: {', '.join(new)}")

    def _take_one(self, text: str) -> Iterator[str]:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            return
        name = canonicalize_name(wanted.name)
        if name == self._project:
            for extra in sorted(wanted.extras):
                yield from self.take_extra(extra)
        elif not wanted.url and not self._is_there(name) and not self._is_tool(name) and self._applies(wanted):
            self.by_name[name] = text.strip()
            yield name

    def _is_there(self, name: str) -> bool:
        """Whether a distribution, or another one with the same modules, is among the requirements already."""
        own = {_name(text) for text in self.manifest.dependencies}
        others = next((group for group in _SAME_MODULES if name in group), frozenset({name})) - {name}
        return name in self.by_name or not others.isdisjoint({*self.by_name, *own})

    def take_extra(self, name: str) -> list[str]:
        """Add the requirements of an extra of the project; if they are unknown, the extra itself is installed."""
        known = {canonicalize_name(key): value for key, value in self.manifest.extras.items()}
        key = canonicalize_name(name)
        if key in self._expanded:  # extras may name each other
            return []
        self._expanded.add(key)
        if key not in known:
            self.extras += [] if self.manifest.extras else [name]
            return []
        return [new for text in known[key] for new in self._take_one(text)]

    def _applies(self, wanted: Requirement) -> bool:
        """Whether the requirement's marker holds for the chosen interpreter."""
        try:
            return wanted.marker is None or wanted.marker.evaluate({"extra": "", **self._target})
        except (UndefinedComparison, UndefinedEnvironmentName):  # an installer cannot evaluate it either
            return False

    def _is_tool(self, name: str) -> bool:
        if name in self._imported or name in self._plugins or name in self._required:
            return False
        return bool(_TOOLS.fullmatch(name)) or name.startswith(_TOOL_FAMILIES)

    def _used_plugins(self) -> Iterator[str]:
        named = " ".join(_everything_named(self.manifest)).lower()
        for fixture in sorted(self.usage.fixtures & FIXTURES.keys()):
            if fixture not in AMBIGUOUS_FIXTURES or FIXTURES[fixture].lower() in named:
                yield FIXTURES[fixture]
        for marker in sorted(self.usage.markers & MARKERS.keys()):
            if marker not in AMBIGUOUS_MARKERS or MARKERS[marker].lower() in named:
                yield MARKERS[marker]
        for key in self.manifest.pytest_keys:
            if key in CONFIG_KEYS:
                yield CONFIG_KEYS[key]

    def take_used_by_tests(self) -> None:
        """Add distributions that test files need and no requirement provides: of imports, plugins, pytest settings."""
        provided = set(self.by_name) | {_name(r) for r in self.manifest.dependencies} | {self._project}
        self.take("pytest configuration: required_plugins", self.manifest.required_plugins)
        for plugin in sorted(self._plugins - provided):
            self.take("tests use a fixture, a marker or a setting of", [plugin])
        named = {_name(text) for text in _everything_named(self.manifest)}
        for module in sorted(self.usage.imports):
            top = module.partition(".")[0]
            distribution = known_distribution(module)
            if not distribution and canonicalize_name(distribution_of(module)) in named:
                distribution = distribution_of(module)
            if distribution and top not in self.local and canonicalize_name(distribution) not in provided:
                self.take(f"tests import {module}", [distribution])
                provided.add(canonicalize_name(distribution))


def requirements_of_tests(manifest: Manifest, usage: TestUsage, local: frozenset[str], python: str) -> RequirementSet:
    """Find the requirements to install in addition to the project's own, for an interpreter version.

    Sources are read in this order: dependency groups and extras for tests, those for development, tox and CI,
    requirements files, ``tests_require``. The first source that names pytest is the last one read; then come the
    requirements of what ``usage`` shows. ``local`` are import names that the repository itself provides. pytest is
    always included.
    """
    found = RequirementSet(manifest, usage, local, python)
    for source, requirements in _sources(manifest, found):
        found.take(source, requirements)
        if "pytest" in found.by_name:
            break
    found.take("excise runs tests with", ["pytest"])
    found.take_used_by_tests()
    return found


def _sources(manifest: Manifest, found: RequirementSet) -> Iterator[tuple[str, Iterable[str]]]:
    """(source, requirements) in the order of :func:`requirements_of_tests`; extras without a list go to ``found``."""
    groups = {canonicalize_name(name): value for name, value in manifest.groups.items()}
    extras = {canonicalize_name(name) for name in manifest.extras}
    declared = (*manifest.test_groups, *manifest.test_extras)
    named = [canonicalize_name(name) for name in declared if not _NOT_FOR_TESTS.search(name.lower())]
    chosen = [n for n in (*groups, *extras) if _TEST.fullmatch(n)] + [n for n in named if n in groups or n in extras]
    for name in dict.fromkeys(sorted(chosen, key=lambda n: (not _TEST.fullmatch(n), n))):
        if name in groups:
            yield f"group {name}", groups[name]
        if name in extras:
            yield f"extra {name}", [f"{manifest.name}[{name}]"]
    for extra in manifest.test_extras:
        if canonicalize_name(extra) not in extras and not _NOT_FOR_TESTS.search(extra.lower()):
            found.take_extra(extra)
    for name in sorted(n for n in {*groups, *extras} if _DEVELOP.fullmatch(n)):
        if name in groups:
            yield f"group {name}", groups[name]
        if name in extras:
            yield f"extra {name}", [f"{manifest.name}[{name}]"]
    yield "tox, nox or CI", manifest.test_requirements
    files = manifest.requirement_files
    for file in sorted(files, key=lambda f: ("test" not in f, bool(re.search(r"\d", f)), f)):
        yield file, files[file]
    yield "tests_require", manifest.tests_require


def _everything_named(manifest: Manifest) -> Iterator[str]:
    yield from (
        r
        for rs in (*manifest.groups.values(), *manifest.extras.values(), *manifest.requirement_files.values())
        for r in rs
    )
    yield from (*manifest.test_requirements, *manifest.tests_require, *manifest.dependencies, *manifest.hints)


def _name(text: str) -> str:
    match = re.match(r"[\w.-]+", text.strip())
    return canonicalize_name(match[0]) if match else ""
