"""Records of one installation: the request, the context of its steps, and the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from packaging.utils import canonicalize_name

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.import_check import ImportReport, check_imports
from excise.envs.install.install_sandbox import install_environ, install_mounts
from excise.envs.install.uv_installer import UvInstaller
from excise.envs.install.uv_runner import UvRunner
from excise.envs.interpreters import Interpreter
from excise.envs.manifests.manifest import Manifest
from excise.envs.sandbox.mount_points import system_request
from excise.protocols import Policy, Sandbox, Session
from excise.types import Environment, Recipe, Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRequest:
    """What to install, for which sources, in which sandbox, and within which limits."""

    recipe: Recipe
    """The recipe to install."""
    repo: Repo
    """The repository snapshot; its ``tree`` identifies the sources."""
    sources: Path
    """Layer with the pristine files of the snapshot."""
    sandbox: Sandbox
    """Backend in which every command runs."""
    policy: Policy
    """Resource limits of installing sessions. Each step decides by itself whether it has a network."""
    cache: Path
    """The cache folder: environments are kept in ``envs/``, downloads in ``downloads/``."""
    timeout_s: float
    """Wall-clock seconds for the whole installation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An installed environment and its layers."""

    environment: Environment
    """The record."""
    env_layer: Path
    """Layer of ``/opt/env``."""
    built_layer: Path
    """Layer over the sources with the files that the build added to the checkout; may be empty."""


class MissingModules(Protocol):
    """Finds the modules that the tests need and a provisional environment lacks."""

    def __call__(self, installed: Installed) -> tuple[str, ...]:
        """Return the import names that were not found when the tests were collected."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedRecipe:
    """A recipe and the lock that was found for it; the environment is built from these and the sources alone."""

    recipe: Recipe
    """The recipe that was installed, after all fallbacks."""
    lock: tuple[str, ...]
    """Every installed distribution but the project, as ``name==version``."""
    hashes: dict[str, str]
    """Line of the lock to its hashes, separated by spaces; empty if the index gives none."""


@dataclass(frozen=True, kw_only=True)
class InstallJob:
    """The context of one running installation, shared by its steps."""

    repo: Repo
    """The repository snapshot."""
    sources: Path
    """Layer with its pristine files."""
    manifest: Manifest
    """The merged manifests of ``sources``."""
    sandbox: Sandbox
    """Backend in which every command runs."""
    policy: Policy
    """Resource limits of sessions."""
    interpreter: Interpreter
    """The recipe's interpreter."""
    relay: IndexRelay
    """Access to the package indexes."""
    envs: Path
    """Folder of the cache for environments."""
    deadline: float
    """Time of :func:`time.monotonic` at which the installation times out."""

    @contextmanager
    def open(
        self,
        recipe: Recipe,
        environment: Sequence[Path] = (),
        *,
        with_sources: bool = True,
        byte_code: Path | None = None,
    ) -> Iterator[tuple[Session, UvInstaller]]:
        """Open a sandbox session for one step. It has a network only if the recipe's build needs one.

        ``environment``: layers below what this step installs; ``byte_code``: the layer with theirs. Without
        ``with_sources`` the checkout is empty.
        """
        layers = [self.sources] if with_sources else []
        mounts = install_mounts(self.interpreter, layers, self.relay, recipe, environment, byte_code)
        variables = install_environ(self.repo, recipe, self.relay)
        policy = replace(self.policy, network=recipe.build_network)
        system = system_request(self.interpreter, recipe.system_packages, building=True)
        with self.sandbox.open(mounts, policy, env=variables, system=system) as session:
            runner = UvRunner(session, self.relay, self.interpreter, self.repo.repo, self.deadline)
            yield session, UvInstaller(runner, self.repo, self.manifest, self.sources)

    def imports(self, recipe: Recipe, env: Path, built: Path) -> ImportReport:
        """Import the project's packages in a fresh sandbox; see :func:`check_imports`."""
        return check_imports(self.sandbox, self.policy, self.interpreter, recipe, [built, self.sources], env)

    def provisional(
        self, recipe: Recipe, lock: tuple[str, ...], env: Path, built: Path, shared_id: str = ""
    ) -> Installed:
        """An environment that is still being checked, for :class:`MissingModules`; it has no id."""
        record = Environment(
            env_id="", repo=self.repo.repo, tree=self.repo.tree, recipe=recipe, lock=lock, shared_id=shared_id
        )
        return Installed(environment=record, env_layer=env, built_layer=built)

    def main_package(self, recipe: Recipe) -> str:
        """The package that has the project's name, else the first one; empty if there is none."""
        name = canonicalize_name(self.manifest.name or self.repo.repo.rpartition("/")[2])
        return next((p for p in recipe.packages if canonicalize_name(p) == name), (*recipe.packages, "")[0])
