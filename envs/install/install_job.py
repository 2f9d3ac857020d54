"""What every step of one installation needs, and what comes out of it in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from packaging.utils import canonicalize_name

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.import_check import Imported, check_imports
from excise.envs.install.install_sandbox import install_environ, install_mounts
from excise.envs.install.uv_installer import Installer
from excise.envs.install.uv_runner import UvRunner
from excise.envs.interpreters import Interpreter
from excise.envs.manifests.manifest import Manifest
from excise.protocols import Policy, Sandbox, Session
from excise.types import Environment, Recipe, Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A finished environment and its layers."""

    environment: Environment
    """The record."""
    env_layer: Path
    """Layer of ``/opt/env``."""
    built_layer: Path
    """Layer over the sources: what the build added to the checkout (may be empty)."""


class MissingModules(Protocol):
    """Asks the tests which modules they miss in a provisional environment."""

    def __call__(self, installed: Installed) -> tuple[str, ...]:
        """Import names that were not found when the tests were collected."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What an installation comes to: rebuilding it needs nothing else, but for the sources."""

    recipe: Recipe
    """As it was really carried out."""
    lock: tuple[str, ...]
    """Every distribution but the project, ``name==version``."""
    hashes: dict[str, str]
    """Line of the lock to hashes; empty where the index gives none."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One installation: for which sources, where, and how long it may take."""

    repo: Repo
    """The snapshot."""
    sources: Path
    """Layer with its pristine files."""
    manifest: Manifest
    """What they say."""
    sandbox: Sandbox
    """Where everything runs."""
    policy: Policy
    """Limits; whether there is a network is decided by each step."""
    interpreter: Interpreter
    """The recipe's interpreter."""
    relay: IndexRelay
    """The way to the package indexes."""
    envs: Path
    """Folder of the cache for environments."""
    deadline: float
    """Of the monotonic clock."""

    @contextmanager
    def open(
        self, recipe: Recipe, environment: Sequence[Path] = (), *, with_sources: bool = True
    ) -> Iterator[tuple[Session, Installer]]:
        """A sandbox for one step. It has a network only where the recipe's build needs one.

        ``environment``: layers below what is installed; without ``with_sources`` the checkout is empty.
        """
        layers = [self.sources] if with_sources else []
        mounts = install_mounts(self.interpreter, layers, self.relay, recipe, environment)
        variables = install_environ(self.repo, recipe, self.relay)
        policy = replace(self.policy, network=recipe.build_network)
        packages = recipe.system_packages
        with self.sandbox.open(mounts, policy, env=variables, system_packages=packages) as session:
            runner = UvRunner(session, self.relay, self.interpreter, self.repo.repo, self.deadline)
            yield session, Installer(runner, self.repo, self.manifest, self.sources)

    def imports(self, recipe: Recipe, env: Path, built: Path) -> Imported:
        """What becomes of importing the packages, in a fresh sandbox."""
        return check_imports(self.sandbox, self.policy, self.interpreter, recipe, [built, self.sources], env)

    def main_package(self, recipe: Recipe) -> str:
        """The package that is called like the project, else the first; empty if there is none."""
        name = canonicalize_name(self.manifest.name or self.repo.repo.rpartition("/")[2])
        return next((p for p in recipe.packages if canonicalize_name(p) == name), (*recipe.packages, "")[0])
