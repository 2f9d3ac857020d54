"""When to ask the generator for other tasks, and for which.

Asked is when more is passed than the set-point says and the pool holds less than a request of tasks of middling pass
rates, or when it holds next to none of them. One request is open at a time, until the generator is done with it; rungs
that brought next to nothing are left alone for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from excise.trainer.curriculum.pass_rates import Predictor
from excise.trainer.curriculum.rungs import Level, Rung, all_rungs, rung_from
from excise.trainer.curriculum.task_request import HarderTasks
from excise.types import from_dict, to_dict


class AskSettings(BaseModel):
    """``[curriculum.ask]``: requests for harder tasks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    set_point: float = Field(default=0.6, gt=0, lt=1)
    """Harder tasks are asked for once more than this share of the attempts passes, if there are too few of them."""
    low_water: int = Field(default=8, ge=0)
    """Tasks are asked for, too, when fewer than these are left whose pass rates are middling, whatever is passed."""
    pass_rate: tuple[float, float] = (0.15, 0.7)
    """Predicted pass rates that are wanted: the middling ones."""
    count: int = Field(default=32, ge=1)
    """Tasks of one request."""
    warm_up: int = Field(default=8, ge=0)
    """Groups that are seen before anything is asked, unless there is nothing left to try."""
    patience: int = Field(default=64, ge=1)
    """A rung that brought next to nothing is left alone for four times as many groups."""
    language: str = "python"
    """Language of the tasks."""
    highest: Level = Level.CROSS_FILE
    """No level above this one; a mode that cannot try more keeps it lower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the pool knows when it decides."""

    now: int
    """Groups so far."""
    rate: float
    """Share of attempts that passed, lately."""
    level: float
    """Mean level of the tasks that were tried, lately."""
    rates: Mapping[Rung, float]
    """Share that passed of each rung that was tried."""
    num_suited: int
    """Tasks that may be drawn and whose pass rate is thought to be in the band that is asked for."""
    predictor: Predictor
    """What is known of rungs that nobody tried."""


class Asker:
    """Decides about requests and remembers the open one."""

    def __init__(self, settings: AskSettings, send: Callable[[HarderTasks], object]) -> None:
        self.settings = settings
        self.num_asked = 0
        self._send = send
        self._open: HarderTasks | None = None
        self._dry: dict[Rung, int] = {}
        """Rungs that brought next to nothing, and when."""

    @property
    def open(self) -> HarderTasks | None:
        """The request whose tasks may still come."""
        return self._open

    def consider(self, view: View, *, came: int | None = None, is_empty: bool = False) -> HarderTasks | None:
        """Ask if it is time to; the request that was made.

        ``came``: tasks that came of the open request, if the generator is done with it. ``is_empty``: there is nothing
        to try, so no group will come to ask after.
        """
        if came is not None:
            self.close(view.now, came)
        short = view.num_suited < self.settings.low_water
        easy = view.rate > self.settings.set_point and view.num_suited < self.settings.count
        early = view.now < self.settings.warm_up and not is_empty
        if self._open is not None or early or not (short or easy):
            return None
        rungs, band = self._wanted(view, harder=easy)
        if not rungs:
            return None
        self.num_asked += 1
        self._open = HarderTasks(
            lowest=rungs[0].level,
            highest=rungs[-1].level,
            visibility=rungs[0].visibility,
            count=self.settings.count,
            language=self.settings.language,
            pass_rate=band,
            predictor=view.predictor,
            number=self.num_asked,
        )
        self._send(self._open)
        return self._open

    def close(self, now: int, came: int | None) -> None:
        """The open request is over; ``came`` tasks came of it, as far as that is known."""
        if self._open is not None and came is not None and came < max(1, self._open.count // 4):
            self._dry.update(dict.fromkeys(_rungs_of(self._open), now))
        self._open = None

    def take_up(self, request: HarderTasks) -> None:
        """One that was made before an interruption is the open one again; whoever worked on it is gone."""
        self.num_asked, self._open = request.number, request
        self._send(request)

    def _wanted(self, view: View, *, harder: bool) -> tuple[list[Rung], tuple[float, float]]:
        """Rungs of one visibility, from easy to hard, those whose prediction is nearest the middle of what is wanted;
        and the predicted pass rates that their tasks may have.

        ``harder``: none below what is being tried, and none that is passed too often already. If no rung is in the
        band, it is the nearest one, or the easiest if all are too hard; any of its tasks will do then.
        """
        low, high = self.settings.pass_rate
        middle = (low + high) / 2
        rates = {rung: view.rates.get(rung, view.predictor.rate(rung)) for rung in self._possible(view.now)}
        if harder:
            rates = {rung: rate for rung, rate in rates.items() if rung.level.order >= view.level and rate < view.rate}
        inside = {rung: rate for rung, rate in rates.items() if low <= rate <= high}
        if inside:
            best = min(inside, key=lambda rung: (abs(inside[rung] - middle), rung.order))
            chosen = sorted((r for r in inside if r.visibility is best.visibility), key=lambda rung: rung.order)
            return chosen, (low, high)
        if not rates:
            return [], (low, high)
        if max(rates.values()) < low:
            return [min(rates, key=lambda rung: rung.order)], (0.0, 1.0)
        return [min(rates, key=lambda rung: (abs(rates[rung] - middle), rung.order))], (0.0, 1.0)

    def _possible(self, now: int) -> list[Rung]:
        highest, rest = self.settings.highest.order, 4 * self.settings.patience
        dry = {rung for rung, since in self._dry.items() if now - since < rest}
        return [rung for rung in all_rungs() if rung not in dry and rung.level.order <= highest]

    def state(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "num_asked": self.num_asked,
            "open": to_dict(self._open) if self._open else None,
            "dry": {rung.key: since for rung, since in self._dry.items()},
        }

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Go on from there, with what was open."""
        if state is None:
            return
        self.num_asked, self._open = state["num_asked"], None
        self._dry = {rung_from(key): since for key, since in state["dry"].items()}
        if state["open"]:
            self.take_up(from_dict(HarderTasks, state["open"]))


def _rungs_of(request: HarderTasks) -> list[Rung]:
    """The rungs that a request asks for."""
    levels = range(request.lowest.order, request.highest.order + 1)
    return [r for r in all_rungs() if r.visibility is request.visibility and r.level.order in levels]
