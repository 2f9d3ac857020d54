"""From a lock to the layers of an environment: third-party packages once, the project itself for each tree.

This is also the acceptance test of a solution: nothing but its recipe, its lock and the sources goes in, each step
in a sandbox of its own, and what comes out must be what the solution was found with.
"""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from excise.envs.install.install_job import Job, Solution
from excise.envs.install.install_sandbox import uv_version
from excise.envs.install.layer_contents import compose, missing_files, prune_built_layer, remove_vendored_twins
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.mount_points import ENV, REPO
from excise.errors import EnvironmentFailure
from excise.system.folders import publish_folder, temporary_folder_beside
from excise.system.locks import folder_lock
from excise.types import content_id

VERSION = 1
"""Raise this when the same lock would give other third-party packages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The layers of a rebuilt environment."""

    env: Path
    """Layer of ``/opt/env``; files of third-party packages are shared with other trees, by hard links."""
    built: Path
    """Layer over the sources."""
    shared_id: str
    """What the third-party packages are known by."""
    built_files: tuple[str, ...]
    """Files of ``built``."""


def shared_id(job: Job, solution: Solution) -> str:
    """What third-party packages are known by: system, interpreter, installer, lock, and how they are built."""
    recipe = solution.recipe
    how = (recipe.cutoff, recipe.editable == "legacy", recipe.build_network, recipe.packages)
    where = (*system_identity(job.sandbox), platform.machine(), job.interpreter.version)
    return content_id("third-party", VERSION, where, uv_version(), solution.lock, solution.hashes, how)


def rebuild(job: Job, solution: Solution, work: Path) -> Rebuilt:
    """Make the layers in the empty folder ``work``.

    Raises :class:`EnvironmentFailure`; ``unreproducible`` if other distributions than the lock's come out.
    """
    third = _third_party(job, solution)
    own, built, env = work / "own", work / "built", work / "env"
    with job.open(solution.recipe, [third]) as (session, installer):
        installer.place(solution.recipe)
        _require_lock(job, solution, installer.freeze())
        session.snapshot(ENV, own)
        session.snapshot(REPO, built)
    files = prune_built_layer(built, job.sources)
    compose(third, own, env)
    shutil.rmtree(own)
    return Rebuilt(env=env, built=built, shared_id=shared_id(job, solution), built_files=files)


def _third_party(job: Job, solution: Solution) -> Path:
    """The layer with what the lock names; made once for all trees that have this lock."""
    folder = job.envs / f"shared-{shared_id(job, solution)}"
    layer = folder / "env"
    with folder_lock(folder):
        if layer.is_dir():
            return layer
        with temporary_folder_beside(folder) as work:
            with job.open(solution.recipe, with_sources=False) as (session, installer):
                installer.install_lock(solution.recipe, solution.lock, solution.hashes)
                _require_lock(job, solution, installer.freeze())
                session.snapshot(ENV, work / "env")
            remove_vendored_twins(work / "env", solution.recipe.packages)
            shutil.rmtree(folder, ignore_errors=True)
            publish_folder(work, folder)
    return layer


def _require_lock(job: Job, solution: Solution, found: tuple[str, ...]) -> None:
    if found != solution.lock:
        more, less = sorted({*found} - {*solution.lock}), sorted({*solution.lock} - {*found})
        raise EnvironmentFailure(
            f"{job.repo.repo}: rebuilt from its lock, the environment has {', '.join(more) or 'nothing'} "
            f"instead of {', '.join(less) or 'nothing'}.",
            reason="unreproducible",
        )


def require_same_files(job: Job, first: Path, second: Path) -> None:
    """Both environments hold the same files.

    Raises :class:`EnvironmentFailure` (``unreproducible``) that names some that are only in one of them.
    """
    gone, new = missing_files(first, second), missing_files(second, first)
    if gone or new:
        some = ", ".join([*(f"-{path}" for path in gone[:5]), *(f"+{path}" for path in new[:5])])
        raise EnvironmentFailure(
            f"{job.repo.repo}: rebuilt from its recipe, the environment lacks {len(gone)} files and has {len(new)} "
            f"others: {some}",
            reason="unreproducible",
        )
