"""The environment stage: installs an environment from a snapshot's manifests ("stage 0", which needs no model).

Comes after :mod:`excise.pipeline.stages.fetch_stage`. :mod:`excise.pipeline.stages.baseline_stage` is next, or, after a
failure that a model may fix, :mod:`excise.pipeline.stages.model_stage`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from excise.config import Settings
from excise.envs.install.install_job import Installed, InstallRequest
from excise.envs.sandboxes import get_sandbox
from excise.envs.toolchains import toolchain_of
from excise.errors import EnvironmentFailure
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, stage
from excise.pipeline.stages.fetch_stage import FetchedSources, unpacked_sources
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.protocols import Policy, Sandbox
from excise.system.deadline import deadline
from excise.types import Environment, Recipe, Repo, SourceSpec
from excise.verifiers.baseline import missing_modules
from excise.verifiers.workbench import Layers, Prepared, Workbench


@stage("environment")
def environment_stage(settings: Settings, spec: SourceSpec, sources: FetchedSources) -> Prepared:
    """Plan a recipe from the manifests and install it.

    Runs in a sandbox that reaches the package indexes only, unless a build needs more; nothing of the project runs on
    the host.
    """
    repo = sources.repo
    verdict = settings.verdict
    limits = [
        verdict.install_timeout_s,
        verdict.disk_mb,
        verdict.memory_mb,
        verdict.pids,
        verdict.cpus,
        sandbox_of(settings).system(),
    ]
    key = stage_key("environment", repo.tree, install_options(settings, spec, repo), limits)
    cache = StageCache(settings.cache)
    if (cached := cached_environment(cache, "environment", key, repo)) is not None:
        return cached
    try:
        prepared = install_recipe(settings, recipe_from_manifests(settings, spec, sources), sources)
    except EnvironmentFailure as failure:
        cache.put_failure("environment", key, repo.repo, failure)
        raise
    cache.put("environment", key, prepared)
    return prepared


def sandbox_of(settings: Settings) -> Sandbox:
    """The sandbox backend that the settings name."""
    return get_sandbox(settings.sandbox, lenient=settings.lenient_sandbox, docker=settings.docker)


def open_workbench(settings: Settings, prepared: Prepared) -> Workbench:
    """A workbench for a prepared repository, with the sandbox and the limits of the settings."""
    return Workbench(prepared, settings.verdict, sandbox_of(settings))


def cutoff_of(settings: Settings, repo: Repo) -> str:
    """Return the ISO date before which releases must have been published to be installed; empty for no limit."""
    return repo.created_at[:10] if settings.verdict.cutoff == "auto" else settings.verdict.cutoff


def install_options(settings: Settings, spec: SourceSpec, repo: Repo) -> list[object]:
    """Return the user's options that change what is installed; part of cache keys."""
    return [spec.python, spec.extras, spec.requirements, spec.test_args, cutoff_of(settings, repo)]


def recipe_from_manifests(settings: Settings, spec: SourceSpec, sources: FetchedSources) -> Recipe:
    """Plan the recipe from the manifests, without a model. Raises :class:`EnvironmentFailure`."""
    layer, cutoff = Path(sources.layer), cutoff_of(settings, sources.repo)
    return toolchain_of(sources.repo.language).plan(layer, sources.repo, spec, cutoff, settings.cache)


def cached_environment(cache: StageCache, stage_name: str, key: str, repo: Repo) -> Prepared | None:
    """Return the cached environment; ``None`` if there is none, or no layers of it. Raises a cached failure again."""
    cached = cache.get_or_raise(Prepared, stage_name, key)
    if cached is None or not (Path(cached.layers.env).is_dir() and Path(cached.layers.sources).is_dir()):
        return None
    return replace(cached, repo=repo)


def install_recipe(
    settings: Settings, recipe: Recipe, sources: FetchedSources, *, previous: Environment | None = None
) -> Prepared:
    """Build the environment of a recipe; with ``previous``, the same environment again from its lock.

    Raises :class:`EnvironmentFailure`.
    """
    request = install_request(settings, recipe, sources)

    def missing(installed: Installed) -> tuple[str, ...]:
        return missing_modules(open_workbench(settings, prepared_repo(settings, sources, installed)))

    limit_s = 3 * settings.verdict.install_timeout_s + STAGE_GRACE_S
    with deadline(limit_s, f"Installing {sources.repo.repo}"):
        toolchain = toolchain_of(sources.repo.language)
        installed = toolchain.install(request, missing_modules=missing, previous=previous)
    return prepared_repo(settings, sources, installed)


def rebuilt_environment(settings: Settings, repo: Repo, environment: Environment, archive: Path) -> Prepared:
    """Build an environment again from its lock, unless the cache has it; ``archive`` holds the untouched sources.

    Raises what :func:`~excise.pipeline.stages.fetch_stage.unpacked_sources` does, and :class:`EnvironmentFailure`.
    """
    sources = unpacked_sources(settings, repo, archive)
    return install_recipe(settings, environment.recipe, sources, previous=environment)


def install_request(settings: Settings, recipe: Recipe, sources: FetchedSources) -> InstallRequest:
    """Make the request to install a recipe for these sources, with the sandbox and the limits of the settings."""
    return InstallRequest(
        recipe=recipe,
        repo=sources.repo,
        sources=Path(sources.layer),
        sandbox=sandbox_of(settings),
        policy=install_policy(settings),
        cache=settings.cache,
        timeout_s=settings.verdict.install_timeout_s,
    )


def install_policy(settings: Settings) -> Policy:
    """Return the limits of installing sessions: twice those of tests, and no network except for steps that need it."""
    verdict = settings.verdict
    return Policy(
        memory_bytes=2 * verdict.memory_mb << 20,
        pids=2 * verdict.pids,
        disk_bytes=2 * verdict.disk_mb << 20,
        cpus=verdict.cpus,
    )


def prepared_repo(settings: Settings, sources: FetchedSources, installed: Installed) -> Prepared:
    """Make the record of sources and environment for the later stages.

    Raises :class:`EnvironmentFailure` (``infra``) if the layer of tools cannot be made.
    """
    toolchain = toolchain_of(sources.repo.language)
    layers = Layers(
        sources=sources.layer,
        built=str(installed.built_layer),
        env=str(installed.env_layer),
        outputs=str(toolchain.outputs(settings.cache, installed)),
        tools=str(toolchain.tools(settings.cache, installed)),
    )
    return Prepared(repo=sources.repo, environment=installed.environment, layers=layers)
