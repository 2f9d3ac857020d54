"""A request to the generator for tasks that this policy cannot do yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from excise.trainer.curriculum.pass_rates import Predictor
from excise.trainer.curriculum.rungs import Level, Rung
from excise.types import Visibility, content_id, to_dict


@dataclass(frozen=True, slots=True, kw_only=True)
class HarderTasks:
    """Which tasks are wanted. As JSON it is what ``excise generate --request`` reads."""

    lowest: Level
    """Least that is to be missing."""
    highest: Level
    """Most."""
    visibility: Visibility = Visibility.DOCSTRING
    """What is to be shown."""
    count: int = 32
    """How many tasks, over all sources."""
    language: str = "python"
    """Language adapter."""
    pass_rate: tuple[float, float] = (0.0, 1.0)
    """Least and greatest predicted pass rate."""
    predictor: Predictor = field(default_factory=Predictor)
    """What predicts it."""
    number: int = 0
    """Which request of a run it is: an equal request with another number brings other tasks."""

    @property
    def request_id(self) -> str:
        """Content hash: the same request, made again, is the same."""
        return content_id("harder_tasks", to_dict(self))

    def fits(self, level: Level, loc: int) -> bool:
        """Whether a task with this much missing, of so many lines, is wanted."""
        low, high = self.pass_rate
        inside = self.lowest.order <= level.order <= self.highest.order
        return inside and low <= self.predictor.rate(Rung(level, self.visibility), loc) <= high


class Generator(Protocol):
    """Makes tasks that are asked for, sooner or later."""

    def __call__(self, request: HarderTasks) -> object:
        """Ask; an equal request is made once."""

    def made(self, request: HarderTasks) -> Collection[str] | None:
        """Ids of all tasks that came of a request; ``None`` while more may come."""

    def asked(self, after: int) -> Sequence[HarderTasks]:
        """The requests of this run with a number above this one, those before an interruption among them, in order."""
