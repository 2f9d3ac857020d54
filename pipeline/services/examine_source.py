"""One source's environment and nothing more: fetch, install, baseline. The work behind ``excise env``."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from excise.config import Settings
from excise.envs.install.failure_classes import advice_for
from excise.pipeline.stages.environment_stage import Sourced, baseline_stage, environment_stage, fetch
from excise.pipeline.stages.error_boundary import rejection_of
from excise.pipeline.stages.model_stage import may_mend, model_stage
from excise.types import Baseline, Environment, Rejection, Repo, SourceSpec, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What became of one source."""

    source: str
    """As it was asked for."""
    verified: bool
    """It installs, and enough of its tests pass in every run."""
    stage: str
    """Where it ended: ``fetch``, ``environment``, ``model`` or ``baseline``."""
    repo: Repo | None = None
    """The snapshot, once fetched."""
    layer: str = ""
    """Folder with the pristine files, once fetched."""
    environment: Environment | None = None
    """The environment, once installed."""
    baseline: Baseline | None = None
    """What the tests say, where enough of them pass."""
    reason: str = ""
    """Class of the failure."""
    detail: str = ""
    """Its decisive lines."""
    advice: str = ""
    """What to do about it."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall seconds of each stage; near zero where the cache had the answer."""

    def counts(self) -> dict[str, int]:
        """How many tests said what in every run, and how many did not agree (``flaky``)."""
        if self.baseline is None:
            return {}
        said = list(self.baseline.statuses.values())
        found = {status.value.lower(): said.count(status) for status in Status if status in said}
        return found | {"flaky": len(self.baseline.flaky)}

    def pass_rate(self) -> float:
        """Share of the tests that ran, and said the same in every run, which pass."""
        counts = self.counts()
        ran = sum(counts.get(name, 0) for name in ("passed", "failed", "error"))
        return counts.get("passed", 0) / ran if ran else 0.0


def examine_source(settings: Settings, spec: SourceSpec) -> Examined:
    """Fetch, install and run the tests; a failure is an answer with its class, never an exception."""
    seconds: dict[str, float] = {}
    began = time.monotonic()

    def lap(stage: str) -> None:
        nonlocal began
        seconds[stage], began = round(time.monotonic() - began, 1), time.monotonic()

    def failed(refused: Rejection, **facts: object) -> Examined:
        if refused.stage not in seconds:
            lap(refused.stage)
        advice = advice_for("infra" if refused.reason == "infra_error" else refused.reason)
        return Examined(
            source=spec.name, verified=False, stage=refused.stage, reason=refused.reason, detail=refused.detail,
            advice=advice, seconds=seconds, **facts,  # type: ignore[arg-type]
        )  # fmt: skip

    try:
        sourced: Sourced = fetch(settings, spec, keep_blob=False)
    except Exception as error:
        return failed(rejection_of("fetch", spec.name, error))
    lap("fetch")
    known: dict[str, object] = {"repo": sourced.repo, "layer": sourced.layer}
    installed = environment_stage(settings, spec.name, spec, sourced)
    lap("environment")
    measured = installed if isinstance(installed, Rejection) else baseline_stage(settings, spec.name, installed)
    if isinstance(measured, Rejection) and may_mend(settings, measured.stage, measured):
        if measured.stage == "baseline":
            lap("baseline")
        installed = model_stage(settings, spec.name, spec, sourced, measured)
        lap("model")
        measured = installed if isinstance(installed, Rejection) else baseline_stage(settings, spec.name, installed)
    if not isinstance(installed, Rejection):
        known["environment"] = installed.environment
    if isinstance(measured, Rejection):
        return failed(measured, **known)
    lap("baseline")
    return Examined(
        source=spec.name, verified=True, stage="baseline", baseline=measured.baseline, seconds=seconds, **known,  # type: ignore[arg-type]
    )  # fmt: skip
