"""Replay of a job from its transcript, without a model.

Each request must equal the recorded one and gets the recorded reply. Tools run for their side effects, but their
recorded results are used, because times and temporary names in outputs vary between runs. The number of differing
results is counted; ``strict`` makes a difference an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from excise.agents.messages import Reply, Request, ToolCall
from excise.agents.transcript import Transcript, read_events
from excise.errors import AgentError
from excise.types import from_dict, to_dict

_REPLAYED_EVENTS = ("start", "reply", "error", "tool", "end")


class Recording:
    """The events of a transcript, consumed in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events = [event for event in read_events(path) if event.get("event") in _REPLAYED_EVENTS]
        self._next = 0
        self.opening: Mapping[str, Any] = {}

    def next_event(self, *kinds: str) -> Mapping[str, Any]:
        """Consume the next event. Raises :class:`AgentError` unless its type is one of ``kinds``."""
        event = self._events[self._next] if self._next < len(self._events) else {"event": "nothing more"}
        if event["event"] not in kinds:
            raise self.mismatch_error(f"the job does {' or '.join(kinds)} where the transcript has {event['event']}")
        self._next += 1
        return event

    def mismatch_error(self, what: str) -> AgentError:
        """The error (``replay_differs``) for a job that differs from the recorded one."""
        return AgentError(
            f"{self.path}: the replayed job is not the recorded one: {what} (event {self._next + 1}). "
            "Replay with the settings, sources and version that it was recorded with.",
            reason="replay_differs",
        )


class ReplayClient:
    """Returns recorded replies; see :class:`excise.agents.messages.Client`."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def complete(self, request: Request) -> Reply:
        """The recorded reply to this request. Raises :class:`AgentError` if it differs or an error was recorded."""
        event = self.recording.next_event("reply", "error")
        if event["request"] != request.request_id:
            raise self.recording.mismatch_error(describe_mismatch(self.recording.opening, request))
        if event["event"] == "error":
            raise AgentError(event["message"], reason=event["reason"])
        return from_dict(Reply, event["reply"])


class ReplayTranscript(Transcript):
    """Writes a new transcript while an earlier one is replayed."""

    def __init__(self, path: Path, recording: Recording, *, strict: bool = False) -> None:
        super().__init__(path)
        self.recording, self.strict = recording, strict
        self.num_drifted = 0
        """Number of tool results that differ from the recorded ones."""

    def record_start(self, agent: str, request: Request) -> None:
        """Record the start of a conversation. Raises :class:`AgentError` if its first request differs."""
        event = self.recording.next_event("start")
        self.recording.opening = event["opening"]
        if (event["agent"], event["request"]) != (agent, request.request_id):
            raise self.recording.mismatch_error(describe_mismatch(event["opening"], request))
        super().record_start(agent, request)

    def record_tool_result(self, agent: str, call: ToolCall, text: str, *, malformed: bool = False) -> str:
        """Record the recorded result of a call and return it. Raises :class:`AgentError` if the call differs."""
        event = self.recording.next_event("tool")
        if event["call"] != to_dict(call):
            raise self.recording.mismatch_error(f"it calls {call.name}, not {event['call']['name']}")
        if event["result"] != text:
            self.num_drifted += 1
            if self.strict:
                raise self.recording.mismatch_error(f"{call.name} says {text[:200]!r}, not {event['result'][:200]!r}")
        return super().record_tool_result(agent, call, event["result"], malformed=malformed)

    def record_end(self, agent: str, stop_reason: str, steps: int, malformed: int) -> None:
        """Record the end of a conversation. Raises :class:`AgentError` if it ended for another reason."""
        event = self.recording.next_event("end")
        if event["ended"] != str(stop_reason):
            raise self.recording.mismatch_error(f"it ended with {stop_reason}, not {event['ended']}")
        super().record_end(agent, stop_reason, steps, malformed)


def describe_mismatch(opening: Mapping[str, Any], request: Request) -> str:
    """A message that says how a request differs from the recorded first request."""
    current = to_dict(request)
    for part in ("model", "temperature", "max_reply_tokens", "tools"):
        if opening.get(part) != current[part]:
            return f"{part} differs: {_short(current[part])} was {_short(opening.get(part))}"
    for number, (recorded, message) in enumerate(zip(opening.get("messages", ()), current["messages"], strict=False)):
        if recorded != message:
            return f"message {number} differs: {_short(message)} was {_short(recorded)}"
    return "what was said after its opening differs"


def _short(value: object) -> str:
    return json.dumps(value)[:300]
