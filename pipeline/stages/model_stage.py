"""The stage behind stage 0: what its manifests alone do not install is given to a model, if there is one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.agents.budget import Budget, Meter, budget_of
from excise.agents.messages import Client
from excise.agents.replay import Recording, ReplayClient, ReplayTranscript
from excise.agents.transcript import Transcript
from excise.config import ModelSettings, Settings
from excise.envs.install.install_job import Installed
from excise.envs.model_driven.model_installer import ModelInstallRequest, install_with_model
from excise.envs.model_driven.prompts import VERSION
from excise.errors import AgentError, EnvironmentFailure
from excise.pipeline.stages.environment_stage import (
    Sourced,
    as_prepared,
    baseline_stage,
    install_options,
    install_request,
    known_environment,
    stage0_recipe,
    workbench,
)
from excise.pipeline.stages.error_boundary import GRACE_S, decided, fingerprint, remember, stage
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.system.deadline import deadline
from excise.types import Baseline, Rejection, SourceSpec, TestRun
from excise.verifiers.baseline import collect_only
from excise.verifiers.workbench import Prepared, Workbench

BEYOND_A_MODEL = frozenset({"no_tests", "python_unavailable", "oom", "credentials_required", "gpu_required", "infra"})
"""Classes that no installation can mend."""
_ELSEWHERE = {"base_url", "api_key_env", "replay", "call_timeout_s"}
"""Settings of the model that say where it is, not what it does."""


def may_mend(settings: Settings, stage_name: str, refused: Rejection) -> bool:
    """Whether a model is to try what ``stage_name`` refused."""
    by_stage0 = stage_name in {"environment", "baseline"}
    return settings.model.on and by_stage0 and decided(refused) and refused.reason not in BEYOND_A_MODEL


@stage("model")
def model_stage(settings: Settings, spec: SourceSpec, sourced: Sourced, refused: Rejection) -> Prepared:
    """Goals, installation and verification, driven by a model; the answer, refusals too, is kept like any stage's."""
    repo, verdict = sourced.repo, settings.verdict
    model = settings.model.model_dump(mode="json", exclude=_ELSEWHERE)
    key = stage_key(
        "model", VERSION, repo.tree, install_options(settings, spec, repo), fingerprint(settings), model, refused.reason
    )
    cache = StageCache(settings.cache)
    if (known := known_environment(cache, "model", key, repo)) is not None:
        return known
    recipe = stage0_recipe(settings, spec, sourced)
    request = ModelInstallRequest(
        install=install_request(settings, recipe, sourced),
        failure=steady(f"{refused.reason}: {refused.detail}"),
        suite=ProjectSuite(settings, sourced),
        suite_timeout_s=verdict.suite_timeout_s,
        model=settings.model,
    )
    limit = settings.model.max_wall_s + 6 * verdict.suite_timeout_s + verdict.install_timeout_s + GRACE_S
    try:
        with deadline(limit, f"Installing {repo.repo} with {settings.model.model}"):
            installed = _run(request, settings, key)
    except EnvironmentFailure as failure:
        remember(cache, "model", key, repo.repo, failure)
        raise
    prepared = as_prepared(settings, sourced, installed)
    cache.put("model", key, prepared)
    return prepared


def _run(request: ModelInstallRequest, settings: Settings, key: str) -> Installed:
    """With the model's endpoint, or with the recording that is to be replayed."""
    path = settings.cache / "transcripts" / f"{key}.jsonl"
    meter = Meter(budget_of(settings.model))
    try:
        if settings.model.replay is not None:
            recording = Recording(_recorded(settings.model.replay, path.name))
            with ReplayTranscript(path, recording) as transcript:
                return install_with_model(request, ReplayClient(recording), Meter(Budget()), transcript)
        client: Client = _endpoint(settings.model, meter)
    except AgentError as error:
        raise EnvironmentFailure(str(error), reason="infra") from error
    with Transcript(path) as transcript:
        return install_with_model(request, client, meter, transcript)


def _endpoint(model: ModelSettings, meter: Meter) -> Client:
    try:
        from excise.agents.client import OpenAIClient
    except ImportError as error:
        raise AgentError("The openai package is missing. Install excise with its extra: excise[agents].") from error
    return OpenAIClient(model, meter)


def _recorded(replay: Path, name: str) -> Path:
    path = replay / name if replay.is_dir() else replay
    if not path.is_file():
        raise AgentError(
            f"{path}: there is no such transcript. A replay needs the sources, the settings and the version that the "
            "job was recorded with.",
            reason="bad_transcript",
        )
    return path


_VARIES = (
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|seconds)\b"), "some time"),
    (re.compile(r"0x[0-9a-fA-F]{6,}"), "0x"),
    (re.compile(r"/(tmp|excise/cache)/[^\s'\"`:,)]+"), r"/\1/..."),
)


def steady(text: str) -> str:
    """A failure's text without what differs from run to run: times, addresses, temporary paths."""
    for pattern, plain in _VARIES:
        text = pattern.sub(plain, text)
    return text


@dataclass(frozen=True, slots=True)
class ProjectSuite:
    """The project's tests, for :mod:`excise.envs.model_driven.verification`."""

    settings: Settings
    sourced: Sourced

    def baseline(self, installed: Installed) -> Baseline:
        """The baseline stage's; that stage will find it in the cache."""
        prepared = as_prepared(self.settings, self.sourced, installed)
        answer = baseline_stage(self.settings, self.sourced.repo.repo, prepared)
        if isinstance(answer, Rejection):
            raise EnvironmentFailure(answer.detail, reason=answer.reason if decided(answer) else "infra")
        assert answer.baseline is not None
        return answer.baseline

    def collect_errors(self, installed: Installed) -> Sequence[tuple[str, str]]:
        """From a run that only collects."""
        return collect_only(self._bench(installed)).collect_errors

    def run(self, installed: Installed, ids: Sequence[str], edits: Mapping[str, bytes | None]) -> TestRun:
        """In a fresh sandbox."""
        return self._bench(installed).run(edits, ids=ids)

    def _bench(self, installed: Installed) -> Workbench:
        return workbench(self.settings, as_prepared(self.settings, self.sourced, installed))
