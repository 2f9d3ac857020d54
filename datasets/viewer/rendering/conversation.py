"""A stored conversation as turns: rollouts keep it as one text of a chat template, attempts as events or messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

_MARKS = (
    re.compile(r"<\|im_start\|>[ ]*(?P<role>\w+)\n"),
    re.compile(r"<\|start_header_id\|>(?P<role>\w+)<\|end_header_id\|>\n*"),
    re.compile(r"<start_of_turn>(?P<role>\w+)\n"),
    re.compile(r"^### (?P<role>system|user|assistant|tool)\n", re.MULTILINE),
)
"""How chat templates begin a message."""
_ENDS = re.compile(r"(<\|im_end\|>|<\|eot_id\|>|<end_of_turn>|<\|endoftext\|>|</s>)\s*$")
_ROLES = {"model": "assistant", "ipython": "tool"}
_THINKING = re.compile(r"\A\s*<think>(.*?)</think>\s*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: str
    """``system``, ``user``, ``assistant``, ``tool``, ``event`` or ``text`` where nothing is known."""
    text: str
    """What was said."""
    thinking: str = ""
    """What the model thought before."""
    hint: str = ""
    """What a detector wrote about this answer."""
    detector: str = ""
    """Name of the detector."""
    tokens: int | None = None
    """Number of tokens of an answer."""
    notes: tuple[str, ...] = ()
    """Short facts: exit code, seconds, end of a turn."""
    number: int | None = None
    """Number of the turn, for answers."""


def rollout_messages(text: str, segments: str) -> list[Message]:
    """The messages of a rollout; hints of the turns are attached to the answers that they are about.

    If the number of answers in the text is not that of the turns, the hints stand at the end.
    """
    messages = list(_split(text))
    turns = [turn for segment in _json_list(segments) for turn in segment.get("turns", ()) if isinstance(turn, dict)]
    answers = [n for n, message in enumerate(messages) if message.role == "assistant"]
    if len(answers) == len(turns):
        for number, (place, turn) in enumerate(zip(answers, turns, strict=True), start=1):
            messages[place] = _with_turn(messages[place], turn, number)
        return messages
    hints = [turn for turn in turns if turn.get("hint")]
    return messages + [_with_turn(Message(role="event", text="A hint of a turn"), t, None) for t in hints]


def _with_turn(message: Message, turn: Mapping[str, Any], number: int | None) -> Message:
    size = turn.get("end", 0) - turn.get("start", 0)
    stop = str(turn.get("stop", ""))
    notes = (*((f"stopped: {stop}",) if stop and stop not in {"end", "eos", "stop"} else ()),)
    return replace(
        message, hint=str(turn.get("hint", "")), detector=str(turn.get("detector", "")), tokens=size, notes=notes,
        number=number,
    )  # fmt: skip


def _split(text: str) -> Iterator[Message]:
    best = max(_MARKS, key=lambda mark: len(mark.findall(text)))
    starts = list(best.finditer(text))
    if not starts:
        yield Message(role="text", text=text)
        return
    if before := text[: starts[0].start()].strip():
        yield Message(role="text", text=before)
    for match, following in zip(starts, [*starts[1:], None], strict=True):
        body = text[match.end() : following.start() if following else len(text)]
        yield _message(match["role"], _ENDS.sub("", body.rstrip()))


def _message(role: str, body: str) -> Message:
    thinking = _THINKING.match(body)
    rest = body[thinking.end() :] if thinking else body
    return Message(role=_ROLES.get(role, role), text=rest, thinking=thinking[1].strip() if thinking else "")


def trajectory_messages(lines: Iterable[str]) -> list[Message]:
    """The steps of a trajectory of events (docs/trajectories.md)."""
    found = []
    for event in _json_lines(lines):
        if event.get("event") != "step" and event.get("type") != "step":
            continue
        arguments = event.get("arguments")
        command = event.get("command") or f"{event.get('tool', '')} {json.dumps(arguments, ensure_ascii=False)}"
        number = event.get("number")
        found.append(Message(role="assistant", text=str(command), number=number if isinstance(number, int) else None))
        code, seconds = event.get("exit_code"), event.get("duration_s")
        notes = [f"exit code {code}"] if code is not None else []
        notes += [f"{seconds:.1f} s"] if isinstance(seconds, int | float) else []
        found.append(Message(role="tool", text=str(event.get("output", "")), notes=tuple(notes)))
    return found


def transcript_messages(text: str) -> list[Message]:
    """The messages of an agent's own record: JSON lines or one JSON document with messages; else the plain text."""
    records: list[Any] = []
    try:
        whole = json.loads(text)
        inner = whole.get("messages", [whole]) if isinstance(whole, dict) else whole
        records = inner if isinstance(inner, list) else []
    except ValueError:
        records = list(_json_lines(text.splitlines()))
    messages = [Message(role=str(r["role"]), text=_content(r)) for r in records if isinstance(r, dict) and "role" in r]
    return messages or ([Message(role="text", text=text)] if text.strip() else [])


def _content(record: Mapping[str, Any]) -> str:
    content = record.get("content")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1) if content else ""
    calls = record.get("tool_calls")
    return "\n".join(part for part in (text, json.dumps(calls, ensure_ascii=False, indent=1) if calls else "") if part)


def _json_lines(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def _json_list(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
