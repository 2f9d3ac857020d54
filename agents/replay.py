"""The same job again, from its transcript, with no model.

Each request must equal the recorded one; the recorded answer is given. Tools run for their effects, but the model is
told what it was told then: times and temporary names in outputs change from run to run. How often that differed is
counted, and ``strict`` makes it an error.
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

_SAID = ("start", "reply", "error", "tool", "end")


class Recording:
    """The events of a transcript, to be taken in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events = [event for event in read_events(path) if event.get("event") in _SAID]
        self._next = 0
        self.opening: Mapping[str, Any] = {}

    def take(self, *kinds: str) -> Mapping[str, Any]:
        """The next event; raises :class:`AgentError` unless it is one of ``kinds``."""
        event = self._events[self._next] if self._next < len(self._events) else {"event": "nothing more"}
        if event["event"] not in kinds:
            raise self.differs(f"the job does {' or '.join(kinds)} where the transcript has {event['event']}")
        self._next += 1
        return event

    def differs(self, what: str) -> AgentError:
        """The error for a job that differs from the recorded one."""
        return AgentError(
            f"{self.path}: the replayed job is not the recorded one: {what} (event {self._next + 1}). "
            "Replay with the settings, sources and version that it was recorded with.",
            reason="replay_differs",
        )


class ReplayClient:
    """Answers from a recording; see :class:`excise.agents.messages.Client`."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def complete(self, request: Request) -> Reply:
        """The recorded answer, or the recorded error, to exactly this request."""
        event = self.recording.take("reply", "error")
        if event["request"] != request.request_id:
            raise self.recording.differs(difference(self.recording.opening, request))
        if event["event"] == "error":
            raise AgentError(event["message"], reason=event["reason"])
        return from_dict(Reply, event["reply"])


class ReplayTranscript(Transcript):
    """Writes a new transcript while an old one is replayed."""

    def __init__(self, path: Path, recording: Recording, *, strict: bool = False) -> None:
        super().__init__(path)
        self.recording, self.strict = recording, strict
        self.num_drifted = 0
        """Number of tool results that differ from the recorded ones."""

    def started(self, agent: str, request: Request) -> None:
        """Record the begin of a conversation, which must have the recorded opening."""
        event = self.recording.take("start")
        self.recording.opening = event["opening"]
        if (event["agent"], event["request"]) != (agent, request.request_id):
            raise self.recording.differs(difference(event["opening"], request))
        super().started(agent, request)

    def told(self, agent: str, call: ToolCall, text: str, *, malformed: bool = False) -> str:
        """The recorded result of a call."""
        event = self.recording.take("tool")
        if event["call"] != to_dict(call):
            raise self.recording.differs(f"it calls {call.name}, not {event['call']['name']}")
        if event["result"] != text:
            self.num_drifted += 1
            if self.strict:
                raise self.recording.differs(f"{call.name} says {text[:200]!r}, not {event['result'][:200]!r}")
        return super().told(agent, call, event["result"], malformed=malformed)

    def ended(self, agent: str, ended: str, steps: int, malformed: int) -> None:
        """Record the end of a conversation, which must be the recorded one."""
        event = self.recording.take("end")
        if event["ended"] != str(ended):
            raise self.recording.differs(f"it ended with {ended}, not {event['ended']}")
        super().ended(agent, ended, steps, malformed)


def difference(opening: Mapping[str, Any], request: Request) -> str:
    """How a request differs from the recorded opening, as text."""
    now = to_dict(request)
    for part in ("model", "temperature", "max_reply_tokens", "tools"):
        if opening.get(part) != now[part]:
            return f"{part} differs: {_short(now[part])} was {_short(opening.get(part))}"
    for number, (then, message) in enumerate(zip(opening.get("messages", ()), now["messages"], strict=False)):
        if then != message:
            return f"message {number} differs: {_short(message)} was {_short(then)}"
    return "what was said after its opening differs"


def _short(value: object) -> str:
    return json.dumps(value)[:300]
