"""Toolchains: how the environments of one language are planned and installed, and which versions they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, cast

from excise.envs.install.install_job import Installed, InstallRequest, MissingModules
from excise.languages import language_part
from excise.protocols import TaskImage
from excise.types import Environment, Recipe, Repo, SourceSpec


class Toolchain(Protocol):
    """Plans and installs the environments of one language.

    An environment is the layer of ``/opt/env``; in every language, ``/opt/env/bin/python`` is an interpreter, which
    excise's own programs in the sandbox run on. What a recipe's fields and the lines of a lock mean beyond that is the
    language's own.
    """

    def plan(self, root: Path, repo: Repo, spec: SourceSpec, cutoff: str, cache: Path) -> Recipe:
        """The recipe of the sources in ``root``, made from their manifests without running anything.

        ``cutoff`` is the ISO date before which releases must have been published; empty for no limit. ``cache`` is the
        cache folder, for what must be downloaded to know which packages there are. Raises
        :class:`EnvironmentFailure`, with ``toolchain_unavailable`` if this machine lacks a program.
        """
        ...

    def install(
        self,
        request: InstallRequest,
        *,
        missing_modules: MissingModules | None = None,
        previous: Environment | None = None,
    ) -> Installed:
        """Build the environment of a recipe, or take it from the cache; with ``previous``, the same one from its lock.

        ``missing_modules`` finds further requirements by collecting the tests. Nothing of the project runs outside
        sandboxes. Raises :class:`EnvironmentFailure`.
        """
        ...

    def outputs(self, cache: Path, installed: Installed) -> Path:
        """The layer with build outputs of everything but the project, which test runs begin with; it may be empty.

        Agents never get it.
        """
        ...

    def tools(self, cache: Path, installed: Installed) -> Path:
        """The layer of packages that only excise's own programs import; it may be empty."""
        ...

    def variables(self) -> Mapping[str, str]:
        """Environment variables of all sandboxes of this language, besides those of the recipe."""
        ...

    def versions(self, environment: Environment) -> Mapping[str, str]:
        """Names of the tools that decide the results of tests, to their versions: for certificates."""
        ...

    def image(
        self, repo: Repo, environment: Environment, sources: Path, layers: Callable[[], Mapping[str, Path]]
    ) -> TaskImage:
        """The image that all tasks of an environment share, without sources of the project.

        ``sources`` is the archive of the untouched sources. ``layers`` gives the folders of the installed environment
        by their places in the image; it may have to build it, so it is called only where they are needed.
        """
        ...


def toolchain_of(language: str) -> Toolchain:
    """The toolchain of a language. Raises :class:`ConfigError` for an unknown name."""
    return cast(Toolchain, language_part(language, "envs.{}.toolchain", "TOOLCHAIN"))
