"""The toolchain of Python: virtual environments, installed by uv; see :class:`excise.envs.toolchains.Toolchain`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from excise.envs.install.build_from_lock import third_party_byte_code
from excise.envs.install.coverage_layer import coverage_layer
from excise.envs.install.install import install
from excise.envs.install.install_job import Installed, InstallRequest, MissingModules
from excise.envs.install.variables import VIRTUAL_ENVIRONMENT
from excise.envs.interpreters import find_interpreters
from excise.envs.model_driven.install_commands import install_commands
from excise.envs.plan.plan_recipe import plan_recipe
from excise.envs.task_image import image_tag, task_image_files
from excise.protocols import TaskImage
from excise.types import Environment, Recipe, Repo, SourceSpec


class PythonToolchain:
    """Virtual environments of Python projects."""

    def plan(self, root: Path, repo: Repo, spec: SourceSpec, cutoff: str, cache: Path) -> Recipe:  # noqa: ARG002
        """Plan the recipe from the manifests, without a model. Raises :class:`EnvironmentFailure`."""
        return plan_recipe(root, repo, spec, find_interpreters(), cutoff)

    def install(
        self,
        request: InstallRequest,
        *,
        missing_modules: MissingModules | None = None,
        previous: Environment | None = None,
    ) -> Installed:
        """Install by uv, or by the recipe's own commands. Raises :class:`EnvironmentFailure`."""
        if request.recipe.commands or request.recipe.mocks:
            return install_commands(request, previous.lock if previous else ())
        return install(request, missing_modules=missing_modules, previous=previous)

    def outputs(self, cache: Path, installed: Installed) -> Path:
        """Byte code of the third-party packages."""
        byte_code = third_party_byte_code(cache / "envs", installed.environment.shared_id)
        if not byte_code.is_dir():
            byte_code = cache / "empty"
            byte_code.mkdir(parents=True, exist_ok=True)
        return byte_code

    def tools(self, cache: Path, installed: Installed) -> Path:
        """coverage.py. Raises :class:`EnvironmentFailure` (``infra``) if the layer cannot be made."""
        return coverage_layer(installed.environment.recipe.python, cache)

    def variables(self) -> Mapping[str, str]:
        """The mark of an activated virtual environment."""
        return VIRTUAL_ENVIRONMENT

    def versions(self, environment: Environment) -> Mapping[str, str]:
        """The interpreter and pytest."""
        lock = dict(line.partition("==")[::2] for line in environment.lock)
        return {"python": environment.recipe.python, "pytest": lock.get("pytest", "")}

    def image(
        self,
        repo: Repo,
        environment: Environment,
        sources: Path,
        layers: Callable[[], Mapping[str, Path]],  # noqa: ARG002
    ) -> TaskImage:
        """An image that installs the locked distributions when it is built."""
        return TaskImage(tag=image_tag(repo, environment), files=task_image_files(repo, environment, sources))


TOOLCHAIN = PythonToolchain()
