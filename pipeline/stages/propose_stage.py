"""The propose stage: the configured model proposes features beside those that were found (``model.propose_features``).

Comes after :mod:`excise.pipeline.stages.find_stage`; :mod:`excise.pipeline.stages.prove_stage` is next, and treats
proposed features like all others. One proposal is in :mod:`excise.pipeline.stages.deletion_proposer`. Each is a job of
its own, with its own budget, transcript and cached answer; one that comes to nothing is a rejection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from excise.config import Settings
from excise.envs.model_driven.model_access import ModelAccess
from excise.errors import DeletionRefused
from excise.extractors.features.find_features import FoundFeatures
from excise.extractors.features.search_index import FeatureLimits, build_index
from excise.pipeline.stages.deletion_proposer import VERSION, ProposalContext, propose
from excise.pipeline.stages.environment_stage import open_workbench
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, is_conclusive, rejection_of, stage
from excise.pipeline.stages.model_conversation import answering_model, model_conversation
from excise.pipeline.stages.stage_cache import StageCache, measurement_fingerprint, stage_key
from excise.system.deadline import deadline
from excise.types import Feature, Rejection
from excise.verifiers.agent_workspace import Workspace, workspace
from excise.verifiers.workbench import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedFeatures:
    """What a model proposed for one repository."""

    features: tuple[Feature, ...] = ()
    """The proposals that can be tried, in order."""
    rejections: tuple[Rejection, ...] = ()
    """Those that came to nothing."""


@stage("propose")
def propose_stage(settings: Settings, prepared: Prepared, found: FoundFeatures) -> ProposedFeatures:
    """Ask the model for features, one after the other, so that each knows of those before it.

    If the infrastructure fails or the model does not answer, no more are asked for.
    """
    bench = open_workbench(settings, prepared)
    assert prepared.coverage is not None
    limits = FeatureLimits(max_f2p_share=settings.verdict.max_f2p_share)
    index = build_index(bench.codebase, prepared.coverage, bench.trusted, limits)
    features: list[Feature] = []
    rejections: list[Rejection] = []
    with workspace(bench, {}) as tree:
        for number in range(1, settings.model.propose_features + 1):
            context = ProposalContext(
                bench=bench,
                index=index,
                known=(*features, *found.features),
                refused=tuple(row.detail for row in rejections),
            )
            answer = _proposal(settings, context, tree, number)
            if isinstance(answer, Feature):
                features.append(answer)
                continue
            rejections.append(answer)
            if not is_conclusive(answer):
                break
    return ProposedFeatures(features=tuple(features), rejections=tuple(rejections))


def _proposal(settings: Settings, context: ProposalContext, tree: Workspace, number: int) -> Feature | Rejection:
    """One proposal, or why there is none; both are cached, unless the infrastructure failed."""
    model, prepared = settings.model, context.bench.prepared
    known: Sequence[str] = [feature.feature_id for feature in context.known]
    key = stage_key(
        "propose", VERSION, prepared.environment.env_id, measurement_fingerprint(settings), answering_model(settings),
        model.propose_steps, number, known, list(context.refused),
    )  # fmt: skip
    cache, name = StageCache(settings.cache), f"propose-{key}"
    if (cached := cache.get(Feature, "propose", key)) is not None:
        return cached
    answer: Feature | Rejection
    try:
        limit_s = model.max_wall_s + STAGE_GRACE_S
        with (
            deadline(limit_s, f"A proposal of {model.model} for {context.bench.repo.repo}"),
            model_conversation(settings, name) as (client, meter, transcript),
        ):
            access = ModelAccess.of(model, client, transcript)
            feature = propose(context, access, tree, max_steps=model.propose_steps, left_s=meter.left_s)
            answer = replace(feature, proposed_by=model.model)
    except Exception as error:
        if isinstance(error, DeletionRefused):
            error = DeletionRefused(f"Proposal {number}: {error}.", reason=error.reason)
        row = rejection_of("propose", context.bench.repo.repo, error)
        answer = replace(row, subject=name, evidence={"model": model.model, "transcript": f"{name}.jsonl"})
    if isinstance(answer, Feature) or is_conclusive(answer):
        cache.put("propose", key, answer)
    return answer
