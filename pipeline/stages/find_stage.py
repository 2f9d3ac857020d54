"""The find stage: finds features that could be deleted, in the order in which they are tried.

Comes after :mod:`excise.pipeline.stages.coverage_stage`; :mod:`excise.pipeline.stages.prove_stage` is next.
The search itself is in :mod:`excise.extractors.finder`.
"""

from __future__ import annotations

from dataclasses import dataclass

from excise.config import Settings
from excise.extractors.finder import MIN_LOC, FeatureLimits, find_features
from excise.pipeline.stages.environment_stage import open_workbench
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, stage
from excise.pipeline.stages.stage_cache import StageCache, measurement_fingerprint, stage_key
from excise.system.deadline import deadline
from excise.types import Feature
from excise.verifiers.workbench import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedFeatures:
    """The features of one repository, and counts of the symbols that were considered."""

    features: tuple[Feature, ...]
    """Features in the order in which they are tried."""
    num_symbols: int
    """Number of definitions outside tests."""
    num_covered: int
    """Number of definitions that a trusted test executes."""
    not_proposed: dict[str, int]
    """Reason why symbols are in no feature, to the number of such symbols."""


@stage("find")
def find_stage(settings: Settings, prepared: Prepared, min_loc: int = MIN_LOC) -> ProposedFeatures:
    """Find features in the coverage map and the symbol graph; none has fewer than ``min_loc`` lines of code."""
    fingerprint = measurement_fingerprint(settings)
    key = stage_key("find", prepared.environment.env_id, fingerprint, settings.seed, min_loc)
    cache = StageCache(settings.cache)
    cached = cache.get(ProposedFeatures, "find", key)
    if isinstance(cached, ProposedFeatures):
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
        )
    proposed = ProposedFeatures(
        features=found.features,
        num_symbols=found.num_symbols,
        num_covered=found.num_covered,
        not_proposed=found.not_proposed,
    )
    cache.put("find", key, proposed)
    return proposed
