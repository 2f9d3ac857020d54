"""The ladder of tasks: what is taken out, and how much the agent is shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from excise.types import FeatureKind, Task, Visibility


class Level(StrEnum):
    """What is missing, from the easiest to the hardest.

    The two lowest are in the order that was measured (lab notes): a function of one statement mostly has a telling
    name, one ``return`` of several needs the rest of the function to be understood.
    """

    LINE = "line"
    """The body of a function of one statement."""
    EXPRESSION = "expression"
    """One ``return`` of a function that does more."""
    STUB = "stub"
    """The body of a function, whatever its length."""
    FUNCTION = "function"
    """A function or method with all that refers to it."""
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
        """0 for the lowest."""
        return _ORDER[self]


_ORDER = {level: number for number, level in enumerate(Level)}
_BY_KIND = {
    FeatureKind.FUNCTION: Level.FUNCTION,
    FeatureKind.METHOD: Level.FUNCTION,
    FeatureKind.CLASS: Level.CLASS,
    FeatureKind.MODULE: Level.MODULE,
    FeatureKind.MULTI: Level.SEVERAL,
    FeatureKind.CROSS_FILE: Level.CROSS_FILE,
}
_PARTS = {level.value: level for level in (Level.LINE, Level.EXPRESSION, Level.STUB)}
"""Deleters that leave a definition standing, to their levels."""
_SHOWN = (Visibility.TESTS, Visibility.DOCSTRING, Visibility.SIGNATURE, Visibility.BEHAVIOUR)

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
"""Lines of code of the definitions concerned, where nothing better is known."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A step of the ladder."""

    level: Level
    """What is missing."""
    visibility: Visibility
    """What is shown."""

    @property
    def key(self) -> str:
        """``level/visibility``, for JSON."""
        return f"{self.level}/{self.visibility}"

    @property
    def order(self) -> tuple[int, int]:
        """Grows from easy to hard: first by what is missing, then by what is shown."""
        return self.level.order, list(Visibility).index(self.visibility)

    @property
    def height(self) -> float:
        """One number for people: the level's, and a fifth for each step by which less is shown."""
        level, shown = self.order
        return level + shown / len(Visibility)


def level_of(deleter: str, kind: FeatureKind) -> Level:
    """The level of what a deleter makes of a feature of this kind."""
    return _PARTS.get(deleter) or _BY_KIND[kind]


def rung_of(task: Task) -> Rung:
    """Where a task stands."""
    return Rung(level_of(task.deleter, task.difficulty.kind), task.visibility)


def rung_from(key: str) -> Rung:
    """The rung of a key. Raises ``ValueError`` for what is none."""
    level, _, visibility = key.partition("/")
    return Rung(Level(level), Visibility(visibility))


def all_rungs() -> tuple[Rung, ...]:
    """Every rung that can be made, from easy to hard. Tests are shown only where the names that they import stay."""
    rungs = (Rung(level, shown) for level in Level for shown in _SHOWN)
    possible = (r for r in rungs if r.visibility is not Visibility.TESTS or r.level.order <= Level.STUB.order)
    return tuple(sorted(possible, key=lambda rung: rung.order))
