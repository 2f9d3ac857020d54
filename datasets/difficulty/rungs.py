"""The difficulty ladder: a rung is what is missing from a project (level) and what the agent is shown (visibility)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from excise.types import FeatureKind, Task, Visibility


class Level(StrEnum):
    """What is missing, from the easiest to the hardest.

    The order of the two lowest was measured (lab notes): a function of one statement mostly has a descriptive name,
    while one ``return`` of several requires understanding the rest of the function.
    """

    LINE = "line"
    """The body of a function of one statement."""
    EXPRESSION = "expression"
    """One ``return`` of a function with other statements."""
    STUB = "stub"
    """The body of a function of any length, or one path through it."""
    FUNCTION = "function"
    """A function or method, with all references to it."""
    CLASS = "class"
    """A class."""
    MODULE = "module"
    """A file."""
    SEVERAL = "several"
    """Several definitions of one file."""
    CROSS_FILE = "cross_file"
    """Definitions of several files."""

    @property
    def order(self) -> int:
        """Rank of the level, 0 for the easiest."""
        return _ORDER[self]


_ORDER = {level: number for number, level in enumerate(Level)}
_LEVEL_OF_KIND = {
    FeatureKind.FUNCTION: Level.FUNCTION,
    FeatureKind.METHOD: Level.FUNCTION,
    FeatureKind.CLASS: Level.CLASS,
    FeatureKind.MODULE: Level.MODULE,
    FeatureKind.MULTI: Level.SEVERAL,
    FeatureKind.CROSS_FILE: Level.CROSS_FILE,
}
_LEVEL_OF_DELETER = {level.value: level for level in (Level.LINE, Level.EXPRESSION, Level.STUB)} | {"path": Level.STUB}
"""Deleters that keep a definition and remove part of it, to their levels."""
_VISIBILITY_RANKS = {visibility: rank for rank, visibility in enumerate(Visibility)}
"""Visibility to its rank, from easy to hard. Stored difficulties depend on these numbers."""
_IN_SIGHT = frozenset({Visibility.TESTS, Visibility.SAMPLE_TESTS})
"""Visibilities with tests in sight."""
_NUM_VISIBILITY_RANKS = 5
"""Ranks per level: one rank adds a fifth to a rung's height."""

TYPICAL_LOC = {
    Level.LINE: 2,
    Level.EXPRESSION: 4,
    Level.STUB: 10,
    Level.FUNCTION: 12,
    Level.CLASS: 40,
    Level.MODULE: 100,
    Level.SEVERAL: 50,
    Level.CROSS_FILE: 70,
}
"""Typical number of lines of the removed code, used where the size is unknown."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung of the difficulty ladder."""

    level: Level
    """What is missing."""
    visibility: Visibility
    """What is shown."""

    @property
    def key(self) -> str:
        """``level/visibility``, the rung's name in JSON."""
        return f"{self.level}/{self.visibility}"

    @property
    def order(self) -> tuple[int, int]:
        """Sort key from easy to hard: first by level, then by visibility."""
        return self.level.order, _VISIBILITY_RANKS[self.visibility]

    @property
    def height(self) -> float:
        """Difficulty as one number: the rank of the level plus a fraction below 1 for the visibility."""
        level, rank = self.order
        return level + rank / _NUM_VISIBILITY_RANKS


def level_of(deleter: str, kind: FeatureKind) -> Level:
    """The level of a task that a deleter makes from a feature of this kind."""
    return _LEVEL_OF_DELETER.get(deleter) or _LEVEL_OF_KIND[kind]


def rung_of(task: Task) -> Rung:
    """The rung of a task."""
    return Rung(level_of(task.deleter, task.difficulty.kind), task.visibility)


def rung_from(key: str) -> Rung:
    """The rung with this :attr:`Rung.key`. Raises ``ValueError`` if there is none."""
    level, _, visibility = key.partition("/")
    return Rung(Level(level), Visibility(visibility))


def all_rungs() -> tuple[Rung, ...]:
    """All rungs, from easy to hard. Tests are in sight only at levels that keep the names that tests import."""
    rungs = (Rung(level, shown) for level in Level for shown in Visibility)
    possible = (r for r in rungs if r.visibility not in _IN_SIGHT or r.level.order <= Level.STUB.order)
    return tuple(sorted(possible, key=lambda rung: rung.order))
