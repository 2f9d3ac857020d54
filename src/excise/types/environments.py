"""Environments of projects: the recipe and the built environment."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All inputs of an environment build; holds no paths of the host."""

    python: str
    """Full version of the interpreter, for example ``3.12.1``."""
    requirements: tuple[str, ...] = ()
    """Requirements installed in addition to the project's own: PEP 508 strings, or ``-r file`` in the repository."""
    constraints: tuple[str, ...] = ()
    """``name==version`` pins of the project's own lock file, used as constraints."""
    extras: tuple[str, ...] = ()
    """Extras of the project that are installed."""
    groups: tuple[str, ...] = ()
    """Dependency groups (PEP 735) that are installed."""
    editable: str = "editable"
    """How the project is installed: ``editable``, ``wheel`` (built as a wheel; missing files are copied into
    the checkout), ``legacy`` (built by an older setuptools in the environment) or ``path`` (a ``.pth`` file only)."""
    roots: tuple[str, ...] = (".",)
    """Import roots inside the repository, for example ``src``."""
    packages: tuple[str, ...] = ()
    """Import names that must resolve into the checkout; dotted for packages inside a namespace."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of build and test runs."""
    test_args: tuple[str, ...] = ()
    """Arguments of the test runner."""
    test_paths: tuple[str, ...] = ()
    """Files and folders that hold the tests; empty for the runner's own discovery."""
    system_packages: tuple[str, ...] = ()
    """System packages that the manifests require."""
    cutoff: str = ""
    """ISO date; only earlier releases are installed. Empty for no limit."""
    build_network: bool = False
    """Whether builds get network access (without credentials) because they download files."""
    commands: tuple[str, ...] = ()
    """bash commands that build the environment, run in order in the checkout, each with ``set -euo pipefail`` and with
    network access; the lock pins the versions that they install. Empty: the fields above are used."""
    mocks: tuple[tuple[str, str], ...] = ()
    """(path in the folder of mocks, content): replacements for unavailable modules, last on the import path."""
    evidence: tuple[str, ...] = ()
    """Why the recipe is as it is: ``file: finding``, one line per decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An installed environment."""

    env_id: str
    """Content hash of interpreter, lock, recipe and source tree."""
    repo: str
    """Name of the project."""
    tree: str
    """git tree hash of the sources it was built from."""
    recipe: Recipe
    """Recipe of the build."""
    lock: tuple[str, ...]
    """``name==version`` of every installed distribution, sorted."""
    hashes: dict[str, str] = field(default_factory=dict)
    """Line of ``lock`` to the ``sha256:…`` hashes that its files may have, separated by spaces."""
    stage: str = "stage0"
    """What installed it: ``stage0`` (the manifests alone) or ``model``."""
    shared_id: str = ""
    """Content hash of the third-party packages; commits with equal packages share them."""
    built_files: tuple[str, ...] = ()
    """Files written into the checkout by the build (metadata, compiled extensions)."""
    mocked: tuple[str, ...] = ()
    """Ids of tests that use a mock; they are not used for tasks."""
    install_s: float = 0.0
    """Wall seconds of the build."""
