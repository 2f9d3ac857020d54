"""Readers of trajectory files: excise's events and transcripts, mini-swe-agent, and Harbor's ATIF.

Formats are recognised by content, not by file name. What a format does not record (exit codes, opened files) stays
empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from excise.verifiers.monitor.trajectory import (
    MAX_FILE,
    MAX_STEPS,
    Step,
    Trajectory,
    clipped,
    format_error,
    from_events,
)

_FENCE = re.compile(r"```(?:bash|mswea_bash_command|sh)\s*\n(.*?)\n```", re.DOTALL)
_RETURN = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")
_SHELL_TOOLS = frozenset({"bash", "shell", "sh", "execute", "execute_bash", "run", "run_command", "terminal", "exec"})
_SHELL_KEYS = ("command", "cmd", "commands", "keystrokes", "script", "argv")


def read_trajectories(path: Path) -> list[Trajectory]:
    """All trajectories of a file, or of the files below a folder.

    Raises :class:`AgentError` (``bad_trajectory``) for a file that is none of the monitored formats; in a folder, files
    that are neither JSON nor JSON lines are skipped.
    """
    if path.is_dir():
        files = [p for p in sorted(path.rglob("*")) if p.is_file() and p.suffix in {".json", ".jsonl", ".traj"}]
        return [trajectory for file in files for trajectory in read_trajectories(file)]
    values = _load(path)
    name = str(path)
    if isinstance(values, list):
        kinds = {str(event.get("event")) for event in values}
        if "trajectory" in kinds:
            return from_events(values, name)
        if "job" in kinds:
            return from_transcript(values)
        return [t for value in values for t in _of_object(value, name)]
    return _of_object(values, name)


def _of_object(value: Mapping[str, Any], name: str) -> list[Trajectory]:
    if str(value.get("schema_version", "")).startswith("ATIF-"):
        return from_atif(value, name)
    if isinstance(value.get("messages"), list) and ("info" in value or "trajectory_format" in value):
        return [from_mini_swe(value, name)]
    raise format_error(name, "is none of: excise events, a transcript, mini-swe-agent, ATIF")


def _load(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_FILE:
            raise format_error(str(path), f"is larger than {MAX_FILE >> 20} MB")
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise format_error(str(path), f"cannot be read ({error.strerror})") from error
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        try:
            values = [json.loads(line) for line in text.split("\n") if line.strip()]
        except (ValueError, RecursionError) as error:
            raise format_error(str(path), "is neither JSON nor JSON lines") from error
    many = values if isinstance(values, list) else [values]
    if not many or not all(isinstance(value, dict) for value in many):
        raise format_error(str(path), "holds no trajectory")
    return values


# --------------------------------------------------------------------------------- excise's transcripts
def from_transcript(events: Sequence[Mapping[str, Any]]) -> list[Trajectory]:
    """One trajectory for each conversation of a transcript (:mod:`excise.agents.transcript`)."""
    by_agent: dict[str, list[Step]] = {}
    for event in events:
        call = event.get("call")
        if event.get("event") == "tool" and isinstance(call, dict) and not event.get("malformed"):
            steps = by_agent.setdefault(str(event.get("agent", "")), [])
            steps.append(_called(len(steps) + 1, call.get("name"), call.get("arguments"), str(event.get("result", ""))))
    return [Trajectory(instance_id="", source="transcript", steps=tuple(steps)) for steps in by_agent.values()]


# ----------------------------------------------------------------------------------- mini-swe-agent
def from_mini_swe(value: Mapping[str, Any], name: str) -> Trajectory:
    """A ``.traj.json``: commands in fenced blocks (version 1) or as calls of a tool (version 2)."""
    steps: list[Step] = []
    unanswered: list[tuple[str, str]] = []
    for message in _objects(value["messages"]):
        role, content = str(message.get("role")), _text(message.get("content"))
        if role == "assistant":
            unanswered = list(_commands(message, content))
        elif role in {"user", "tool"} and unanswered and len(steps) < MAX_STEPS:
            wanted = message.get("tool_call_id")
            place = next((n for n, (call, _) in enumerate(unanswered) if wanted and call == wanted), 0)
            _, command = unanswered.pop(place)
            extra = _object(message.get("extra"))
            output = _text(extra.get("raw_output")) or content
            code = extra.get("returncode", _number(_RETURN.search(content)))
            exit_code = code if isinstance(code, int) else None
            steps.append(Step(number=len(steps) + 1, command=command, exit_code=exit_code, output=clipped(output)))
    steps += [Step(number=len(steps) + n, command=command) for n, (_, command) in enumerate(unanswered, 1)]
    info = _object(value.get("info"))
    config = _object(info.get("config"))
    environment = _object(config.get("environment"))
    return Trajectory(
        instance_id=str(value.get("instance_id") or info.get("instance_id") or _task_of(name)),
        source="mini-swe-agent",
        steps=tuple(steps),
        diff=_text(info.get("submission")),
        cwd=str(environment.get("cwd") or "/testbed"),
    )


def _task_of(name: str) -> str:
    """The task id in a file's name; ids may contain dots."""
    return re.sub(r"(\.traj)?\.json$|\.(traj|jsonl)$", "", Path(name).name)


def _commands(message: Mapping[str, Any], content: str) -> Iterator[tuple[str, str]]:
    """(id of the call, command) of an assistant's message."""
    extra = _object(message.get("extra"))
    actions = _objects(extra.get("actions"))
    calls = _objects(message.get("tool_calls"))
    if actions:
        yield from ((str(a.get("tool_call_id", "")), _text(a.get("command"))) for a in actions)
    elif calls:
        for call in calls:
            function = _object(call.get("function"))
            yield str(call.get("id", "")), _arguments(function.get("arguments")).get("command", "")
    else:
        yield from (("", block) for block in _FENCE.findall(content)[:1])


# --------------------------------------------------------------------------------------------- ATIF
def from_atif(value: Mapping[str, Any], name: str) -> list[Trajectory]:
    """An ATIF trajectory and those of its subagents; a step's calls are matched with their observations by id."""
    steps: list[Step] = []
    for step in _objects(value.get("steps")):
        calls = _objects(step.get("tool_calls"))
        observation = _object(step.get("observation"))
        results = _objects(observation.get("results"))
        for place, call in enumerate(calls[:MAX_STEPS]):
            ours = [r for r in results if r.get("source_call_id") == call.get("tool_call_id")]
            ours = ours or (results[place : place + 1] if len(results) == len(calls) else [])
            output = "\n".join(_text(result.get("content")) for result in ours)
            steps.append(_called(len(steps) + 1, call.get("function_name"), call.get("arguments"), output))
    extra = _object(value.get("extra"))
    own = Trajectory(
        instance_id=str(extra.get("instance_id") or value.get("instance_id") or ""),
        source="atif",
        steps=tuple(steps),
        diff=_text(extra.get("patch") or extra.get("diff")),
    )
    inner = [t for sub in _objects(value.get("subagent_trajectories")) for t in from_atif(sub, name)]
    return [own, *inner]


def _called(number: int, tool: object, arguments: object, output: str) -> Step:
    """A call of a tool as a step: a command if the tool is a shell."""
    texts = _arguments(arguments)
    if str(tool).lower() in _SHELL_TOOLS or (tool and len(texts) == 1 and next(iter(texts)) in _SHELL_KEYS):
        command = next((texts[key] for key in _SHELL_KEYS if key in texts), "")
        if command:
            return Step(number=number, command=command, cwd=texts.get("cwd", ""), output=clipped(output))
    return Step(number=number, tool=str(tool), arguments=texts, output=clipped(output))


def _arguments(value: object) -> dict[str, str]:
    """Arguments of a call as text; ``value`` is an object or its JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {"arguments": str(value)}
    if not isinstance(value, dict):
        return {}
    return {str(key): item if isinstance(item, str) else json.dumps(item) for key, item in value.items()}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    """Text of a message: a string, or a list of parts."""
    if isinstance(value, str):
        return value
    return "\n".join(_text(part.get("text")) for part in _objects(value))


def _number(match: re.Match[str] | None) -> int | None:
    return int(match[1]) if match else None
