"""The find stage: finds features that could be deleted, in the order in which they are tried.

Comes after :mod:`excise.pipeline.stages.coverage_stage`; :mod:`excise.pipeline.stages.prove_stage` is next, or
:mod:`excise.pipeline.stages.propose_stage` where a model proposes further features.
The search itself is in :mod:`excise.extractors.features.find_features`.
"""

from __future__ import annotations

from excise.config import Settings
from excise.extractors.features.find_features import FoundFeatures, find_features
from excise.extractors.features.search_index import MIN_LOC, FeatureLimits
from excise.pipeline.stages.environment_stage import open_workbench
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, stage
from excise.pipeline.stages.stage_cache import StageCache, measurement_fingerprint, stage_key
from excise.system.deadline import deadline
from excise.verifiers.workbench import Prepared


@stage("find")
def find_stage(settings: Settings, prepared: Prepared, min_loc: int = MIN_LOC) -> FoundFeatures:
    """Find features in the coverage map and the symbol graph; none has fewer than ``min_loc`` lines of code."""
    fingerprint = measurement_fingerprint(settings)
    key = stage_key("find", prepared.environment.env_id, fingerprint, settings.seed, min_loc)
    cache = StageCache(settings.cache)
    cached = cache.get(FoundFeatures, "find", key)
    if isinstance(cached, FoundFeatures):
        return cached
    bench = open_workbench(settings, prepared)
    assert prepared.coverage is not None
    with deadline(STAGE_GRACE_S, f"Finding features in {prepared.repo.repo}"):
        found = find_features(
            bench.codebase,
            prepared.coverage,
            bench.trusted,
            tree=prepared.repo.tree,
            limits=FeatureLimits(max_f2p_share=settings.verdict.max_f2p_share, min_loc=min_loc),
            seed=settings.seed,
            path=lambda symbol: bench.editor.path(bench.codebase, symbol),
        )
    cache.put("find", key, found)
    return found
