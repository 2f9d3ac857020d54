"""The record of what a project's manifests declare, and helpers of their readers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Facts from a project's manifests; a field is empty if no manifest declares it.

    Requirements are PEP 508 strings, as written in the manifests.
    """

    name: str = ""
    """Name of the distribution."""
    requires_python: str = ""
    """Version specifier of supported interpreters."""
    classifier_pythons: tuple[str, ...] = ()
    """Minor versions in the trove classifiers."""
    tested_pythons: tuple[str, ...] = ()
    """Minor versions that CI, tox, nox, a Dockerfile or .python-version use."""
    dependencies: tuple[str, ...] = ()
    """Run-time requirements, where they are literal."""
    extras: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Extra to its requirements, where they are literal."""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Dependency groups (PEP 735, poetry, pdm, hatch) to their requirements, includes resolved."""
    tests_require: tuple[str, ...] = ()
    """``tests_require`` of setuptools."""
    test_requirements: tuple[str, ...] = ()
    """Requirements that tox, nox or CI install for tests."""
    test_extras: tuple[str, ...] = ()
    """Extras that tox, nox or CI install for tests."""
    test_groups: tuple[str, ...] = ()
    """Dependency groups that tox, nox or CI install for tests."""
    test_env: tuple[tuple[str, str], ...] = ()
    """Environment variables that tox sets, where they are literal."""
    requirement_files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a requirements file for tests or development, to its requirements."""
    locked: dict[str, str] = field(default_factory=dict)
    """Distribution (normalised name) to its version in the project's lock file."""
    hints: tuple[str, ...] = ()
    """Requirements named in files of other tools, such as conda; used only for modules that tests import."""
    test_commands: tuple[tuple[str, ...], ...] = ()
    """Arguments with which CI, tox or nox call pytest, one tuple per call."""
    system_packages: tuple[str, ...] = ()
    """System packages that CI or a Dockerfile install."""
    addopts: tuple[str, ...] = ()
    """pytest's ``addopts``, split into words."""
    testpaths: tuple[str, ...] = ()
    """pytest's ``testpaths``."""
    python_files: tuple[str, ...] = ()
    """pytest's ``python_files``, if given."""
    pytest_keys: tuple[str, ...] = ()
    """All keys in pytest's configuration."""
    required_plugins: tuple[str, ...] = ()
    """pytest's ``required_plugins``."""
    strict_warnings: bool = False
    """Whether ``filterwarnings`` turns warnings into errors."""
    source_roots: tuple[str, ...] = ()
    """Folders from which the build backend takes packages."""
    packages: tuple[str, ...] = ()
    """Top-level packages and modules that the build configuration names."""
    build_backend: str = ""
    """``build-backend`` of pyproject.toml; ``setuptools`` for a bare setup.py; empty without either."""
    has_extensions: bool = False
    """Whether the project has compiled extensions."""
    evidence: tuple[str, ...] = ()
    """Sources of the facts, one line each: ``file: declaration``."""


def words(value: object) -> tuple[str, ...]:
    """The strings in a TOML list, or the non-empty lines of an INI value."""
    if isinstance(value, str):
        return tuple(line.strip() for line in value.splitlines() if line.strip() and not line.strip().startswith("#"))
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return ()


def table(value: object, *keys: str) -> dict[str, object]:
    """The nested table at ``keys``; empty if any part is missing or not a table."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def read_text(path: Path) -> str:
    """The text of a file, with undecodable bytes replaced; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
