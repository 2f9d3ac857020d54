"""Requests to the generator for tasks of a certain difficulty."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from excise.datasets.difficulty.measures import Measures
from excise.datasets.difficulty.pass_rate_model import Predictor
from excise.datasets.difficulty.rungs import Level
from excise.types import Visibility, content_id, to_dict


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """A request for tasks. Its JSON form is what ``excise generate --request`` reads."""

    lowest: Level
    """Lowest level of the tasks."""
    highest: Level
    """Highest level of the tasks."""
    visibility: Visibility = Visibility.DOCSTRING
    """Visibility of the tasks."""
    count: int = 32
    """Number of tasks, over all sources."""
    language: str = "python"
    """Name of the language adapter."""
    pass_rate: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest predicted pass rate of the tasks."""
    predictor: Predictor = field(default_factory=Predictor)
    """Predicts the pass rate of candidates."""
    features: tuple[str, ...] = ()
    """Ids of features, or of symbols that are the whole entry of one; only these are taken, each at every level that
    fits. Empty for all features, each at one level."""
    number: int = 0
    """Number of the request in its run. Otherwise equal requests with different numbers give different tasks."""

    @property
    def request_id(self) -> str:
        """Content hash: equal requests have equal ids."""
        return content_id("harder_tasks", to_dict(self))

    def fits(self, measures: Measures) -> bool:
        """Whether a task with these measures matches the request."""
        low, high = self.pass_rate
        inside = self.lowest.order <= measures.rung.level.order <= self.highest.order
        return inside and low <= self.predictor.rate(measures) <= high


class TaskGenerator(Protocol):
    """Makes requested tasks in the background."""

    def __call__(self, request: TaskRequest) -> object:
        """Submit a request; an equal one is executed once."""

    def made(self, request: TaskRequest) -> Collection[str] | None:
        """Ids of all tasks made for a request; ``None`` while more may come."""

    def asked(self, after: int) -> Sequence[TaskRequest]:
        """All requests of this run with a number above ``after``, in order, including those before an interruption."""
