"""The journal of a run: each group and attempt is written to disk when it is finished, so that none is lost.

A checkpoint holds the state at one step, the journal all events after it. Resuming restores the checkpoint and replays
the journal: tasks are drawn and recorded in the same order, and optimizer steps are repeated with the stored groups,
without sampling. Each checkpoint starts a new journal file. A file whose checkpoint is missing (the process was killed
while writing it) continues the file before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from excise.system.files import sync
from excise.trainer.rollout_types import Group, Rollout
from excise.types import from_json, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A group was started."""

    number: int
    """Number of the group, counted from 0."""
    instance_id: str
    """Id of the group's task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One attempt of a group is finished; others may still run."""

    number: int
    """Number of the group."""
    rollout: Rollout
    """The attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """All attempts of a group are finished, or it was abandoned."""

    number: int
    """Number of the group."""
    group: Group | None
    """The group; ``None`` if it was abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A finished group was recorded in the curriculum."""

    number: int
    """Number of the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """A batch was chosen (written before it is trained on), or groups were dropped."""

    step: int
    """The optimizer step, counted from 1; 0 if groups were dropped."""
    numbers: tuple[int, ...]
    """Numbers of the batch's groups, in order."""
    stale: tuple[int, ...] = ()
    """Numbers of the groups that were dropped because they are too old."""


Event = Begun | Made | Finished | Settled | Stepped
_KINDS: dict[str, type[Begun] | type[Made] | type[Finished] | type[Settled] | type[Stepped]] = {
    "begun": Begun,
    "made": Made,
    "finished": Finished,
    "settled": Settled,
    "stepped": Stepped,
}


class Journal:
    """The journal of a run: numbered files of JSON lines in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: Path | None = None

    def start_file(self) -> int:
        """Start a new file; returns its number, which the checkpoint of this moment has to store."""
        self._folder.mkdir(parents=True, exist_ok=True)
        number = max((_number(path) for path in self._files()), default=0) + 1
        self._file = self._folder / f"{number:06d}.jsonl"
        self._file.touch()
        sync(self._folder)
        return number

    def write(self, event: Event) -> None:
        """Append an event; when this returns, it is on the disk."""
        assert self._file is not None, "start_file was not called"
        line = b'{"%s": %s}\n' % (type(event).__name__.lower().encode(), to_json(event))
        with self._file.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def first_number(self) -> int:
        """Number of the oldest file; 0 if there is none."""
        return min((_number(path) for path in self._files()), default=0)

    def since(self, number: int) -> list[Event]:
        """All events in the files from this number on. A last line that was cut off by a kill is ignored."""
        return [event for path in self._files() if _number(path) >= number for event in _read(path)]

    def drop_before(self, number: int) -> None:
        """Delete the files before this number."""
        for path in self._files():
            if _number(path) < number:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.jsonl"))


def _number(path: Path) -> int:
    return int(path.stem)


def _read(path: Path) -> Iterator[Event]:
    data = path.read_bytes()
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        ((kind, fields),) = json.loads(line).items()
        yield from_json(_KINDS[kind], json.dumps(fields))
