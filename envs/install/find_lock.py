"""Finds the lock of a recipe by trying: installs it, checks that the project imports, adds missing modules, again.

Only for projects whose lock :mod:`resolve_lock` cannot find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packaging.utils import canonicalize_name

from excise.envs.install.failure_classes import reason_of_import
from excise.envs.install.install_job import InstallJob, LockedRecipe, MissingModules
from excise.envs.install.layer_contents import link_scripts, prune_built_layer, remove_vendored_copies
from excise.envs.install.system_packages import what_to_install
from excise.envs.install.uv_installer import UvInstaller
from excise.envs.plan.import_names import distribution_of, known_distribution
from excise.envs.sandbox.mount_points import ENV, REPO
from excise.errors import EnvironmentFailure
from excise.types import Recipe

MAX_ROUNDS = 3
"""Maximum number of times that missing modules are added."""


def find_lock(
    job: InstallJob, recipe: Recipe, missing_modules: MissingModules | None, work: Path
) -> tuple[LockedRecipe, Path]:
    """Install the recipe with fallbacks; return the recipe with its lock, and the layer in which it worked.

    The first try has no network. If a build needs one, a second try has it, and the recipe records that. ``work`` is
    an empty folder for layers. Raises :class:`EnvironmentFailure`.
    """
    try:
        return _LockSearch(job, recipe, work / "solve").run(missing_modules)
    except EnvironmentFailure as failure:
        if failure.reason != "network_required" or recipe.build_network:
            raise
        line = "installer: a build downloads by itself, so it is let onto the network, without credentials"
        recipe = replace(recipe, build_network=True, evidence=(*recipe.evidence, line))
        return _LockSearch(job, recipe, work / "online").run(missing_modules)


def distributions_of(job: InstallJob, recipe: Recipe, modules: Sequence[str], lock: Sequence[str]) -> tuple[str, ...]:
    """The distributions of missing modules, as far as they are known and not in the lock."""
    present = {canonicalize_name(line.partition("==")[0]) for line in lock}
    wanted = (_named_distribution(job, recipe, module) for module in modules)
    return tuple(dict.fromkeys(name for name in wanted if name and canonicalize_name(name) not in present))


def _named_distribution(job: InstallJob, recipe: Recipe, module: str) -> str:
    """The distribution of a module; empty unless it is well known or named in the project's manifests.

    A name is never guessed beyond that: an unknown distribution of the module's name may hold anything.
    """
    if any(f"{module}.".startswith(f"{name}.") for name in recipe.packages):
        return ""
    if known := known_distribution(module):
        return known
    guess = distribution_of(module)
    manifest = job.manifest
    tables = (
        *manifest.groups.values(),
        *manifest.extras.values(),
        *manifest.requirement_files.values(),
        manifest.dependencies,
        manifest.test_requirements,
    )
    named = " ".join(text for texts in tables for text in texts).lower()
    return guess if guess and guess.lower() in named else ""


class _LockSearch:
    """The state of one search; ``recipe`` is replaced after every decision."""

    def __init__(self, job: InstallJob, recipe: Recipe, work: Path) -> None:
        self.job, self.recipe, self.work = job, recipe, work
        self.relocated = False
        work.mkdir()
        work.chmod(0o755)

    def run(self, missing_modules: MissingModules | None) -> tuple[LockedRecipe, Path]:
        with self.job.open(self.recipe) as (session, installer):
            self.recipe = installer.install(self.recipe)
            for number in range(MAX_ROUNDS + 1):
                env, built = self.work / f"env{number}", self.work / f"built{number}"
                session.snapshot(ENV, env)
                session.snapshot(REPO, built)
                prune_built_layer(built, self.job.sources)
                lock = installer.freeze()
                if number == MAX_ROUNDS or not self._improve(installer, lock, env, built, missing_modules):
                    break
            lock, hashes = installer.lock(self.recipe.cutoff)
        if not hashes:
            self._note("lock: the index gives no hashes for it")
        if copies := remove_vendored_copies(env, self.recipe.packages):
            self._note(f"environment: removed vendored copies of the project: {', '.join(copies)}")
        link_scripts(env, self.job.sources)
        self._require_imports(env, built)
        return LockedRecipe(recipe=self.recipe, lock=lock, hashes=hashes), env

    def _note(self, *lines: str) -> None:
        self.recipe = replace(self.recipe, evidence=(*self.recipe.evidence, *lines))

    def _improve(
        self,
        installer: UvInstaller,
        lock: tuple[str, ...],
        env: Path,
        built: Path,
        missing_modules: MissingModules | None,
    ) -> bool:
        """Repair one defect of the environment; return whether anything changed, so that it must be checked again."""
        report = self.job.imports(self.recipe, env, built)
        if report.elsewhere and not self.relocated:
            self.recipe, self.relocated = installer.relocate(self.recipe), True
            return True
        missing = report.missing
        if not missing and not report.errors and missing_modules is not None:
            missing = missing_modules(self.job.provisional(self.recipe, lock, env, built))
        return self._add(installer, missing, lock)

    def _add(self, installer: UvInstaller, modules: tuple[str, ...], lock: tuple[str, ...]) -> bool:
        """Install the distributions of missing modules; return whether any could be installed."""
        wanted = distributions_of(self.job, self.recipe, modules, lock)
        added = tuple(name for name in wanted if installer.add([name], self.recipe))
        if not added:
            return False
        self.recipe = replace(self.recipe, requirements=(*self.recipe.requirements, *added))
        self._note(f"imports: {', '.join(modules)} missing, added {', '.join(added)}")
        return True

    def _require_imports(self, env: Path, built: Path) -> None:
        """The main package must import from the checkout; other packages that do not are dropped from the recipe."""
        report = self.job.imports(self.recipe, env, built)
        bad = {**report.errors, **dict.fromkeys(report.elsewhere, "imported from outside the checkout")}
        good = tuple(name for name in self.recipe.packages if name not in bad)
        if not good or self.job.main_package(self.recipe) in bad:
            detail = "; ".join(f"{name}: {error}" for name, error in bad.items()) or "it has no importable package"
            reason = reason_of_import(detail)
            hint = what_to_install(detail, self.recipe.system_packages) if reason == "missing_system_lib" else ""
            raise EnvironmentFailure(f"{self.job.repo.repo}: {detail}\n{hint}".strip(), reason=reason)
        if bad:
            self.recipe = replace(self.recipe, packages=good)
            self._note(*(f"imports: {name} is left out ({error})" for name, error in bad.items()))
