"""When to ask the generator for other tasks, and for which.

Asked is when more is passed than the set-point says and the pool holds less than a request of tasks of middling pass
rates, or when it holds next to none of them. One request is open at a time: it is answered when enough of its tasks
have come, or when the generator is done with it; rungs that brought next to nothing are left alone for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from excise.trainer.curriculum.harder import HarderTasks
from excise.trainer.curriculum.prediction import Predictor
from excise.trainer.curriculum.rungs import Level, Rung, all_rungs, rung_from
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
    """Groups after which an open request is given up, if nobody says when the generator is done with it. For four times
    as many, a rung that brought next to nothing is left alone."""
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
    stock: Mapping[Rung, int]
    """Tasks of each rung, whatever became of them."""
    predictor: Predictor
    """What is known of rungs that nobody tried."""


class Asker:
    """Decides about requests and remembers the open one."""

    def __init__(self, settings: AskSettings, send: Callable[[HarderTasks], object]) -> None:
        self.settings = settings
        self.num_asked = 0
        self._send = send
        self._open: HarderTasks | None = None
        self._since = 0
        self._had = 0
        """Tasks on the open request's rungs when it was made."""
        self._dry: dict[Rung, int] = {}
        """Rungs that brought next to nothing, and when."""

    @property
    def open(self) -> HarderTasks | None:
        """The request whose tasks may still come."""
        return self._open

    def consider(self, view: View, *, is_over: bool | None = None, is_empty: bool = False) -> HarderTasks | None:
        """Ask if it is time to; the request that was made.

        ``is_over``: the generator is done with the open request; ``None``: nobody knows. ``is_empty``: there is nothing
        to try, so no group will come to ask after.
        """
        self._close(view, is_over)
        short = view.num_suited < self.settings.low_water
        easy = view.rate > self.settings.set_point and view.num_suited < self.settings.count
        early = view.now < self.settings.warm_up and not is_empty
        if self._open is not None or early or not (short or easy):
            return None
        rungs, band = self._wanted(view, harder=easy)
        if not rungs:
            return None
        self.num_asked += 1
        self._since, self._had = view.now, sum(view.stock.get(rung, 0) for rung in rungs)
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

    def _close(self, view: View, is_over: bool | None) -> None:
        """End the open request if its tasks have come, or will not."""
        if self._open is None:
            return
        rungs = _rungs_of(self._open)
        came = sum(view.stock.get(rung, 0) for rung in rungs) - self._had
        late = view.now - self._since >= self.settings.patience
        if came < self._open.count and not (late if is_over is None else is_over):
            return
        if came < max(1, self._open.count // 4):
            self._dry.update(dict.fromkeys(rungs, view.now))
        self._open = None

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
            "since": self._since,
            "had": self._had,
            "dry": {rung.key: since for rung, since in self._dry.items()},
        }

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Go on from there; what was open is sent again, since whoever worked on it is gone."""
        if state is None:
            return
        self.num_asked, self._since, self._had = state["num_asked"], state["since"], state["had"]
        self._dry = {rung_from(key): since for key, since in state["dry"].items()}
        self._open = from_dict(HarderTasks, state["open"]) if state["open"] else None
        if self._open is not None:
            self._send(self._open)


def _rungs_of(request: HarderTasks) -> list[Rung]:
    """The rungs that a request asks for."""
    levels = range(request.lowest.order, request.highest.order + 1)
    return [r for r in all_rungs() if r.visibility is request.visibility and r.level.order in levels]
