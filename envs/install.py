"""From a recipe to an environment: two layers on disk, made inside a sandbox, cached by content."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Protocol

from excise.envs.import_check import Imported, check_imports
from excise.envs.install_env import install_environ, install_mounts, uv_version
from excise.envs.installer import Installer
from excise.envs.interpreters import Interpreter, interpreter_of
from excise.envs.layers import prune_built_layer, remove_vendored_twins
from excise.envs.layout import ENV, REPO
from excise.envs.manifests.manifest import Manifest
from excise.envs.manifests.read import read_manifest
from excise.envs.stage0.import_names import distribution_of, known_distribution
from excise.errors import EnvironmentFailure
from excise.protocols import Policy, Sandbox
from excise.types import Environment, Recipe, Repo, content_id, from_json, to_dict, to_json

VERSION = 1
"""Raise this when the same recipe would give another environment: it is part of every cache key."""
MAX_ROUNDS = 3
"""How often missing modules are looked for and added."""


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


def install(
    recipe: Recipe,
    source_layer: Path,
    repo: Repo,
    sandbox: Sandbox,
    policy: Policy,
    cache: Path,
    timeout_s: float,
    more: MissingModules | None = None,
    *,
    exact: bool = False,
) -> Installed:
    """Build the environment of ``recipe`` for the sources in ``source_layer``, or take it from the cache.

    ``exact``: the requirements are a lock; where they cannot be had, nothing else is tried.

    Everything runs in a session of ``sandbox`` with the network on (``policy`` gives the other limits); the
    imports are checked in a fresh one with the network off. ``repo.tree`` identifies the sources. Two workers
    that want the same environment make it once. Raises :class:`EnvironmentFailure`.
    """
    interpreter = interpreter_of(recipe.python)
    parts = (repo.tree, repo.version, to_dict(recipe), interpreter.version, uv_version())
    key = content_id("install", VERSION, *parts, *_system(sandbox), *(["exact"] if exact else []))
    folder = cache / "envs" / key
    with _locked(folder):
        if (finished := _load(folder)) is not None:
            return finished
        with _scratch(folder) as work:
            job = _Job(recipe, source_layer, repo, sandbox, policy, interpreter, work, time.monotonic() + timeout_s)
            environment = job.run(more, exact=exact)
            (work / "environment.json").write_bytes(to_json(environment, indent=2))
            for name in os.listdir(work):
                if name not in ("environment.json", "env", "built"):
                    shutil.rmtree(work / name)
            shutil.rmtree(folder, ignore_errors=True)
            work.rename(folder)
    finished = _load(folder)
    assert finished is not None
    return finished


def _system(sandbox: Sandbox) -> list[str]:
    """Part of every identity: what is built on one system does not fit another."""
    return [system] if (system := sandbox.system()) else []


def _load(folder: Path) -> Installed | None:
    record = folder / "environment.json"
    if not record.is_file():
        return None
    environment = from_json(Environment, record.read_bytes())
    return Installed(environment=environment, env_layer=folder / "env", built_layer=folder / "built")


class _Job:
    """One installation: install, look whether it imports, add what is missing, look again."""

    def __init__(  # everything that one installation needs, gathered once
        self,
        recipe: Recipe,
        sources: Path,
        repo: Repo,
        sandbox: Sandbox,
        policy: Policy,
        interpreter: Interpreter,
        work: Path,
        deadline: float,
    ) -> None:
        self.recipe, self.sources, self.repo = recipe, sources, repo
        self.sandbox, self.policy, self.interpreter = sandbox, policy, interpreter
        self.work, self.deadline = work, deadline
        self.manifest: Manifest = read_manifest(sources)
        self.began = time.monotonic()
        self.relocated = False

    def run(self, more: MissingModules | None, *, exact: bool) -> Environment:
        variables = install_environ(self.repo, self.recipe)
        mounts = install_mounts(self.interpreter, self.sources)
        policy, packages = replace(self.policy, network=True), self.recipe.system_packages
        with self.sandbox.open(mounts, policy, env=variables, system_packages=packages) as session:
            installer = Installer(session, self.repo, self.manifest, self.sources, self.deadline)
            self.recipe = installer.install(self.recipe, self.interpreter, exact=exact)
            for number in range(MAX_ROUNDS + 1):
                env, built = self.work / f"env{number}", self.work / f"built{number}"
                session.snapshot(ENV, env)
                session.snapshot(REPO, built)
                files = prune_built_layer(built, self.sources)
                environment = self._record(installer.freeze(), files)
                if number == MAX_ROUNDS or not self._improve(installer, environment, env, built, more):
                    break
        if twins := remove_vendored_twins(env, self.recipe.packages):
            line = f"environment: removed vendored copies of the project: {', '.join(twins)}"
            self.recipe = replace(self.recipe, evidence=(*self.recipe.evidence, line))
        self._require_imports(env, built)
        env.rename(self.work / "env")
        built.rename(self.work / "built")
        return self._record(environment.lock, files)

    def _improve(
        self, installer: Installer, environment: Environment, env: Path, built: Path, more: MissingModules | None
    ) -> bool:
        """Whether something was changed, so that it is worth looking again."""
        found = self._imports(env, built)
        if found.elsewhere and not self.relocated:
            self.recipe, self.relocated = installer.relocate(self.recipe), True
            return True
        missing = found.missing
        if not missing and not found.errors and more is not None:
            missing = more(Installed(environment=environment, env_layer=env, built_layer=built))
        return self._add(installer, missing, set(environment.lock))

    def _add(self, installer: Installer, modules: tuple[str, ...], lock: set[str]) -> bool:
        present = {line.partition("==")[0].lower().replace("_", "-") for line in lock}
        wanted = [d for m in modules if (d := self._distribution(m)) and d.lower().replace("_", "-") not in present]
        added = tuple(name for name in dict.fromkeys(wanted) if installer.add([name], self.recipe))
        if not added:
            return False
        self.recipe = replace(
            self.recipe,
            requirements=(*self.recipe.requirements, *added),
            evidence=(*self.recipe.evidence, f"imports: {', '.join(modules)} missing, added {', '.join(added)}"),
        )
        return True

    def _distribution(self, module: str) -> str:
        """Well-known names, and those that the project's own manifests name; no stranger is guessed."""
        if module.partition(".")[0] in self.recipe.packages:
            return ""
        if known := known_distribution(module):
            return known
        guess = distribution_of(module)
        m = self.manifest
        tables = (
            *m.groups.values(),
            *m.extras.values(),
            *m.requirement_files.values(),
            m.dependencies,
            m.test_requirements,
        )
        named = " ".join(text for texts in tables for text in texts).lower()
        return guess if guess and guess.lower() in named else ""

    def _imports(self, env: Path, built: Path) -> Imported:
        return check_imports(self.sandbox, self.policy, self.interpreter, self.recipe, [built, self.sources], env)

    def _require_imports(self, env: Path, built: Path) -> None:
        """The main package must come from the checkout; side packages that do not import are given up."""
        found = self._imports(env, built)
        bad = {**found.errors, **dict.fromkeys(found.elsewhere, "imported from outside the checkout")}
        good = tuple(name for name in self.recipe.packages if name not in bad)
        if not good or (self.recipe.packages and self._main() in bad):
            detail = "; ".join(f"{name}: {error}" for name, error in bad.items()) or "it has no importable package"
            raise EnvironmentFailure(f"{self.repo.repo}: {detail}", reason="import_error")
        if bad:
            lines = tuple(f"imports: {name} is left out ({error})" for name, error in bad.items())
            self.recipe = replace(self.recipe, packages=good, evidence=(*self.recipe.evidence, *lines))

    def _main(self) -> str:
        name = (self.manifest.name or self.repo.repo.rpartition("/")[2]).lower().replace("-", "_")
        return next((p for p in self.recipe.packages if p.lower() == name), self.recipe.packages[0])

    def _record(self, lock: tuple[str, ...], files: tuple[str, ...]) -> Environment:
        parts = (self.repo.tree, to_dict(self.recipe), self.interpreter.version, lock, files, *_system(self.sandbox))
        return Environment(
            env_id=content_id("environment", *parts),
            repo=self.repo.repo,
            tree=self.repo.tree,
            recipe=self.recipe,
            lock=lock,
            built_files=files,
            install_s=round(time.monotonic() - self.began, 1),
        )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o711)  # layers are open to all: keep other users out of their names at least
    with open(folder.with_suffix(".lock"), "w") as lock:
        flock(lock, LOCK_EX)
        yield


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A folder beside the final one; gone afterwards, whatever happened."""
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    work.chmod(0o755)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
