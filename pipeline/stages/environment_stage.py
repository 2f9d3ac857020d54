"""The stages: each one a function from records to records, with its answer kept in the cache."""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from excise.config import Settings
from excise.datasets.store import Store
from excise.envs.install.coverage_layer import coverage_layer
from excise.envs.install.install import install
from excise.envs.install.install_job import Installed, InstallRequest
from excise.envs.interpreters import find_interpreters
from excise.envs.model_driven.install_commands import install_commands
from excise.envs.plan.plan_recipe import plan_recipe
from excise.envs.sandbox.mount_points import open_to_all
from excise.envs.sandboxes import get_sandbox
from excise.errors import EnvironmentFailure
from excise.extractors.fetch.trees import git_tree_hash, list_files, pack
from excise.extractors.finder import MIN_LOC, FeatureLimits, find_features
from excise.extractors.sources import resolve_source, source_of
from excise.pipeline.stages.error_boundary import GRACE_S, measuring, recall, remember, stage
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.protocols import CoverageRequest, Policy, Sandbox
from excise.system.deadline import deadline
from excise.types import Baseline, CoverageMap, Environment, Feature, Recipe, Repo, SourceSpec
from excise.verifiers.baseline import longest_s, missing_modules, run_baseline
from excise.verifiers.shipped_tree import scrub
from excise.verifiers.workbench import Layers, Prepared, Workbench

SLOW_TEST_S = 0.05
"""Tests that take longer are worth a monitoring collector of their own in the coverage run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """A fetched repository."""

    repo: Repo
    """Its record."""
    layer: str
    """Folder with its files, shared by all sandboxes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What the finder found."""

    features: tuple[Feature, ...]
    """In the order in which to try them."""
    num_symbols: int
    """Definitions outside tests."""
    num_covered: int
    """Those that a trusted test executes."""
    not_proposed: dict[str, int]
    """Why symbols were passed over."""


def sandbox_of(settings: Settings) -> Sandbox:
    """The backend that the settings name."""
    return get_sandbox(settings.sandbox, lenient=settings.lenient_sandbox, docker=settings.docker)


# ------------------------------------------------------------------------------------------- fetch
@stage("fetch")
def fetch_stage(settings: Settings, spec: SourceSpec) -> Sourced:
    """Resolve, fetch, and keep the sources as a layer and as an archive in the task set."""
    return fetch(settings, spec)


def fetch(settings: Settings, spec: SourceSpec, *, keep_blob: bool = True) -> Sourced:
    """The sources as a layer of the cache; ``keep_blob``: their archive goes into the task set.

    Raises :class:`SourceError`.
    """
    adapter = resolve_source(spec)
    with deadline(settings.verdict.install_timeout_s + GRACE_S, f"Fetching {spec.spec}"):
        pinned = adapter.resolve(spec, settings.cache)
        key = stage_key("fetch", pinned)
        cache = StageCache(settings.cache)
        known = cache.get(Sourced, "fetch", key)
        if isinstance(known, Sourced) and Path(known.layer).is_dir() and (not keep_blob or _has_blob(settings, known)):
            return known
        scratch = new_folder(settings.cache / "trees")
        try:
            fetched = source_of(pinned).fetch(pinned, settings.cache, scratch / "files")
            sourced = keep_sources(settings, fetched.repo, fetched.root, keep_blob=keep_blob)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        cache.put("fetch", key, sourced)
        return sourced


def _has_blob(settings: Settings, sourced: Sourced) -> bool:
    return bool(sourced.repo.blob) and Store(settings.out).blobs.has(sourced.repo.blob)


def keep_sources(settings: Settings, repo: Repo, files: Path, *, keep_blob: bool = True) -> Sourced:
    """Put files into the cache as a layer, and their archive into the task set's blob store.

    What no agent may get goes first: layer, archive and tree hash are of what is shipped, run and graded.
    """
    scrub(files)
    tree = git_tree_hash(files)
    blob = repo.blob
    if keep_blob:
        archive = files.parent / "sources.tar.xz"
        pack(files, archive)
        blob = Store(settings.out).put_blob(archive)
    paths = list_files(files)
    layer = settings.cache / "trees" / tree
    if not layer.exists():
        open_to_all(files)
        try:
            files.rename(layer)
        except OSError:
            if not layer.is_dir():
                raise
    size = sum((layer / path).lstat().st_size for path in paths)
    repo = replace(repo, tree=tree, blob=blob, num_files=len(paths), num_bytes=size)
    return Sourced(repo=repo, layer=str(layer))


def new_folder(parent: Path) -> Path:
    """A new, private, empty folder."""
    parent.mkdir(parents=True, exist_ok=True)
    parent.chmod(0o700)
    folder = parent / f".new-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    return folder


# ------------------------------------------------------------------------------------- environment
@stage("environment")
def environment_stage(settings: Settings, spec: SourceSpec, sourced: Sourced) -> Prepared:
    """Plan and install, in a sandbox that reaches the package indexes only; nothing of the project runs on the host."""
    repo = sourced.repo
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
    if (known := known_environment(cache, "environment", key, repo)) is not None:
        return known
    try:
        prepared = install_recipe(settings, stage0_recipe(settings, spec, sourced), sourced)
    except EnvironmentFailure as failure:
        remember(cache, "environment", key, repo.repo, failure)
        raise
    cache.put("environment", key, prepared)
    return prepared


def cutoff_of(settings: Settings, repo: Repo) -> str:
    """Date after which nothing that is installed was released."""
    return repo.created_at[:10] if settings.verdict.cutoff == "auto" else settings.verdict.cutoff


def install_options(settings: Settings, spec: SourceSpec, repo: Repo) -> list[object]:
    """What the user's options have to do with an installation: part of its key."""
    return [spec.python, spec.extras, spec.requirements, spec.test_args, cutoff_of(settings, repo)]


def stage0_recipe(settings: Settings, spec: SourceSpec, sourced: Sourced) -> Recipe:
    """What the manifests alone say. Raises :class:`EnvironmentFailure`."""
    layer, cutoff = Path(sourced.layer), cutoff_of(settings, sourced.repo)
    return plan_recipe(layer, sourced.repo, spec, find_interpreters(), cutoff)


def known_environment(cache: StageCache, stage_name: str, key: str, repo: Repo) -> Prepared | None:
    """An environment that was made before and whose layers are still there. Raises a kept failure again."""
    known = recall(Prepared, cache, stage_name, key)
    if known is None or not (Path(known.layers.env).is_dir() and Path(known.layers.sources).is_dir()):
        return None
    return replace(known, repo=repo)


def install_recipe(
    settings: Settings, recipe: Recipe, sourced: Sourced, *, made: Environment | None = None
) -> Prepared:
    """Build the environment of a recipe; ``made``: one that was made before is built again from its lock.

    Raises :class:`EnvironmentFailure`.
    """
    verdict = settings.verdict
    request = install_request(settings, recipe, sourced)

    def missing(installed: Installed) -> tuple[str, ...]:
        return missing_modules(workbench(settings, as_prepared(settings, sourced, installed)))

    with deadline(3 * verdict.install_timeout_s + GRACE_S, f"Installing {sourced.repo.repo}"):
        if recipe.commands or recipe.mocks:
            installed = install_commands(request, made.lock if made else ())
        else:
            installed = install(request, missing_modules=missing, previous=made)
    return as_prepared(settings, sourced, installed)


def install_request(settings: Settings, recipe: Recipe, sourced: Sourced) -> InstallRequest:
    """The installation of a recipe for these sources, with the sandbox and limits of the settings."""
    return InstallRequest(
        recipe=recipe,
        repo=sourced.repo,
        sources=Path(sourced.layer),
        sandbox=sandbox_of(settings),
        policy=install_policy(settings),
        cache=settings.cache,
        timeout_s=settings.verdict.install_timeout_s,
    )


def install_policy(settings: Settings) -> Policy:
    """Limits of installing sessions: twice those of tests. No network: a step that needs it switches it on."""
    verdict = settings.verdict
    return Policy(
        memory_bytes=2 * verdict.memory_mb << 20,
        pids=2 * verdict.pids,
        disk_bytes=2 * verdict.disk_mb << 20,
        cpus=verdict.cpus,
    )


def as_prepared(settings: Settings, sourced: Sourced, installed: Installed) -> Prepared:
    """What the later stages need of an installed environment. Raises :class:`EnvironmentFailure` (``infra``)."""
    empty = settings.cache / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    layers = Layers(
        sources=sourced.layer,
        built=str(installed.built_layer),
        env=str(installed.env_layer),
        pyc=str(empty),
        tools=str(coverage_layer(installed.environment.recipe.python, settings.cache)),
    )
    return Prepared(repo=sourced.repo, environment=installed.environment, layers=layers)


# ---------------------------------------------------------------------------------------- baseline
@stage("baseline")
def baseline_stage(settings: Settings, prepared: Prepared) -> Prepared:
    """Run the untouched project N times; the first run's byte code becomes a layer."""
    key = stage_key("baseline", prepared.environment.env_id, measuring(settings))
    cache = StageCache(settings.cache)
    warm = Path(prepared.layers.env).parent / "pyc"
    known = recall(Baseline, cache, "baseline", key)
    if known is None or not warm.is_dir():
        bench = workbench(settings, prepared)
        try:
            with deadline(longest_s(settings.verdict) + GRACE_S, f"The baseline of {prepared.repo.repo}"):
                known = run_baseline(bench, warm)
        except EnvironmentFailure as failure:
            remember(cache, "baseline", key, prepared.repo.repo, failure)
            raise
        cache.put("baseline", key, known)
    return replace(prepared, baseline=known, layers=replace(prepared.layers, pyc=str(warm)))


def workbench(settings: Settings, prepared: Prepared) -> Workbench:
    """A workbench in this process."""
    return Workbench(prepared, settings.verdict, sandbox_of(settings))


# ---------------------------------------------------------------------------------------- coverage
@stage("coverage")
def coverage_stage(settings: Settings, prepared: Prepared) -> Prepared:
    """Map every test to the symbols it executes, each in a process of its own."""
    key = stage_key("coverage", prepared.environment.env_id, measuring(settings))
    cache = StageCache(settings.cache)
    known = cache.get(CoverageMap, "coverage", key)
    if not isinstance(known, CoverageMap):
        with deadline(settings.verdict.suite_timeout_s * 3 + GRACE_S, f"The coverage of {prepared.repo.repo}"):
            known = _map(settings, prepared)
        cache.put("coverage", key, known)
    return replace(prepared, coverage=known)


def _map(settings: Settings, prepared: Prepared) -> CoverageMap:
    bench = workbench(settings, prepared)
    baseline = bench.baseline
    budget = settings.verdict.suite_timeout_s
    expected = 5 * baseline.suite_s() + 0.06 * len(baseline.durations)
    for fork in (True, False) if expected < budget else (False,):
        request = CoverageRequest(
            env_id=prepared.environment.env_id,
            timeout_s=budget,
            test_timeout_s=5 * bench.test_timeout_s(None),
            fork=fork,
            ids=sorted(baseline.passing()),
            slow=[test for test, seconds in baseline.durations.items() if seconds > SLOW_TEST_S],
        )
        try:
            with bench.open({}) as session:
                mapped, alone = bench.language.map_coverage(session, bench.recipe, bench.codebase, request)
        except EnvironmentFailure as failure:
            if fork and failure.reason == "timeout":
                continue
            raise
        passing = set(baseline.passing())
        unstable = sorted(t for t in passing if alone.get(t) != "PASSED")
        return replace(mapped, unstable=tuple(unstable))
    raise EnvironmentFailure("The coverage run took too long; raise verdict.suite_timeout_s.", reason="timeout")


# -------------------------------------------------------------------------------------------- find
@stage("find")
def find_stage(settings: Settings, prepared: Prepared, min_loc: int = MIN_LOC) -> Proposed:
    """Features worth trying, from the coverage map and the symbol graph; none smaller than ``min_loc`` lines."""
    key = stage_key("find", prepared.environment.env_id, measuring(settings), settings.seed, min_loc)
    cache = StageCache(settings.cache)
    known = cache.get(Proposed, "find", key)
    if isinstance(known, Proposed):
        return known
    bench = workbench(settings, prepared)
    assert prepared.coverage is not None
    with deadline(GRACE_S, f"Finding features in {prepared.repo.repo}"):
        found = find_features(
            bench.codebase,
            prepared.coverage,
            bench.trusted,
            tree=prepared.repo.tree,
            limits=FeatureLimits(max_f2p_share=settings.verdict.max_f2p_share, min_loc=min_loc),
            seed=settings.seed,
        )
    proposed = Proposed(
        features=found.features,
        num_symbols=found.num_symbols,
        num_covered=found.num_covered,
        not_proposed=found.not_proposed,
    )
    cache.put("find", key, proposed)
    return proposed
