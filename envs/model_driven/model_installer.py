"""Installs one repository with a model: goals, installation and verification, in one budget and one transcript."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from excise.agents.budget import Meter
from excise.agents.messages import Client
from excise.agents.transcript import Transcript
from excise.config import ModelSettings
from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.install_job import Installed, InstallRequest
from excise.envs.interpreters import interpreter_of
from excise.envs.model_driven.goal_agent import propose_goals
from excise.envs.model_driven.goals import split_goals
from excise.envs.model_driven.install_agent import AgentResult, run_install_agent
from excise.envs.model_driven.install_commands import install_commands
from excise.envs.model_driven.install_context import InstallContext
from excise.envs.model_driven.model_access import ModelAccess
from excise.envs.model_driven.rollback_session import RollbackSession
from excise.envs.model_driven.verification import Suite, verify
from excise.errors import AgentError, EnvironmentFailure
from excise.types import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInstallRequest:
    """Everything that one model-driven installation needs."""

    install: InstallRequest
    """What to install and where; its recipe is the one planned without a model, its timeout is for one attempt."""
    failure: str
    """Class and message of the failure of the installation without a model."""
    suite: Suite
    """Runs the project's tests."""
    suite_timeout_s: float
    """Wall-clock seconds for one run of the tests."""
    model: ModelSettings
    """Which model, and its limits."""


def install_with_model(request: ModelInstallRequest, client: Client, meter: Meter, transcript: Transcript) -> Installed:
    """Return a verified environment that a model installed.

    ``client`` answers (over the network or from a recording), ``meter`` counts the budget. Raises
    :class:`EnvironmentFailure` with a class: ``vacuous_goals``, ``budget``, ``infra`` (no answer can be had), or that
    of the last attempt.
    """
    cache, repo = request.install.cache, request.install.repo
    cache.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=cache, prefix=".model-"))
    folder.chmod(0o711)  # the layers in it are readable by all users
    try:
        (folder / "layers").mkdir(mode=0o755)
        with IndexRelay(cache) as relay:
            context = InstallContext(
                request=replace(request.install, recipe=replace(request.install.recipe, requirements=())),
                interpreter=interpreter_of(request.install.recipe.python),
                relay=relay,
                work=folder / "layers",
            )
            return _install(request, context, ModelAccess.of(request.model, client, transcript), meter)
    except AgentError as error:
        reason = "budget" if error.reason == "budget" else "infra"
        raise EnvironmentFailure(f"{repo.repo}: {error}", reason=reason) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _install(request: ModelInstallRequest, context: InstallContext, model: ModelAccess, meter: Meter) -> Installed:
    install = request.install
    bare = context.bare_environment()
    goals = propose_goals(context, bare, model, request.failure)
    visible, held_out = split_goals(goals, install.repo.tree)

    def verified(recipe: Recipe) -> Installed:
        timeout_s = min(install.timeout_s, max(1.0, meter.left_s()))
        installed = install_commands(replace(install, recipe=recipe, timeout_s=timeout_s))
        return verify(installed, context, visible, held_out, request.suite, request.suite_timeout_s)

    with RollbackSession(replace(context, request=install), bare) as session:
        result = run_install_agent(session, visible, verified, model, request.failure, meter.left_s)
    if result.installed is None:
        raise _failure(request, result, context.relay.failures)
    line = f"model: {request.model.model}, {result.outcome.steps} steps, attempt {result.attempts}"
    environment = result.installed.environment
    recipe = replace(environment.recipe, evidence=(*environment.recipe.evidence, line))
    return replace(result.installed, environment=replace(environment, recipe=recipe))


def _failure(request: ModelInstallRequest, result: AgentResult, index_failures: Sequence[str]) -> EnvironmentFailure:
    """The failure of the last attempt; ``budget`` if there was no attempt, ``infra`` if a package index failed."""
    outcome, repo = result.outcome, request.install.repo.repo
    how = (
        f"The model did not install it: {outcome.stop_reason} after {outcome.steps} steps, {result.attempts} attempts."
    )
    if index_failures:
        return EnvironmentFailure(f"{repo}: {how} A package index failed: {index_failures[0]}", reason="infra")
    if result.failure is None:
        return EnvironmentFailure(f"{repo}: {how} Before the model: {request.failure}", reason="budget")
    return EnvironmentFailure(f"{result.failure}\n{how}", reason=result.failure.reason)
