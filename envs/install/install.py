"""From a recipe to an environment: a lock is found, and the environment is built from it; both cached by content."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.build_from_lock import Rebuilt, rebuild, require_same_files
from excise.envs.install.install_job import Installed, Job, MissingModules, Solution
from excise.envs.install.install_sandbox import uv_version
from excise.envs.install.solve_lock import solve
from excise.envs.interpreters import interpreter_of
from excise.envs.manifests.digest import manifest_digest
from excise.envs.manifests.read_manifest import read_manifest
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import open_to_all
from excise.errors import EnvironmentFailure
from excise.protocols import Policy, Sandbox
from excise.system.folders import publish_folder, temporary_folder_beside
from excise.system.locks import folder_lock
from excise.types import Environment, Recipe, Repo, content_id, from_json, to_dict, to_json

VERSION = 2
"""Raise this when the same recipe would give another environment: it is part of every cache key."""


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
    made: Environment | None = None,
) -> Installed:
    """Build the environment of ``recipe`` for the sources in ``source_layer``, or take it from the cache.

    ``made`` is an environment that was made before: its recipe and its lock are built again, and nothing is searched.

    Everything runs in sandboxes without a network, but for the package indexes (:mod:`excise.envs.index.index_relay`);
    ``policy`` gives the other limits. ``repo.tree`` identifies the sources. Two workers that want the same
    environment make it once. Raises :class:`EnvironmentFailure`.
    """
    open_to_all(source_layer)
    interpreter = interpreter_of(recipe.python)
    given = to_dict(recipe) if made is None else [to_dict(made.recipe), made.lock, made.hashes]
    where = (interpreter.version, uv_version(), *system_identity(sandbox))
    folder = cache / "envs" / content_id("install", VERSION, repo.tree, repo.version, given, where)
    with folder_lock(folder):
        if (finished := _load(folder)) is not None:
            return finished
        with temporary_folder_beside(folder) as work, IndexRelay(cache) as relay:
            job = Job(
                repo=repo,
                sources=source_layer,
                manifest=read_manifest(source_layer),
                sandbox=sandbox,
                policy=policy,
                interpreter=interpreter,
                relay=relay,
                envs=cache / "envs",
                deadline=time.monotonic() + timeout_s,
            )
            _make(job, recipe, made, more, work, folder)
    finished = _load(folder)
    assert finished is not None
    return finished


def _load(folder: Path) -> Installed | None:
    record = folder / "environment.json"
    if not record.is_file():
        return None
    environment = from_json(Environment, record.read_bytes())
    return Installed(environment=environment, env_layer=folder / "env", built_layer=folder / "built")


def _make(
    job: Job, recipe: Recipe, made: Environment | None, more: MissingModules | None, work: Path, folder: Path
) -> None:
    began = time.monotonic()
    final = work / "final"
    final.mkdir()
    final.chmod(0o755)
    if made is not None:
        solution = Solution(recipe=made.recipe, lock=made.lock, hashes=made.hashes)
        rebuilt = rebuild(job, solution, final)
    else:
        solution, rebuilt = _search(job, recipe, more, work, final)
    environment = _record(job, solution, rebuilt, time.monotonic() - began)
    (final / "environment.json").write_bytes(to_json(environment, indent=2))
    shutil.rmtree(folder, ignore_errors=True)
    publish_folder(final, folder)


def _search(job: Job, recipe: Recipe, more: MissingModules | None, work: Path, final: Path) -> tuple[Solution, Rebuilt]:
    """A lock that another commit with equal manifests was given, if it serves this one too; else a new one."""
    slot = job.envs / f"solution-{_solution_key(job, recipe)}.json"
    if slot.is_file() and (known := _taken_over(job, slot, recipe, more, final)) is not None:
        return known
    solution, tried = solve(job, recipe, more, work)
    rebuilt = rebuild(job, solution, final)
    require_same_files(job, tried, rebuilt.env)
    scratch = work / "solution.json"
    scratch.write_bytes(to_json(solution, indent=2))
    scratch.rename(slot)
    return solution, rebuilt


def _taken_over(
    job: Job, slot: Path, recipe: Recipe, more: MissingModules | None, final: Path
) -> tuple[Solution, Rebuilt] | None:
    known = from_json(Solution, slot.read_bytes())
    solution = replace(known, recipe=_with_own_parts(known.recipe, recipe))
    try:
        rebuilt = rebuild(job, solution, final)
        if _serves(job, solution, rebuilt, more):
            return solution, rebuilt
    except EnvironmentFailure as failure:
        if failure.reason == "infra":
            raise
    for path in final.iterdir():
        shutil.rmtree(path)
    return None


def _solution_key(job: Job, recipe: Recipe) -> str:
    wanted = replace(recipe, test_args=(), test_paths=(), evidence=())
    where = (job.interpreter.version, uv_version(), *system_identity(job.sandbox))
    return content_id("solution", VERSION, to_dict(wanted), manifest_digest(job.sources), where)


def _with_own_parts(known: Recipe, recipe: Recipe) -> Recipe:
    """A known solution's recipe with what belongs to this tree: how its tests are run."""
    return replace(known, test_args=recipe.test_args, test_paths=recipe.test_paths)


def _serves(job: Job, solution: Solution, rebuilt: Rebuilt, more: MissingModules | None) -> bool:
    """Everything imports from the checkout, and the tests miss no module."""
    found = job.imports(solution.recipe, rebuilt.env, rebuilt.built)
    if found.errors or found.elsewhere:
        return False
    installed = Installed(
        environment=_record(job, solution, rebuilt, 0.0), env_layer=rebuilt.env, built_layer=rebuilt.built
    )
    return more is None or not more(installed)


def _record(job: Job, solution: Solution, rebuilt: Rebuilt, seconds: float) -> Environment:
    parts = (job.repo.tree, to_dict(solution.recipe), job.interpreter.version, solution.lock, rebuilt.built_files)
    return Environment(
        env_id=content_id("environment", *parts),
        repo=job.repo.repo,
        tree=job.repo.tree,
        recipe=solution.recipe,
        lock=solution.lock,
        hashes=solution.hashes,
        shared_id=rebuilt.shared_id,
        built_files=rebuilt.built_files,
        install_s=round(seconds, 1),
    )
