"""What was begun, made, settled and trained on, written down as it happens: nothing that is finished is ever lost.

A checkpoint holds the state at one step, the journal what came after it. Resuming restores the checkpoint and lets the
journal happen again: tasks are drawn and recorded in the same order, and steps are made again from the groups that are
there, without sampling a token. Each checkpoint begins a new file; a file without its checkpoint (the process was
killed while that was written) continues the one before.
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
    """A group was asked for."""

    number: int
    """Numbers rise by one."""
    instance_id: str
    """Task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One attempt of a group is done; the others may still be under way."""

    number: int
    """Of its :class:`Begun`."""
    rollout: Rollout
    """The attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A group is finished."""

    number: int
    """Of its :class:`Begun`."""
    group: Group | None
    """``None``: it failed too often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The turn of a finished group has come."""

    number: int
    """Of its :class:`Begun`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """A batch was chosen; written before it is trained on."""

    step: int
    """From 1; 0 for groups that are left out."""
    numbers: tuple[int, ...]
    """Groups in it, in order."""
    stale: tuple[int, ...] = ()
    """Groups that were too old for it."""


Event = Begun | Made | Finished | Settled | Stepped
_KINDS: dict[str, type[Begun] | type[Made] | type[Finished] | type[Settled] | type[Stepped]] = {
    "begun": Begun,
    "made": Made,
    "finished": Finished,
    "settled": Settled,
    "stepped": Stepped,
}


class Journal:
    """The journal of a run: numbered files in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: Path | None = None

    def begin(self) -> int:
        """From now on, write to a new file; its number belongs into the checkpoint that it follows."""
        self._folder.mkdir(parents=True, exist_ok=True)
        number = max((_number(path) for path in self._files()), default=0) + 1
        self._file = self._folder / f"{number:06d}.jsonl"
        self._file.touch()
        sync(self._folder)
        return number

    def write(self, event: Event) -> None:
        """Add an event; when this returns, it is on the disk."""
        assert self._file is not None, "the journal was not begun"
        line = b'{"%s": %s}\n' % (type(event).__name__.lower().encode(), to_json(event))
        with self._file.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def first(self) -> int:
        """Number of the oldest file; 0 without any."""
        return min((_number(path) for path in self._files()), default=0)

    def since(self, number: int) -> list[Event]:
        """What happened from the beginning of the file of this number, over all later ones; a last line that was cut
        off by a kill is left out.
        """
        return [event for path in self._files() if _number(path) >= number for event in _read(path)]

    def drop_before(self, number: int) -> None:
        """Forget the files before this one."""
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
