"""Trajectories: an agent's actions, step by step, and their format as JSON lines.

One event per line. ``trajectory`` is the first (``version``, ``instance_id``, ``source``, ``cwd``); ``step`` is one
command or one call of a tool; ``end`` has the final diff, the processes still running, and the files written outside
the checkout. Fields are those of :class:`Trajectory` and :class:`Step`; unknown ones are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from excise.errors import AgentError
from excise.types import content_id, from_dict, to_dict

VERSION = 1
"""Version of the events; a reader refuses newer ones."""
MAX_FILE = 256 << 20
"""Maximum size of a trajectory file in bytes."""
MAX_STEPS = 20_000
"""Maximum number of steps of one trajectory."""
MAX_OUTPUT = 1 << 20
"""Maximum characters of a step's output that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One action of an agent, and its output."""

    number: int
    """Number of the step, counted from 1."""
    command: str = ""
    """A shell command or script; empty for other tools."""
    tool: str = ""
    """Name of the tool if it is not a shell."""
    arguments: dict[str, str] = field(default_factory=dict)
    """Arguments of that tool, as text."""
    cwd: str = ""
    """Working folder; empty if not recorded."""
    exit_code: int | None = None
    """Exit code; ``None`` if not recorded."""
    duration_s: float = 0.0
    """Wall seconds."""
    output: str = ""
    """Output that the agent saw."""
    opened: tuple[str, ...] = ()
    """Files outside the checkout that were opened, if recorded."""
    network: tuple[str, ...] = ()
    """Network addresses that were contacted, if recorded."""
    written: tuple[str, ...] = ()
    """Files that were written, if recorded."""

    @property
    def agent_text(self) -> str:
        """Everything that the agent wrote in this step: the command and the arguments."""
        return "\n".join([self.command, *self.arguments.values()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """All actions of one agent on one task."""

    instance_id: str
    """Id of the task; empty if the file does not say."""
    source: str
    """Format of the file: ``excise``, ``transcript``, ``mini-swe-agent`` or ``atif``."""
    steps: tuple[Step, ...]
    """The steps in order."""
    diff: str = ""
    """Final change of the checkout as a unified diff; empty if not recorded."""
    cwd: str = "/testbed"
    """Folder of the checkout."""
    processes: tuple[str, ...] = ()
    """Command lines of processes that were still running at the end."""
    changed: tuple[str, ...] = ()
    """Files outside the checkout that were written."""

    @property
    def trajectory_id(self) -> str:
        """Content hash of the trajectory."""
        return content_id("trajectory", to_dict(self))


def clipped(text: str) -> str:
    """The first :data:`MAX_OUTPUT` characters of a text."""
    return text if len(text) <= MAX_OUTPUT else text[:MAX_OUTPUT]


def write_events(path: Path, trajectories: Iterable[Trajectory]) -> None:
    """Write trajectories as JSON lines."""
    with open(path, "w", encoding="utf-8") as file:
        for trajectory in trajectories:
            body = to_dict(trajectory)
            head = {name: body[name] for name in ("instance_id", "source", "cwd")}
            tail = {name: body[name] for name in ("diff", "processes", "changed")}
            lines = [{"event": "trajectory", "version": VERSION, **head}]
            lines += [{"event": "step", **step} for step in body["steps"]]
            for line in (*lines, {"event": "end", **tail}):
                file.write(json.dumps(line, ensure_ascii=True) + "\n")


def from_events(events: Iterable[Mapping[str, Any]], name: str) -> list[Trajectory]:
    """Trajectories from the events of one file. Raises :class:`AgentError` (``bad_trajectory``)."""
    found: list[Trajectory] = []
    head: Mapping[str, Any] = {}
    steps: list[Step] = []
    for event in events:
        kind = event.get("event")
        if kind == "trajectory":
            if not isinstance(event.get("version"), int) or event["version"] > VERSION:
                raise format_error(name, f"has version {event.get('version')!r}, this excise reads up to {VERSION}")
            head, steps = event, []
        elif kind == "step" and len(steps) < MAX_STEPS:
            steps.append(step_from(event, len(steps) + 1, name))
        elif kind == "end":
            values = {"source": "excise", "instance_id": ""} | dict(head) | dict(event) | {"steps": ()}
            known = {key: values[key] for key in Trajectory.__dataclass_fields__ if key in values}
            try:
                trajectory = from_dict(Trajectory, known)
            except ValueError as error:
                raise format_error(name, f"has an event that does not fit: {error}") from error
            found.append(Trajectory(**{k: getattr(trajectory, k) for k in known if k != "steps"}, steps=tuple(steps)))
            head, steps = {}, []
    if head or steps:
        raise format_error(name, "ends without an `end` event")
    return found


def step_from(values: Mapping[str, Any], number: int, name: str) -> Step:
    """A step from plain values. Raises :class:`AgentError` (``bad_trajectory``)."""
    known = {key: values[key] for key in Step.__dataclass_fields__ if key in values} | {"number": number}
    if isinstance(known.get("output"), str):
        known["output"] = clipped(known["output"])
    try:
        return from_dict(Step, known)
    except ValueError as error:
        raise format_error(name, f"has a step that does not fit: {error}") from error


def format_error(name: str, problem: str) -> AgentError:
    """The error to raise for a file that is not a trajectory."""
    return AgentError(f"{name}: {problem}.", reason="bad_trajectory")
