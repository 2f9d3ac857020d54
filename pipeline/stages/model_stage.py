"""The model stage: a model installs a project after an installation from its manifests alone has failed.

Runs only if a model is configured, and :mod:`excise.pipeline.stages.environment_stage` or
:mod:`excise.pipeline.stages.baseline_stage` rejected the repository; :mod:`excise.pipeline.stages.baseline_stage` is
next. The installation itself is in :mod:`excise.envs.model_driven.model_installer`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from excise.config import Settings
from excise.envs.install.install_job import Installed
from excise.envs.model_driven.model_installer import ModelInstallRequest, install_with_model
from excise.envs.model_driven.prompts import VERSION
from excise.errors import AgentError, EnvironmentFailure
from excise.pipeline.stages.baseline_stage import baseline_stage
from excise.pipeline.stages.environment_stage import (
    cached_environment,
    install_options,
    install_request,
    open_workbench,
    prepared_repo,
    recipe_from_manifests,
)
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S, is_conclusive, stage
from excise.pipeline.stages.fetch_stage import FetchedSources
from excise.pipeline.stages.model_conversation import answering_model, model_conversation
from excise.pipeline.stages.stage_cache import StageCache, stage_key, verdict_fingerprint
from excise.system.deadline import deadline
from excise.types import Baseline, Rejection, SourceSpec, TestRun
from excise.verifiers.baseline import collect_only
from excise.verifiers.workbench import Prepared, Workbench

BEYOND_A_MODEL = frozenset(
    {
        "no_tests",
        "python_unavailable",
        "toolchain_unavailable",
        "no_manifest",
        "missing_dependency",
        "oom",
        "credentials_required",
        "gpu_required",
        "infra",
    }
)
"""Reasons of failures that no other installation can fix."""


def may_mend(settings: Settings, stage_name: str, rejection: Rejection) -> bool:
    """Whether a model should try to install what ``stage_name`` rejected."""
    from_stage0 = stage_name in {"environment", "baseline"}
    return (
        settings.model.is_configured
        and from_stage0
        and is_conclusive(rejection)
        and rejection.reason not in BEYOND_A_MODEL
    )


@stage("model")
def model_stage(settings: Settings, spec: SourceSpec, sources: FetchedSources, rejection: Rejection) -> Prepared:
    """Let a model install the rejected project, and verify the result; results and failures are cached."""
    repo, verdict = sources.repo, settings.verdict
    model = answering_model(settings)
    fingerprint = verdict_fingerprint(settings)
    options = install_options(settings, spec, repo)
    key = stage_key("model", VERSION, repo.tree, options, fingerprint, model, rejection.reason)
    cache = StageCache(settings.cache)
    if (cached := cached_environment(cache, "model", key, repo)) is not None:
        return cached
    request = ModelInstallRequest(
        install=install_request(settings, recipe_from_manifests(settings, spec, sources), sources),
        failure=without_varying_parts(f"{rejection.reason}: {rejection.detail}"),
        suite=ProjectSuite(settings, sources),
        suite_timeout_s=verdict.suite_timeout_s,
        model=settings.model,
    )
    limit_s = settings.model.max_wall_s + 6 * verdict.suite_timeout_s + verdict.install_timeout_s + STAGE_GRACE_S
    try:
        with deadline(limit_s, f"Installing {repo.repo} with {settings.model.model}"):
            installed = _install(request, settings, key)
    except EnvironmentFailure as failure:
        cache.put_failure("model", key, repo.repo, failure)
        raise
    prepared = prepared_repo(settings, sources, installed)
    cache.put("model", key, prepared)
    return prepared


def _install(request: ModelInstallRequest, settings: Settings, key: str) -> Installed:
    """Install with the model's endpoint, or from the recorded conversation that the settings name."""
    with ExitStack() as stack:
        try:
            client, meter, transcript = stack.enter_context(model_conversation(settings, key))
        except AgentError as error:
            raise EnvironmentFailure(str(error), reason="infra") from error
        return install_with_model(request, client, meter, transcript)


_VARYING = (
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|seconds)\b"), "some time"),
    (re.compile(r"0x[0-9a-fA-F]{6,}"), "0x"),
    (re.compile(r"/(tmp|excise/cache)/[^\s'\"`:,)]+"), r"/\1/..."),
)


def without_varying_parts(text: str) -> str:
    """Remove times, addresses and temporary paths from a failure's text, so that equal failures give equal prompts."""
    for pattern, constant in _VARYING:
        text = pattern.sub(constant, text)
    return text


@dataclass(frozen=True, slots=True)
class ProjectSuite:
    """The tests of one project, for :mod:`excise.envs.model_driven.verification`."""

    settings: Settings
    """Settings of the run."""
    sources: FetchedSources
    """The project."""
    measured: dict[Path, Prepared] = field(default_factory=dict)
    """Environment layer to the project with its baseline and the build outputs of that."""

    def baseline(self, installed: Installed) -> Baseline:
        """Run the baseline stage, whose result is cached for later. Raises :class:`EnvironmentFailure`."""
        prepared = prepared_repo(self.settings, self.sources, installed)
        answer = baseline_stage(self.settings, self.sources.repo.repo, prepared)
        if isinstance(answer, Rejection):
            raise EnvironmentFailure(answer.detail, reason=answer.reason if is_conclusive(answer) else "infra")
        assert answer.baseline is not None
        self.measured[installed.env_layer] = answer
        return answer.baseline

    def collect_errors(self, installed: Installed) -> Sequence[tuple[str, str]]:
        """Return (file, message) for every test file that cannot be collected."""
        return collect_only(self._workbench(installed)).collect_errors

    def run(self, installed: Installed, ids: Sequence[str], edits: Mapping[str, bytes | None]) -> TestRun:
        """Run the tests ``ids`` on the project with ``edits``, in a fresh sandbox."""
        return self._workbench(installed).run(edits, ids=ids)

    def _workbench(self, installed: Installed) -> Workbench:
        known = self.measured.get(installed.env_layer)
        return open_workbench(self.settings, known or prepared_repo(self.settings, self.sources, installed))
