"""Finds the lock of a recipe by resolution, without trying an installation first: the usual way, and the cheap one.

Nothing is installed twice: third-party packages are installed from the lock, once for all projects that have it. What
needs fallbacks, such as another build mode or other versions, is left to :mod:`find_lock`, which tries installations.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from excise.envs.install.build_from_lock import BuiltLayers, build_from_lock
from excise.envs.install.find_lock import MAX_ROUNDS, distributions_of
from excise.envs.install.install_job import InstallJob, LockedRecipe, MissingModules
from excise.errors import EnvironmentFailure
from excise.types import Recipe

UNDECIDED = frozenset({"infra", "timeout", "oom"})
"""Reasons of failures that say nothing about the recipe; they are raised instead of trying another way."""


def resolve_lock(
    job: InstallJob, recipe: Recipe, missing_modules: MissingModules | None, work: Path
) -> tuple[LockedRecipe, BuiltLayers] | None:
    """Resolve the recipe, build from the lock, and add modules that are missing; ``None`` if this does not work.

    ``work`` is an empty folder for the layers. Raises :class:`EnvironmentFailure` for :data:`UNDECIDED` reasons.
    """
    try:
        for number in range(MAX_ROUNDS + 1):
            folder = work / f"round{number}"
            folder.mkdir()
            folder.chmod(0o755)
            found = _build(job, recipe, folder)
            if found is None:
                return None
            missing, works = _check(job, *found, missing_modules)
            more = _with_modules(job, recipe, missing, found[0].lock)
            if more == recipe:
                return found if works else None
            recipe = more
    except EnvironmentFailure as failure:
        if failure.reason in UNDECIDED:
            raise
    return None


def _build(job: InstallJob, recipe: Recipe, folder: Path) -> tuple[LockedRecipe, BuiltLayers] | None:
    with job.open(recipe) as (_, installer):
        resolved = installer.resolve(recipe)
    if resolved is None:
        return None
    locked_recipe = LockedRecipe(recipe=recipe, lock=resolved[0], hashes=resolved[1])
    return locked_recipe, build_from_lock(job, locked_recipe, folder)


def _check(
    job: InstallJob, locked_recipe: LockedRecipe, layers: BuiltLayers, missing_modules: MissingModules | None
) -> tuple[tuple[str, ...], bool]:
    """Modules that the project or its tests lack, and whether all packages import from the checkout."""
    recipe = locked_recipe.recipe
    report = job.imports(recipe, layers.env, layers.built)
    if report.missing or report.elsewhere or report.errors or missing_modules is None:
        return report.missing, not report.elsewhere and not report.errors
    installed = job.provisional(recipe, locked_recipe.lock, layers.env, layers.built, layers.shared_id)
    return missing_modules(installed), True


def _with_modules(job: InstallJob, recipe: Recipe, modules: tuple[str, ...], lock: tuple[str, ...]) -> Recipe:
    """The recipe with the distributions of missing modules, as far as they are known and not in the lock."""
    added = distributions_of(job, recipe, modules, lock)
    if not added:
        return recipe
    line = f"imports: {', '.join(modules)} missing, added {', '.join(added)}"
    return replace(recipe, requirements=(*recipe.requirements, *added), evidence=(*recipe.evidence, line))
