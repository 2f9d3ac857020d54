"""Transcripts of a job's conversations: a file of JSON lines, one event per line, flushed after each event.

Events: ``start`` (messages, tools and hash of a conversation's first request), ``reply`` (request hash, reply, tokens),
``error`` (request hash, error message), ``tool`` (call and its result), ``end``. Every event has ``agent`` (name of the
conversation) and ``time`` (UTC). API keys are never written.
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
"""Version of the event format; transcripts of other versions are refused."""


class Transcript:
    """Writes the events of one job; a context manager.

    While it is open the file has the suffix ``.part``; it is renamed on exit, with or without an error. A killed job
    leaves the ``.part`` file.
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
        """Append one event."""
        assert self._file is not None, "the transcript is not open"
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"event": event, "agent": agent, "time": now, **fields}
        self._file.write(json.dumps(line, ensure_ascii=True) + "\n")
        self._file.flush()

    def record_start(self, agent: str, request: Request) -> None:
        """Record the start of a conversation."""
        self.write("start", agent, request=request.request_id, opening=to_dict(request))

    def request_reply(self, agent: str, client: Client, request: Request) -> Reply:
        """Send a request and record the reply or the error. Raises :class:`AgentError` as the client does."""
        started = time.monotonic()
        try:
            reply = client.complete(request)
        except AgentError as error:
            self.write("error", agent, request=request.request_id, reason=error.reason, message=str(error))
            raise
        wall_s = round(time.monotonic() - started, 3)
        self.write("reply", agent, request=request.request_id, reply=to_dict(reply), wall_s=wall_s)
        return reply

    def record_tool_result(self, agent: str, call: ToolCall, text: str, *, malformed: bool = False) -> str:
        """Record the result of a call. Returns the text that the model gets."""
        self.write("tool", agent, call=to_dict(call), result=text, malformed=malformed)
        return text

    def record_end(self, agent: str, stop_reason: str, steps: int, malformed: int) -> None:
        """Record the end of a conversation."""
        self.write("end", agent, ended=str(stop_reason), steps=steps, malformed=malformed)


def read_events(path: Path) -> list[Mapping[str, Any]]:
    """The events of a transcript. Raises :class:`AgentError` (``bad_transcript``) if the file is not one."""
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
