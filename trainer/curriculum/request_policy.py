"""Decides when to request tasks from the generator, and which ones.

Tasks are requested when the pass rate is above the set point and the pool has fewer suitable tasks than the size of a
request, or when it has almost none. A suitable task has a medium pass rate. One request is open at a time, until the
generator has finished it. Rungs for which the generator made almost no task are avoided for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from excise.datasets.difficulty.measures import Measures
from excise.datasets.difficulty.pass_rate_model import Predictor
from excise.datasets.difficulty.rungs import Level, Rung, all_rungs, rung_from
from excise.trainer.curriculum.task_request import TaskRequest
from excise.types import from_dict, to_dict


class RequestSettings(BaseModel):
    """``[curriculum.ask]``: requests for tasks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    set_point: float = Field(default=0.6, gt=0, lt=1)
    """Harder tasks are requested if more than this share of recent attempts passed and suitable tasks are too few."""
    low_water: int = Field(default=8, ge=0)
    """Tasks are requested at any pass rate if fewer suitable tasks than this are left."""
    pass_rate: tuple[float, float] = (0.15, 0.7)
    """Range of the predicted pass rate of suitable tasks."""
    count: int = Field(default=32, ge=1)
    """Number of tasks of one request."""
    warm_up: int = Field(default=8, ge=0)
    """Groups to record before the first request, unless no task is left."""
    patience: int = Field(default=64, ge=1)
    """A rung whose last request gave less than a quarter of its tasks is avoided for four times this number of
    groups."""
    language: str = "python"
    """Language adapter of the tasks."""
    highest: Level = Level.CROSS_FILE
    """Highest level to request; the mode of attempts may lower it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """The facts about the pool that a request depends on."""

    now: int
    """Number of recorded groups, which serves as the time."""
    rate: float
    """Share of recent attempts that passed."""
    level: float
    """Mean level of recently attempted tasks."""
    rates: Mapping[Rung, float]
    """Pass rate of each attempted rung."""
    num_suited: int
    """Number of open tasks whose expected pass rate is in ``RequestSettings.pass_rate``."""
    predictor: Predictor
    """Predicts the pass rates of other rungs."""


class RequestPolicy:
    """Decides about requests and keeps track of the open one."""

    def __init__(self, settings: RequestSettings, send: Callable[[TaskRequest], object]) -> None:
        self.settings = settings
        self.num_requests = 0
        self._send = send
        self._open: TaskRequest | None = None
        self._unproductive: dict[Rung, int] = {}
        """Rungs whose last request gave almost no tasks, to the time when that request ended."""

    @property
    def open(self) -> TaskRequest | None:
        """The request that the generator is working on."""
        return self._open

    def consider(self, pool: PoolStatus, *, num_made: int | None = None, is_empty: bool = False) -> TaskRequest | None:
        """Send a request if one is due, and return it.

        ``num_made``: number of tasks made for the open request, if the generator has finished it. ``is_empty``: no task
        is left to attempt, so the warm-up will not end.
        """
        if num_made is not None:
            self.close(pool.now, num_made)
        is_short = pool.num_suited < self.settings.low_water
        is_easy = pool.rate > self.settings.set_point and pool.num_suited < self.settings.count
        is_warm_up = pool.now < self.settings.warm_up and not is_empty
        if self._open is not None or is_warm_up or not (is_short or is_easy):
            return None
        rungs, pass_rate = self._choose_rungs(pool, harder=is_easy)
        if not rungs:
            return None
        self.num_requests += 1
        self._open = TaskRequest(
            lowest=rungs[0].level,
            highest=rungs[-1].level,
            visibility=rungs[0].visibility,
            count=self.settings.count,
            language=self.settings.language,
            pass_rate=pass_rate,
            predictor=pool.predictor,
            number=self.num_requests,
        )
        self._send(self._open)
        return self._open

    def close(self, now: int, num_made: int | None) -> None:
        """Close the open request; ``num_made`` is the number of its tasks, if known."""
        if self._open is not None and num_made is not None and num_made < max(1, self._open.count // 4):
            self._unproductive.update(dict.fromkeys(_rungs_of(self._open), now))
        self._open = None

    def reopen(self, request: TaskRequest) -> None:
        """Send a request of before an interruption again and make it the open one."""
        self.num_requests, self._open = request.number, request
        self._send(request)

    def _choose_rungs(self, pool: PoolStatus, *, harder: bool) -> tuple[list[Rung], tuple[float, float]]:
        """The rungs to request (of one visibility, from easy to hard), and the range of pass rates for their tasks.

        They have a predicted pass rate in the configured range, and the visibility of the rung nearest its middle. With
        ``harder``, only rungs at least at the current mean level and with a lower pass rate than the current one. If no
        rung is in the range, the nearest one is requested (the easiest, if all are too hard), for any pass rate.
        """
        low, high = self.settings.pass_rate
        middle = (low + high) / 2
        predicted = {rung: pool.predictor.rate(Measures(rung=rung)) for rung in self._allowed_rungs(pool.now)}
        rates = {rung: pool.rates.get(rung, rate) for rung, rate in predicted.items()}
        if harder:
            rates = {rung: rate for rung, rate in rates.items() if rung.level.order >= pool.level and rate < pool.rate}
        in_range = {rung: rate for rung, rate in rates.items() if low <= rate <= high}
        if in_range:
            best = min(in_range, key=lambda rung: (abs(in_range[rung] - middle), rung.order))
            chosen = sorted((r for r in in_range if r.visibility is best.visibility), key=lambda rung: rung.order)
            return chosen, (low, high)
        if not rates:
            return [], (low, high)
        if max(rates.values()) < low:
            return [min(rates, key=lambda rung: rung.order)], (0.0, 1.0)
        return [min(rates, key=lambda rung: (abs(rates[rung] - middle), rung.order))], (0.0, 1.0)

    def _allowed_rungs(self, now: int) -> list[Rung]:
        highest, pause = self.settings.highest.order, 4 * self.settings.patience
        avoided = {rung for rung, since in self._unproductive.items() if now - since < pause}
        return [rung for rung in all_rungs() if rung not in avoided and rung.level.order <= highest]

    def state(self) -> dict[str, Any]:
        """The state, as JSON values."""
        return {
            "num_asked": self.num_requests,
            "open": to_dict(self._open) if self._open else None,
            "dry": {rung.key: since for rung, since in self._unproductive.items()},
        }

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Continue from a :meth:`state`; an open request is sent again."""
        if state is None:
            return
        self.num_requests, self._open = state["num_asked"], None
        self._unproductive = {rung_from(key): since for key, since in state["dry"].items()}
        if state["open"]:
            self.reopen(from_dict(TaskRequest, state["open"]))


def _rungs_of(request: TaskRequest) -> list[Rung]:
    """All rungs that a request covers."""
    levels = range(request.lowest.order, request.highest.order + 1)
    return [r for r in all_rungs() if r.visibility is request.visibility and r.level.order in levels]
