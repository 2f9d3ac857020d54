"""Environments of projects: how one is built, and what was built."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything needed to build an environment again; no path of any machine."""

    python: str
    """Full version of the interpreter, for example ``3.12.1``."""
    requirements: tuple[str, ...] = ()
    """What is installed beside the project, as PEP 508 strings or ``-r file`` (inside the repository)."""
    constraints: tuple[str, ...] = ()
    """``name==version`` of the project's own lock file: what is installed of these, is installed so."""
    extras: tuple[str, ...] = ()
    """Extras of the project that are installed."""
    groups: tuple[str, ...] = ()
    """Dependency groups (PEP 735) that are installed."""
    editable: str = "editable"
    """How the project gets onto the path: ``editable`` (built as it asks), ``wheel`` (built as a wheel, of which the
    checkout is given what it lacks), ``legacy`` (built by an older setuptools in the environment itself) or ``path``
    (a ``.pth`` line only)."""
    roots: tuple[str, ...] = (".",)
    """Import roots inside the repository, for example ``src``."""
    packages: tuple[str, ...] = ()
    """Import names that must resolve into the checkout; dotted for packages inside a namespace."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of build and test runs."""
    test_args: tuple[str, ...] = ()
    """Arguments of the test runner."""
    test_paths: tuple[str, ...] = ()
    """Files and folders that hold the tests; empty: the runner's own discovery."""
    system_packages: tuple[str, ...] = ()
    """System packages that the manifests ask for."""
    cutoff: str = ""
    """Only releases before this ISO date were considered; empty: no limit."""
    build_network: bool = False
    """A build downloads something by itself, so that it is let onto the network (without credentials)."""
    commands: tuple[str, ...] = ()
    """bash lines that make the environment, run in the checkout in order, each with ``set -euo pipefail`` and with the
    network on; empty: it is installed from the fields above. A lock then binds the versions that they install."""
    mocks: tuple[tuple[str, str], ...] = ()
    """(path in the folder of mocks, content): stand-ins for what cannot be had, last on the import path."""
    evidence: tuple[str, ...] = ()
    """``file: what it said``, one line per decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An installed environment."""

    env_id: str
    """Content hash of interpreter, lock, recipe and source tree."""
    repo: str
    """Name of the project."""
    tree: str
    """Source tree it was built from."""
    recipe: Recipe
    """How it was built."""
    lock: tuple[str, ...]
    """``name==version`` of every installed distribution, sorted."""
    hashes: dict[str, str] = field(default_factory=dict)
    """Line of ``lock`` to the ``sha256:…`` of the files that may be installed for it, separated by spaces."""
    stage: str = "stage0"
    """Which installer made it: ``stage0`` (manifests alone) or ``model``."""
    shared_id: str = ""
    """Content hash of the third-party packages alone: equal for commits with equal manifests, which share them."""
    built_files: tuple[str, ...] = ()
    """Files that the build wrote into the checkout (metadata, compiled extensions)."""
    mocked: tuple[str, ...] = ()
    """Tests that touch a mock: no ground for tasks."""
    install_s: float = 0.0
    """Wall seconds of the build."""
