"""Conversations with the configured model: its endpoint, or a recorded conversation, and the transcript."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from excise.agents.budget import Budget, Meter, budget_of
from excise.agents.messages import Client
from excise.agents.replay import Recording, ReplayClient, ReplayTranscript
from excise.agents.transcript import Transcript
from excise.config import ModelSettings, Settings
from excise.errors import AgentError

_ENDPOINT_SETTINGS = {"base_url", "api_key_env", "replay", "call_timeout_s"}
"""Settings of the endpoint, which do not change the model's answers and are not part of cache keys."""
_OTHER_SETTINGS = {"propose_features", "propose_steps", "write_statements"}
"""Settings that only :mod:`.propose_stage` or :mod:`.statement_writer` reads; their keys have what these change."""


def answering_model(settings: Settings) -> dict[str, object]:
    """Return the settings that can change a model's answers; part of cache keys."""
    return settings.model.model_dump(mode="json", exclude=_ENDPOINT_SETTINGS | _OTHER_SETTINGS)


@contextmanager
def model_conversation(settings: Settings, name: str) -> Iterator[tuple[Client, Meter, Transcript]]:
    """Open a job with the model, or with the recording that the settings name; its transcript is ``NAME.jsonl``.

    Raises :class:`AgentError` if there is no such recording, or no package for the endpoint.
    """
    path = settings.cache / "transcripts" / f"{name}.jsonl"
    if settings.model.replay is not None:
        recording = Recording(_recorded(settings.model.replay, path.name))
        with ReplayTranscript(path, recording) as transcript:
            yield ReplayClient(recording), Meter(Budget()), transcript
        return
    meter = Meter(budget_of(settings.model))
    client: Client = _endpoint(settings.model, meter)
    with Transcript(path) as transcript:
        yield client, meter, transcript


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
