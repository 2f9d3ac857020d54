"""The record of what a project's manifests say."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Facts from manifests; empty where nothing is said. Requirements are PEP 508 texts as written."""

    name: str = ""
    """Name of the distribution."""
    requires_python: str = ""
    """Specifier of admitted interpreters."""
    classifier_pythons: tuple[str, ...] = ()
    """Minor versions in the trove classifiers."""
    tested_pythons: tuple[str, ...] = ()
    """Minor versions that CI, tox, nox, Dockerfile or .python-version run."""
    dependencies: tuple[str, ...] = ()
    """Run-time requirements, as far as they are written down literally."""
    extras: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Extra to its requirements, for those that are written down literally."""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Dependency groups (PEP 735, poetry, pdm, hatch) to their requirements, includes resolved."""
    tests_require: tuple[str, ...] = ()
    """setuptools' old ``tests_require``."""
    test_requirements: tuple[str, ...] = ()
    """What tox, nox or CI install in order to test."""
    test_extras: tuple[str, ...] = ()
    """Extras that tox, nox or CI install in order to test."""
    test_groups: tuple[str, ...] = ()
    """Groups that tox, nox or CI install in order to test."""
    test_env: tuple[tuple[str, str], ...] = ()
    """Environment variables that tox sets, where they are literal."""
    requirement_files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Requirements file that speaks of tests or development, to its requirements."""
    locked: dict[str, str] = field(default_factory=dict)
    """Distribution to the version that the project's lock file gives; normalised names."""
    hints: tuple[str, ...] = ()
    """Requirements that other tools' files name: believed in where the tests import them, never installed for it."""
    test_commands: tuple[tuple[str, ...], ...] = ()
    """Arguments with which CI, tox or nox call pytest, most telling first."""
    system_packages: tuple[str, ...] = ()
    """System packages that CI or a Dockerfile install."""
    addopts: tuple[str, ...] = ()
    """pytest's ``addopts``, split into words."""
    testpaths: tuple[str, ...] = ()
    """pytest's ``testpaths``."""
    python_files: tuple[str, ...] = ()
    """pytest's ``python_files``, if given."""
    pytest_keys: tuple[str, ...] = ()
    """All keys of pytest's configuration."""
    required_plugins: tuple[str, ...] = ()
    """pytest's ``required_plugins``."""
    strict_warnings: bool = False
    """pytest's ``filterwarnings`` turns warnings into errors."""
    source_roots: tuple[str, ...] = ()
    """Folders that the build backend is told to take packages from."""
    packages: tuple[str, ...] = ()
    """Top-level packages and modules that the build backend is told to take."""
    build_backend: str = ""
    """``build-backend`` of pyproject.toml; ``setuptools`` for a bare setup.py; empty without either."""
    has_extensions: bool = False
    """The manifests speak of compiled extensions."""
    evidence: tuple[str, ...] = ()
    """``file: what it said``, one line per fact that matters."""


def words(value: object) -> tuple[str, ...]:
    """A list of texts from a TOML list, or from the non-empty lines of an INI value."""
    if isinstance(value, str):
        return tuple(line.strip() for line in value.splitlines() if line.strip() and not line.strip().startswith("#"))
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return ()


def table(value: object, *keys: str) -> dict[str, object]:
    """The table below ``keys``; empty if anything on the way is missing or is no table."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
