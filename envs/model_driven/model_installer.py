"""Stages 1 to 3 for one repository: goals, installation, verification, in one budget and one transcript."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from excise.agents.budget import Meter
from excise.agents.messages import Client, Request
from excise.agents.tool_loop import Limits
from excise.agents.transcript import Transcript
from excise.config import ModelSettings
from excise.envs.index.index_relay import IndexRelay
from excise.envs.install.install_job import Installed
from excise.envs.interpreters import interpreter_of
from excise.envs.model_driven.goal_agent import propose_goals
from excise.envs.model_driven.goals import draw
from excise.envs.model_driven.install_agent import Installation, install_with_model
from excise.envs.model_driven.install_commands import carry_out
from excise.envs.model_driven.install_context import Site
from excise.envs.model_driven.rollback_session import Workshop
from excise.envs.model_driven.verification import Suite, verify
from excise.errors import AgentError, EnvironmentFailure
from excise.protocols import Policy, Sandbox
from excise.types import Recipe, Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that one model-driven installation needs."""

    repo: Repo
    """The snapshot."""
    sources: Path
    """Its layer."""
    recipe: Recipe
    """What was planned without a model."""
    failure: str
    """How that ended: class and sentence."""
    sandbox: Sandbox
    """Backend."""
    policy: Policy
    """Limits of installing and checking sessions."""
    suite: Suite
    """Runs the tests."""
    cache: Path
    """Cache folder; environments are kept in it."""
    install_timeout_s: float
    """Wall seconds for carrying a recipe out."""
    suite_timeout_s: float
    """Wall seconds for one run of the tests."""
    model: ModelSettings
    """Which model, and its limits."""


def mend(job: Job, client: Client, meter: Meter, transcript: Transcript) -> Installed:
    """A verified environment made by a model.

    ``client`` answers (over the network or from a recording), ``meter`` counts. Raises :class:`EnvironmentFailure`
    with a class: ``vacuous_goals``, ``budget``, ``infra`` (no answer can be had), or that of the last attempt.
    """
    job.cache.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=job.cache, prefix=".model-"))
    folder.chmod(0o711)  # layers in it are open to all
    try:
        (folder / "layers").mkdir(mode=0o755)
        with IndexRelay(job.cache) as relay:
            return _mend(job, client, meter, transcript, folder / "layers", relay)
    except AgentError as error:
        reason = "budget" if error.reason == "budget" else "infra"
        raise EnvironmentFailure(f"{job.repo.repo}: {error}", reason=reason) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _mend(job: Job, client: Client, meter: Meter, transcript: Transcript, work: Path, relay: IndexRelay) -> Installed:
    site = Site(
        sandbox=job.sandbox, policy=job.policy, interpreter=interpreter_of(job.recipe.python), repo=job.repo,
        recipe=replace(job.recipe, requirements=()), sources=job.sources, relay=relay, work=work,
    )  # fmt: skip
    opening = Request(
        model=job.model.model,
        messages=(),
        temperature=job.model.temperature,
        max_reply_tokens=job.model.max_reply_tokens,
    )
    limits = Limits(
        context_chars=job.model.context_chars, result_chars=max(1000, min(12_000, job.model.context_chars // 8))
    )
    bare = site.bare()
    goals = propose_goals(site, bare, client, opening, limits, transcript, job.failure)
    visible, held_out = draw(goals, job.repo.tree)

    def verified(recipe: Recipe) -> Installed:
        seconds = min(job.install_timeout_s, max(1.0, meter.left_s()))
        installed = carry_out(recipe, job.sources, job.repo, job.sandbox, job.policy, job.cache, seconds)
        return verify(installed, site, visible, held_out, job.suite, job.suite_timeout_s)

    with Workshop(replace(site, recipe=job.recipe), bare) as workshop:
        ended = install_with_model(
            workshop, visible, verified, client, opening, limits, transcript, job.failure, meter.left_s
        )
    if ended.installed is None:
        raise _failure(job, ended, relay.failures)
    line = f"model: {job.model.model}, {ended.outcome.steps} steps, attempt {ended.attempts}"
    environment = ended.installed.environment
    recipe = replace(environment.recipe, evidence=(*environment.recipe.evidence, line))
    return replace(ended.installed, environment=replace(environment, recipe=recipe))


def _failure(job: Job, ended: Installation, unreachable: Sequence[str]) -> EnvironmentFailure:
    """The class of the last attempt; where steps ran out before any was made, that of a budget.

    Where a package index did not answer on the way, nothing was found out.
    """
    outcome = ended.outcome
    how = f"The model did not install it: {outcome.ended} after {outcome.steps} steps, {ended.attempts} attempts."
    if unreachable:
        return EnvironmentFailure(f"{job.repo.repo}: {how} A package index failed: {unreachable[0]}", reason="infra")
    if ended.failure is None:
        return EnvironmentFailure(f"{job.repo.repo}: {how} Before the model: {job.failure}", reason="budget")
    return EnvironmentFailure(f"{ended.failure}\n{how}", reason=ended.failure.reason)
