"""Rescanning: a leak found in one task is searched for in related tasks, in the way in which it was found.

The agent's own command is run again in a fresh workspace of each task. Its output, the files that it read, and what
the recovery agent finds are compared with that task's deleted code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from excise.envs.sandbox.mount_points import REPO
from excise.errors import SandboxError
from excise.protocols import Session
from excise.types import Quarantine, content_id
from excise.verifiers.agent_workspace import workspace
from excise.verifiers.candidate import Candidate
from excise.verifiers.monitor.findings import Finding, Label
from excise.verifiers.monitor.trajectory import Step, Trajectory
from excise.verifiers.recovery.inside.code_search import printable_strings
from excise.verifiers.recovery.recover import deleted_code_of, recover, shipped_lines
from excise.verifiers.recovery.recovery_attempt import RecoveredItem
from excise.verifiers.recovery.scoring import score

COMMAND_TIMEOUT_S = 60.0
"""Timeout of the agent's command in seconds."""
MAX_FILE_BYTES = 8 << 20
"""Maximum bytes of a file that are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """One confirmed leak: deleted code that the output of a trajectory's step contained."""

    instance_id: str
    """Id of the trajectory's task."""
    trajectory: str
    """Content hash of the trajectory."""
    label: Label
    """Kind of leak."""
    steps: tuple[int, ...]
    """Numbers of the steps that showed it."""
    places: tuple[str, ...]
    """Paths of files that the step read."""
    decoder: str
    """The step's shell command; empty for another tool."""
    output: str
    """The step's output."""
    text: str
    """The deleted code in the output."""
    detail: str
    """A sentence that describes the leak."""

    @property
    def level(self) -> str:
        """``L4`` for source text, ``L3`` for byte code."""
        return "L4" if self.label is Label.LEAK_FOUND else "L3"

    @property
    def leak_id(self) -> str:
        """Content hash of command, files and code: the same for equal leaks of different trajectories."""
        return content_id("leak", self.instance_id, self.decoder, self.places, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RescanResult:
    """The result of rescanning one task."""

    instance_id: str
    """Id of the task."""
    hits: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """(leak id, level, places) of each leak that this task has; the id is empty if the recovery agent found it."""
    problem: str = ""
    """Why the task could not be rescanned; empty if it was."""


def leak_of(trajectory: Trajectory, instance_id: str, finding: Finding) -> Leak:
    """The leak that a confirmed finding reports."""
    empty = Step(number=0)
    step = next((s for s in trajectory.steps if s.number in finding.steps), empty)
    return Leak(
        instance_id=instance_id,
        trajectory=trajectory.trajectory_id,
        label=finding.label,
        steps=finding.steps,
        places=finding.places,
        decoder=step.command,
        output=step.output,
        text=finding.text,
        detail=finding.detail,
    )


def rescan(candidate: Candidate, leaks: Sequence[Leak]) -> RescanResult:
    """Search one task for each of the leaks, and run the recovery agent on it. Raises :class:`SandboxError`."""
    code, shipped = deleted_code_of(candidate), shipped_lines(candidate)
    hits: list[tuple[str, str, tuple[str, ...]]] = []
    own = recover(candidate)
    if own.succeeded:
        hits.append(("", own.total.level or "L3", own.total.where))
    for leak in leaks:
        with workspace(candidate.bench, candidate.edits("shipped")) as place, place.open() as session:
            items = [_item("the trajectory", leak.output), *_read_again(session, leak)]
        found = score(code, items, lambda: shipped)
        if found.leaks:
            hits.append((leak.leak_id, found.level, found.where))
    return RescanResult(instance_id=candidate.task.instance_id, hits=tuple(hits))


def quarantine(leak: Leak, instance_id: str, level: str, places: Sequence[str], now: str) -> Quarantine:
    """The quarantine row that excludes a task because of a leak."""
    own = instance_id == leak.instance_id
    prints = (hashlib.sha256(line.encode()).hexdigest()[:16] for line in leak.text.splitlines())
    return Quarantine(
        instance_id=instance_id,
        leak_id=leak.leak_id,
        label=str(leak.label),
        level=level,
        detail=leak.detail if own else f"The leak of {leak.instance_id} brings this task's code as well.",
        found_in=leak.instance_id,
        trajectory=leak.trajectory,
        steps=tuple(map(str, leak.steps)),
        places=tuple(places)[:5],
        decoder=leak.decoder[:2000],
        fingerprint=tuple(prints) if own else (),
        created_at=now,
    )


def _read_again(session: Session, leak: Leak) -> list[RecoveredItem]:
    """Run the leak's command again; return its output and the files that it read, as items to score."""
    items = []
    if leak.decoder:
        argv = ["/bin/sh", "-c", 'command -v bash >/dev/null && exec bash -c "$0"; exec sh -c "$0"', leak.decoder]
        done = session.exec(argv, timeout_s=COMMAND_TIMEOUT_S, cwd=REPO)
        items.append(_item("its command", (done.stdout + b"\n" + done.stderr).decode(errors="replace")))
    for path in leak.places:
        if path.startswith("/"):
            try:
                data = session.get(path)[:MAX_FILE_BYTES]
            except (OSError, SandboxError):  # missing, or not a file
                continue
            items.append(_item(path, printable_strings(data) if b"\0" in data else data.decode(errors="replace")))
    return items


def _item(where: str, text: str) -> RecoveredItem:
    return RecoveredItem(strategy="rescan", kind="text", where=where, text=text)
