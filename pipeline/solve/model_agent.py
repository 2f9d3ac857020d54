"""The built-in agent: the configured model with excise's tools, in the task's sandbox."""

from __future__ import annotations

import json

from excise.agents.messages import Usage
from excise.agents.tool_loop import StopReason
from excise.config import Settings
from excise.envs.model_driven.model_access import ModelAccess
from excise.errors import AgentError
from excise.pipeline.solve.attempt import AttemptEnding, AttemptJob, AttemptOutcome, limit_reached
from excise.pipeline.stages.model_attempt import attempt_task
from excise.pipeline.stages.model_conversation import model_conversation

VERSION = "1"
"""Version of the prompt and of the tools."""
_ENDINGS = {
    StopReason.FINISHED: AttemptEnding.FINISHED,
    StopReason.STEP_LIMIT: AttemptEnding.STEPS,
    StopReason.MALFORMED_CALLS: AttemptEnding.MALFORMED,
}


class ModelAgent:
    """See :class:`excise.pipeline.solve.attempt.Agent`. Each attempt is a job with the budget of the settings."""

    name = "model"
    detail = VERSION

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.model = settings.model.model

    def attempt(self, job: AttemptJob) -> AttemptOutcome:
        """Converse with the model until it finishes. Raises :class:`AgentError` if it does not answer."""
        model = self.settings.model
        name = f"attempt-{job.run}-{job.attempt_id}"
        path = self.settings.cache / "transcripts" / f"{name}.jsonl"
        with model_conversation(self.settings, name) as (client, meter, transcript):
            access = ModelAccess.of(model, client, transcript)
            try:
                done = attempt_task(
                    access,
                    "solver",
                    job.statement,
                    job.sandbox.session,
                    max_steps=model.solve_steps,
                    left_s=meter.left_s,
                )
                ending, detail = _ENDINGS[done.stop_reason], ""
            except AgentError as error:
                reached = limit_reached(meter)
                if reached is None and error.reason != "budget":
                    raise
                ending, detail = reached or (AttemptEnding.CONTEXT, str(error))
        text = path.read_text(encoding="utf-8")
        replies = _replies(text)
        usage = meter.spent if model.replay is None else sum(replies, Usage())
        return AttemptOutcome(ending=ending, detail=detail, usage=usage, steps=len(replies), transcript=text)


def _replies(transcript: str) -> list[Usage]:
    """The usage of every reply in a transcript."""
    events = [json.loads(line) for line in transcript.splitlines()]
    return [Usage(**event["reply"]["usage"]) for event in events if event["event"] == "reply"]
