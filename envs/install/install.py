"""Builds the environment of a recipe: finds a lock, then builds from the lock; both results are cached by content."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.build_from_lock import BuiltLayers, build_from_lock, require_same_files
from excise.envs.install.find_lock import find_lock
from excise.envs.install.install_job import Installed, InstallJob, InstallRequest, LockedRecipe, MissingModules
from excise.envs.install.install_sandbox import uv_version
from excise.envs.install.resolve_lock import resolve_lock
from excise.envs.interpreters import interpreter_of
from excise.envs.manifests.read_manifest import manifest_digest, read_manifest
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import open_to_all
from excise.envs.sandbox.system_root import linked_packages
from excise.errors import EnvironmentFailure
from excise.system.files import replace_file
from excise.system.folders import publish_folder, temporary_folder_beside
from excise.system.locks import folder_lock
from excise.types import Environment, Recipe, content_id, from_json, to_dict, to_json

VERSION = 4
"""Part of every cache key. Raise it when the same recipe would give a different environment."""


def install(
    request: InstallRequest,
    *,
    missing_modules: MissingModules | None = None,
    previous: Environment | None = None,
) -> Installed:
    """Build the environment of a recipe, or take it from the cache.

    ``missing_modules`` finds further requirements by collecting the tests. ``previous`` is an earlier environment to
    build again from its lock; of ``request.recipe``, only the interpreter is then used.

    Everything runs in sandboxes that reach the package indexes only (``index/index_relay.py``). If several workers
    request the same environment, one builds it and the others wait. Raises :class:`EnvironmentFailure`.
    """
    open_to_all(request.sources)
    interpreter = interpreter_of(request.recipe.python)
    inputs = to_dict(request.recipe) if previous is None else [to_dict(previous.recipe), previous.lock, previous.hashes]
    platform = (interpreter.version, uv_version(), *system_identity(request.sandbox))
    envs, repo = request.cache / "envs", request.repo
    folder = envs / content_id("install", VERSION, repo.tree, repo.version, inputs, platform)
    with folder_lock(folder):
        if (finished := _load(folder)) is not None:
            return finished
        with temporary_folder_beside(folder) as work, IndexRelay(request.cache) as relay:
            job = InstallJob(
                repo=repo,
                sources=request.sources,
                manifest=read_manifest(request.sources),
                sandbox=request.sandbox,
                policy=request.policy,
                interpreter=interpreter,
                relay=relay,
                envs=envs,
                deadline=time.monotonic() + request.timeout_s,
            )
            final = work / "final"
            final.mkdir()
            final.chmod(0o755)
            began = time.monotonic()
            if previous is not None:
                locked_recipe = LockedRecipe(recipe=previous.recipe, lock=previous.lock, hashes=previous.hashes)
                layers = build_from_lock(job, locked_recipe, final)
            else:
                locked_recipe, layers = _Search(job, request.recipe, missing_modules, work, final).run()
            environment = _record(job, locked_recipe, layers, time.monotonic() - began)
            (final / "environment.json").write_bytes(to_json(environment, indent=2))
            shutil.rmtree(folder, ignore_errors=True)
            publish_folder(final, folder)
    finished = _load(folder)
    assert finished is not None
    return finished


def _load(folder: Path) -> Installed | None:
    record = folder / "environment.json"
    if not record.is_file():
        return None
    environment = from_json(Environment, record.read_bytes())
    return Installed(environment=environment, env_layer=folder / "env", built_layer=folder / "built")


class _Search:
    """Finds a lock for a recipe and builds from it; commits with equal manifests share a lock."""

    def __init__(
        self, job: InstallJob, recipe: Recipe, missing_modules: MissingModules | None, work: Path, final: Path
    ) -> None:
        self.job, self.recipe, self.missing_modules = job, recipe, missing_modules
        self.work, self.final = work, final

    def run(self) -> tuple[LockedRecipe, BuiltLayers]:
        """Reuse the lock of another commit if it also works for this one, else find a new lock."""
        slot = self.job.envs / f"solution-{self._slot_key()}.json"
        if slot.is_file() and (reused := self._reuse(slot)) is not None:
            return reused
        locked_recipe, layers = self._resolve() or self._try()
        replace_file(slot, to_json(locked_recipe, indent=2))
        return locked_recipe, layers

    def _resolve(self) -> tuple[LockedRecipe, BuiltLayers] | None:
        found = resolve_lock(self.job, self.recipe, self.missing_modules, _new_folder(self.work / "resolved"))
        if found is None:
            return None
        locked_recipe, layers = found
        moved = replace(
            layers, env=layers.env.rename(self.final / "env"), built=layers.built.rename(self.final / "built")
        )
        return locked_recipe, moved

    def _try(self) -> tuple[LockedRecipe, BuiltLayers]:
        locked_recipe, tried = find_lock(self.job, self.recipe, self.missing_modules, _new_folder(self.work / "tried"))
        layers = build_from_lock(self.job, locked_recipe, self.final)
        require_same_files(self.job, tried, layers.env)
        return locked_recipe, layers

    def _slot_key(self) -> str:
        recipe = replace(self.recipe, test_args=(), test_paths=(), evidence=())
        platform = (self.job.interpreter.version, uv_version(), *system_identity(self.job.sandbox))
        return content_id("solution", VERSION, to_dict(recipe), manifest_digest(self.job.sources), platform)

    def _reuse(self, slot: Path) -> tuple[LockedRecipe, BuiltLayers] | None:
        known = from_json(LockedRecipe, slot.read_bytes())
        # How tests are run belongs to this commit, not to the one that the lock was found for.
        recipe = replace(known.recipe, test_args=self.recipe.test_args, test_paths=self.recipe.test_paths)
        locked_recipe = replace(known, recipe=recipe)
        try:
            layers = build_from_lock(self.job, locked_recipe, self.final)
            if self._works(locked_recipe, layers):
                return locked_recipe, layers
        except EnvironmentFailure as failure:
            if failure.reason == "infra":
                raise
        for path in self.final.iterdir():
            shutil.rmtree(path)
        return None

    def _works(self, locked_recipe: LockedRecipe, layers: BuiltLayers) -> bool:
        """Whether all packages import from the checkout and the tests miss no module."""
        report = self.job.imports(locked_recipe.recipe, layers.env, layers.built)
        if report.errors or report.elsewhere:
            return False
        environment = _record(self.job, locked_recipe, layers, 0.0)
        installed = Installed(environment=environment, env_layer=layers.env, built_layer=layers.built)
        return self.missing_modules is None or not self.missing_modules(installed)


def _new_folder(path: Path) -> Path:
    path.mkdir()
    path.chmod(0o755)
    return path


def with_linked_packages(recipe: Recipe, layers: Sequence[Path]) -> Recipe:
    """The recipe with the system packages whose libraries the compiled files of an environment link to."""
    more = [name for name in linked_packages(layers) if name not in recipe.system_packages]
    return replace(recipe, system_packages=(*recipe.system_packages, *more)) if more else recipe


def _record(job: InstallJob, locked_recipe: LockedRecipe, layers: BuiltLayers, seconds: float) -> Environment:
    recipe, lock = with_linked_packages(locked_recipe.recipe, [layers.env, layers.built]), locked_recipe.lock
    parts = (job.repo.tree, to_dict(recipe), job.interpreter.version, lock, layers.built_files)
    return Environment(
        env_id=content_id("environment", *parts),
        repo=job.repo.repo,
        tree=job.repo.tree,
        recipe=recipe,
        lock=lock,
        hashes=locked_recipe.hashes,
        shared_id=layers.shared_id,
        built_files=layers.built_files,
        install_s=round(seconds, 1),
    )
