"""``excise env``: runs fetch, environment and baseline on one source, and reports the result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from excise.config import Settings
from excise.envs.install.failure_classes import advice_for
from excise.pipeline.stages.baseline_stage import baseline_stage
from excise.pipeline.stages.environment_stage import environment_stage
from excise.pipeline.stages.error_boundary import rejection_of
from excise.pipeline.stages.fetch_stage import FetchedSources, fetch
from excise.pipeline.stages.model_stage import may_mend, model_stage
from excise.types import Baseline, Environment, Recipe, Rejection, Repo, SourceSpec, Status, to_dict


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedSource:
    """The result of examining one source."""

    source: str
    """The source as the user specified it."""
    verified: bool
    """Whether it installs and enough of its tests pass in every run."""
    stage: str
    """The stage where it ended: ``fetch``, ``environment``, ``model`` or ``baseline``."""
    repo: Repo | None = None
    """The snapshot, once fetched."""
    layer: str = ""
    """Folder with the pristine files, once fetched."""
    environment: Environment | None = None
    """The environment, once installed."""
    baseline: Baseline | None = None
    """The baseline, if enough tests pass."""
    reason: str = ""
    """Class of the failure."""
    detail: str = ""
    """The decisive lines of its message."""
    advice: str = ""
    """What to do about it."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall seconds of each stage; near 0 if its result was cached."""

    def counts(self) -> dict[str, int]:
        """Number of tests with each status, and of tests whose runs disagree (``flaky``)."""
        if self.baseline is None:
            return {}
        statuses = list(self.baseline.statuses.values())
        found = {status.value.lower(): statuses.count(status) for status in Status if status in statuses}
        return found | {"flaky": len(self.baseline.flaky)}

    def pass_rate(self) -> float:
        """Share of passing tests among those that ran, with the same status in every run."""
        counts = self.counts()
        ran = sum(counts.get(name, 0) for name in ("passed", "failed", "error"))
        return counts.get("passed", 0) / ran if ran else 0.0


def examine_source(settings: Settings, spec: SourceSpec) -> ExaminedSource:
    """Fetch, install and run the tests; a failure is a result with its reason, never an exception."""
    seconds: dict[str, float] = {}
    began = time.monotonic()

    def end_of(stage: str) -> None:
        nonlocal began
        seconds[stage], began = round(time.monotonic() - began, 1), time.monotonic()

    def failed(rejection: Rejection, **facts: object) -> ExaminedSource:
        if rejection.stage not in seconds:
            end_of(rejection.stage)
        advice = advice_for("infra" if rejection.reason == "infra_error" else rejection.reason)
        return ExaminedSource(
            source=spec.name, verified=False, stage=rejection.stage, reason=rejection.reason, detail=rejection.detail,
            advice=advice, seconds=seconds, **facts,  # type: ignore[arg-type]
        )  # fmt: skip

    try:
        sources: FetchedSources = fetch(settings, spec, keep_archive=False)
    except Exception as error:
        return failed(rejection_of("fetch", spec.name, error))
    end_of("fetch")
    known: dict[str, object] = {"repo": sources.repo, "layer": sources.layer}
    installed = environment_stage(settings, spec.name, spec, sources)
    end_of("environment")
    measured = installed if isinstance(installed, Rejection) else baseline_stage(settings, spec.name, installed)
    if isinstance(measured, Rejection) and may_mend(settings, measured.stage, measured):
        if measured.stage == "baseline":
            end_of("baseline")
        installed = model_stage(settings, spec.name, spec, sources, measured)
        end_of("model")
        measured = installed if isinstance(installed, Rejection) else baseline_stage(settings, spec.name, installed)
    if not isinstance(installed, Rejection):
        known["environment"] = installed.environment
    if isinstance(measured, Rejection):
        return failed(measured, **known)
    end_of("baseline")
    return ExaminedSource(
        source=spec.name, verified=True, stage="baseline", baseline=measured.baseline, seconds=seconds, **known,  # type: ignore[arg-type]
    )  # fmt: skip


def report_as_record(examined: ExaminedSource) -> dict[str, Any]:
    """Return the result as JSON-compatible values, with the counts and the pass rate."""
    record: dict[str, Any] = to_dict(examined)
    record.pop("layer")
    if examined.baseline is not None:
        record |= {"tests": examined.counts(), "pass_rate": round(examined.pass_rate(), 4)}
    return record


def report_as_text(examined: ExaminedSource) -> str:
    """Return the result as text: the recipe with its reasons, then the tests or the failure."""
    return "\n".join(_report_lines(examined))


def _report_lines(examined: ExaminedSource) -> Iterator[str]:
    repo = examined.repo
    yield f"{examined.source}: " + (f"{repo.repo} {repo.version}".strip() if repo else "not fetched")
    if repo:
        yield f"  sources       {repo.source}, {repo.num_files} files" + (
            f", {repo.created_at[:10]}" if repo.created_at else ""
        )
    if (environment := examined.environment) is not None:
        yield from _recipe_lines(environment.recipe, examined.repo.language if examined.repo else "")
        yield f"  lock          {len(environment.lock)} distributions; environment {environment.env_id}"
    if examined.baseline is not None:
        yield from _test_lines(examined)
    if examined.verified:
        yield "verified"
    else:
        yield f"{examined.reason} ({examined.stage})"
        yield from (f"  {line}" for line in examined.detail.splitlines())
        if examined.advice:
            yield f"What to do: {examined.advice}"


def _recipe_lines(recipe: Recipe, language: str) -> Iterator[str]:
    if language != "python":
        yield f"  toolchain     {', '.join(recipe.requirements)} ({language})"
        yield f"  project       {', '.join(recipe.packages)}"
        yield from _shared_lines(recipe)
        return
    yield f"  interpreter   {recipe.python}"
    packages = f"packages {', '.join(recipe.packages)} in {', '.join(recipe.roots)}"
    yield f"  project       {_INSTALL_METHODS[recipe.editable]}; {packages}"
    if recipe.extras:
        yield f"  extras        {', '.join(recipe.extras)}"
    yield f"  requirements  {', '.join(recipe.requirements)}"
    if recipe.constraints:
        yield f"  own lock      {len(recipe.constraints)} versions"
    if recipe.cutoff:
        yield f"  released      before {recipe.cutoff}"
    yield from _shared_lines(recipe, f"pytest {' '.join([*recipe.test_args, *recipe.test_paths])}")


def _shared_lines(recipe: Recipe, tests: str = "") -> Iterator[str]:
    """What recipes of all languages say; ``tests`` is the command that runs them."""
    if recipe.system_packages:
        yield f"  system        {' '.join(recipe.system_packages)}"
    if recipe.env:
        yield f"  variables     {' '.join(f'{name}={value}' for name, value in recipe.env)}"
    if tests:
        yield f"  tests         {tests}"
    yield "  why"
    yield from (f"    {line}" for line in recipe.evidence)


_INSTALL_METHODS = {
    "editable": "built in place",
    "wheel": "built as a wheel, laid into the checkout",
    "legacy": "built in place with an older setuptools",
    "path": "its folders are put on the path",
}


def _test_lines(examined: ExaminedSource) -> Iterator[str]:
    baseline = examined.baseline
    assert baseline is not None
    counts = ", ".join(f"{count} {name}" for name, count in examined.counts().items() if count)
    runs = f"{baseline.num_runs} runs of {baseline.wall_s:.1f} s"
    yield f"  result        {counts}: {examined.pass_rate():.1%} of those that ran pass; {runs}"
    for path, error in sorted(baseline.uncollected.items()):
        yield f"  not loaded    {path}: {error.partition(chr(10))[0]}"
