"""The fetch stage: resolves a source as the user names it, and stores a snapshot of its files.

Comes first; :mod:`excise.pipeline.stages.environment_stage` is next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from excise.config import Settings
from excise.envs.sandbox.mount_points import open_to_all
from excise.errors import StoreError
from excise.extractors.fetch.trees import git_tree_hash, list_files, pack, unpack
from excise.extractors.languages import detect_language
from excise.extractors.sources import resolve_source, source_of
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, stage
from excise.pipeline.stages.run_files import has_blob, put_blob
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.system.deadline import deadline
from excise.system.folders import publish_folder, temporary_folder_beside
from excise.types import Repo, SourceSpec
from excise.verifiers.shipped_tree import scrub


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedSources:
    """A fetched repository."""

    repo: Repo
    """The record of its snapshot."""
    layer: str
    """Folder of the cache with its files, which all sandboxes share."""


@stage("fetch")
def fetch_stage(settings: Settings, spec: SourceSpec) -> FetchedSources:
    """Resolve a source, fetch it, and store its files as a layer of the cache and as an archive of the task set."""
    return fetch(settings, spec)


def fetch(settings: Settings, spec: SourceSpec, *, keep_archive: bool = True) -> FetchedSources:
    """Fetch a source, unless the cache has its files. With ``keep_archive``, store their archive in the task set.

    Raises :class:`excise.errors.SourceError`.
    """
    adapter = resolve_source(spec)
    with deadline(settings.verdict.install_timeout_s + STAGE_GRACE_S, f"Fetching {spec.spec}"):
        pinned = adapter.resolve(spec, settings.cache)
        key = stage_key("fetch", pinned)
        cache = StageCache(settings.cache)
        cached = cache.get(FetchedSources, "fetch", key)
        if isinstance(cached, FetchedSources) and _is_complete(settings, cached, keep_archive=keep_archive):
            return cached
        with temporary_folder_beside(trees_folder(settings) / "fetched") as work:
            fetched = source_of(pinned).fetch(pinned, settings.cache, work / "files")
            repo = replace(fetched.repo, language=detect_language(fetched.root))
            sources = store_sources(settings, repo, fetched.root, keep_archive=keep_archive)
        cache.put("fetch", key, sources)
        return sources


def _is_complete(settings: Settings, sources: FetchedSources, *, keep_archive: bool) -> bool:
    if not Path(sources.layer).is_dir():
        return False
    return not keep_archive or has_blob(settings, sources.repo.blob)


def trees_folder(settings: Settings) -> Path:
    """Return the cache folder for layers of sources, which are named by tree hash; other users have no access."""
    folder = settings.cache / "trees"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def store_sources(settings: Settings, repo: Repo, files: Path, *, keep_archive: bool = True) -> FetchedSources:
    """Move ``files`` into the cache as a layer, and store their archive in the task set.

    Files that no agent may get (caches, environments, leftovers) are removed first, so that layer, archive and tree
    hash describe the files that are shipped, run and graded.
    """
    scrub(files, repo.language)
    tree = git_tree_hash(files)
    blob = repo.blob
    if keep_archive:
        archive = files.parent / "sources.tar.xz"
        pack(files, archive)
        blob = put_blob(settings, archive)
    paths = list_files(files)
    layer = trees_folder(settings) / tree
    if not layer.exists():
        open_to_all(files)
        try:
            publish_folder(files, layer)
        except OSError:  # another process was quicker
            if not layer.is_dir():
                raise
    size = sum((layer / path).lstat().st_size for path in paths)
    repo = replace(repo, tree=tree, blob=blob, num_files=len(paths), num_bytes=size)
    return FetchedSources(repo=repo, layer=str(layer))


def unpacked_sources(settings: Settings, repo: Repo, archive: Path) -> FetchedSources:
    """Store the sources of a snapshot from the archive of a task set.

    Raises :class:`SourceError` for a damaged archive, :class:`StoreError` (``tree_differs``) if it holds other sources.
    """
    with temporary_folder_beside(trees_folder(settings) / "unpacked") as work:
        unpack(archive, work / "files")
        if git_tree_hash(work / "files") != repo.tree:
            raise StoreError(f"{archive} does not hold the sources of {repo.repo}.", reason="tree_differs")
        return store_sources(settings, repo, work / "files", keep_archive=False)
