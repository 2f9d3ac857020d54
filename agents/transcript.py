"""The record of a job's conversations: JSON lines, one event each, written as they happen.

Events: ``start`` (messages, tools and hash of a conversation's first request), ``reply`` (request hash, answer,
tokens), ``error`` (request hash, why no answer came), ``tool`` (call and what the model was told), ``end``.
Every event has ``agent`` (the conversation's name) and ``time`` (UTC). Keys of endpoints are in none of them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from excise.agents.messages import Client, Reply, Request, ToolCall
from excise.errors import AgentError
from excise.types import to_dict

VERSION = 1
"""Version of the events; a replay refuses others."""


class Transcript:
    """Writes the events of one job. Use it in a ``with`` block: the file gets its name at the end, however that came.

    While the job runs the file has the suffix ``.part``, so that a killed job leaves what it had.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._part = path.with_name(f"{path.name}.{os.getpid()}.part")
        self._file: TextIO | None = None

    def __enter__(self) -> Transcript:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self._part, "w", encoding="utf-8")
        self.write("job", "", version=VERSION)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            self._file.close()
            with suppress(FileNotFoundError):
                self._part.replace(self.path)

    def write(self, event: str, agent: str, **fields: Any) -> None:
        """Add one event."""
        assert self._file is not None, "the transcript is not open"
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"event": event, "agent": agent, "time": now, **fields}
        self._file.write(json.dumps(line, ensure_ascii=True) + "\n")
        self._file.flush()

    # ----------------------------------------------------------------------------- for the loop
    def started(self, agent: str, request: Request) -> None:
        """Record the begin of a conversation."""
        self.write("start", agent, request=request.request_id, opening=to_dict(request))

    def asked(self, agent: str, client: Client, request: Request) -> Reply:
        """Send a request, and record the answer or the error."""
        began = time.monotonic()
        try:
            reply = client.complete(request)
        except AgentError as error:
            self.write("error", agent, request=request.request_id, reason=error.reason, message=str(error))
            raise
        taken = round(time.monotonic() - began, 3)
        self.write("reply", agent, request=request.request_id, reply=to_dict(reply), wall_s=taken)
        return reply

    def told(self, agent: str, call: ToolCall, text: str, *, malformed: bool = False) -> str:
        """Record the result of a call; returns the text for the model."""
        self.write("tool", agent, call=to_dict(call), result=text, malformed=malformed)
        return text

    def ended(self, agent: str, ended: str, steps: int, malformed: int) -> None:
        """Record the end of a conversation."""
        self.write("end", agent, ended=str(ended), steps=steps, malformed=malformed)


def read_events(path: Path) -> list[Mapping[str, Any]]:
    """The events of a transcript. Raises :class:`AgentError` (``bad_transcript``) for any other file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        events = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise AgentError(f"{path}: cannot be read as a transcript ({error}).", reason="bad_transcript") from error
    if not events or not isinstance(events[0], dict) or events[0].get("version") != VERSION:
        raise AgentError(
            f"{path}: is no transcript of version {VERSION}; record the job again.", reason="bad_transcript"
        )
    return events
