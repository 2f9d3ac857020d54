"""From a recipe to a lock: install, look whether it imports, add what is missing, look again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from packaging.utils import canonicalize_name

from excise.envs.install.failure_classes import reason_of_import
from excise.envs.install.install_job import Installed, Job, MissingModules, Solution
from excise.envs.install.layer_contents import prune_built_layer, remove_vendored_twins
from excise.envs.install.system_packages import what_to_install
from excise.envs.install.uv_installer import Installer
from excise.envs.plan.import_names import distribution_of, known_distribution
from excise.envs.sandbox.mount_points import ENV, REPO
from excise.errors import EnvironmentFailure
from excise.types import Environment, Recipe

MAX_ROUNDS = 3
"""How often missing modules are looked for and added."""


def solve(job: Job, recipe: Recipe, more: MissingModules | None, work: Path) -> tuple[Solution, Path]:
    """What to install, tried out; and the folder of the environment in which it was.

    Without a network first. A build that misses one is tried again with it, and the recipe says so.
    ``work`` is an empty folder for layers. Raises :class:`EnvironmentFailure`.
    """
    try:
        return _Solver(job, recipe, work / "solve").run(more)
    except EnvironmentFailure as failure:
        if failure.reason != "network_required" or recipe.build_network:
            raise
        line = "installer: a build downloads by itself, so it is let onto the network, without credentials"
        recipe = replace(recipe, build_network=True, evidence=(*recipe.evidence, line))
        return _Solver(job, recipe, work / "online").run(more)


class _Solver:
    def __init__(self, job: Job, recipe: Recipe, work: Path) -> None:
        self.job, self.recipe, self.work = job, recipe, work
        self.relocated = False
        work.mkdir()
        work.chmod(0o755)

    def run(self, more: MissingModules | None) -> tuple[Solution, Path]:
        with self.job.open(self.recipe) as (session, installer):
            self.recipe = installer.install(self.recipe)
            for number in range(MAX_ROUNDS + 1):
                env, built = self.work / f"env{number}", self.work / f"built{number}"
                session.snapshot(ENV, env)
                session.snapshot(REPO, built)
                prune_built_layer(built, self.job.sources)
                lock = installer.freeze()
                if number == MAX_ROUNDS or not self._improve(installer, lock, env, built, more):
                    break
            lock, hashes = installer.lock(self.recipe.cutoff)
        if not hashes:
            line = "lock: the index gives no hashes for it"
            self.recipe = replace(self.recipe, evidence=(*self.recipe.evidence, line))
        if twins := remove_vendored_twins(env, self.recipe.packages):
            line = f"environment: removed vendored copies of the project: {', '.join(twins)}"
            self.recipe = replace(self.recipe, evidence=(*self.recipe.evidence, line))
        self._require_imports(env, built)
        return Solution(recipe=self.recipe, lock=lock, hashes=hashes), env

    def _improve(
        self, installer: Installer, lock: tuple[str, ...], env: Path, built: Path, more: MissingModules | None
    ) -> bool:
        """Whether something was changed, so that it is worth looking again."""
        found = self.job.imports(self.recipe, env, built)
        if found.elsewhere and not self.relocated:
            self.recipe, self.relocated = installer.relocate(self.recipe), True
            return True
        missing = found.missing
        if not missing and not found.errors and more is not None:
            repo = self.job.repo
            record = Environment(env_id="", repo=repo.repo, tree=repo.tree, recipe=self.recipe, lock=lock)
            missing = more(Installed(environment=record, env_layer=env, built_layer=built))
        return self._add(installer, missing, set(lock))

    def _add(self, installer: Installer, modules: tuple[str, ...], lock: set[str]) -> bool:
        present = {canonicalize_name(line.partition("==")[0]) for line in lock}
        wanted = [d for m in modules if (d := self._distribution(m)) and canonicalize_name(d) not in present]
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
        if any(f"{module}.".startswith(f"{name}.") for name in self.recipe.packages):
            return ""
        if known := known_distribution(module):
            return known
        guess = distribution_of(module)
        m = self.job.manifest
        tables = (
            *m.groups.values(),
            *m.extras.values(),
            *m.requirement_files.values(),
            m.dependencies,
            m.test_requirements,
        )
        named = " ".join(text for texts in tables for text in texts).lower()
        return guess if guess and guess.lower() in named else ""

    def _require_imports(self, env: Path, built: Path) -> None:
        """The main package must come from the checkout; side packages that do not import are given up."""
        found = self.job.imports(self.recipe, env, built)
        bad = {**found.errors, **dict.fromkeys(found.elsewhere, "imported from outside the checkout")}
        good = tuple(name for name in self.recipe.packages if name not in bad)
        if not good or self.job.main_package(self.recipe) in bad:
            detail = "; ".join(f"{name}: {error}" for name, error in bad.items()) or "it has no importable package"
            reason = reason_of_import(detail)
            hint = what_to_install(detail, self.recipe.system_packages) if reason == "missing_system_lib" else ""
            raise EnvironmentFailure(f"{self.job.repo.repo}: {detail}\n{hint}".strip(), reason=reason)
        if bad:
            lines = tuple(f"imports: {name} is left out ({error})" for name, error in bad.items())
            self.recipe = replace(self.recipe, packages=good, evidence=(*self.recipe.evidence, *lines))
