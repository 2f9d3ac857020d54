"""A job beside the stages: indexes what agents of an environment can read outside the tree, before the first proof.

Every proof searches the index for leaks (:mod:`excise.verifiers.leaks.surface`). Environments with the same interpreter
share nearly all of it.
"""

from __future__ import annotations

from excise.config import Settings
from excise.pipeline.stages.environment_stage import open_workbench
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, stage
from excise.system.deadline import deadline
from excise.verifiers.leaks.surface import surface_of
from excise.verifiers.workbench import Prepared


@stage("surface")
def surface_stage(settings: Settings, prepared: Prepared) -> None:
    """Make the indexes of this machine that a repository's proofs need, unless it has them."""
    with deadline(STAGE_GRACE_S, f"Indexing what agents of {prepared.repo.repo} can read"):
        surface_of(open_workbench(settings, prepared))
