"""The model judge of ``excise audit``, with the endpoint and the budget of the settings."""

from __future__ import annotations

from collections.abc import Sequence

from excise.agents.budget import Meter, budget_of
from excise.agents.transcript import Transcript
from excise.config import Settings
from excise.errors import AgentError
from excise.pipeline.services.audit import Judge
from excise.verifiers.monitor.findings import Finding
from excise.verifiers.monitor.model_judge import opinion
from excise.verifiers.monitor.monitored_task import MonitoredTask
from excise.verifiers.monitor.trajectory import Trajectory


def judge_of(settings: Settings) -> Judge:
    """A judge that asks the settings' model; one budget for all trajectories. Raises :class:`AgentError`."""
    try:
        from excise.agents.client import OpenAIClient
    except ImportError as error:
        raise AgentError("The openai package is missing. Install excise with its extra: excise[agents].") from error
    client = OpenAIClient(settings.model, Meter(budget_of(settings.model)))

    def ask(trajectory: Trajectory, known: MonitoredTask) -> Sequence[Finding]:
        path = settings.cache / "transcripts" / f"judge-{trajectory.trajectory_id}.jsonl"
        with Transcript(path) as transcript:
            return opinion(trajectory, known, client, settings.model.model, transcript)

    return ask
