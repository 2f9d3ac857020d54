"""Which task next: those that are passed sometimes, and new ones that are harder once most are passed.

The belief about a task's pass rate starts from its rung's, and a rung's from a prediction; both fade. A task is drawn
with weight ``p(1 - p) + ε``: what is always passed, or never, teaches nothing. All of it is counted in groups, never in
seconds, so that a run with the same seed and the same groups draws the same tasks.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from excise.trainer.curriculum.pass_rates import Predictor, fitted
from excise.trainer.curriculum.posterior import Beta, Record
from excise.trainer.curriculum.request_policy import Asker, AskSettings, View
from excise.trainer.curriculum.rungs import Rung, rung_from, rung_of
from excise.trainer.curriculum.task_request import Generator
from excise.trainer.rollout_types import Group, Rollout
from excise.types import Task

FORMAT = 3
"""Of the state; raised when an older program could not read it."""
_READABLE = (2, FORMAT)
_NAMED = 10
"""Tasks that are set aside and named where none is left."""


class Standing(StrEnum):
    """What a task is to the pool."""

    OPEN = "open"
    """May be drawn."""
    USED = "used"
    """Trained on as often as it may be."""
    RETIRED = "retired"
    """Passed nearly always."""
    QUARANTINED = "quarantined"
    """Never passed in many attempts: somebody should look at it."""
    BROKEN = "broken"
    """Group after group, no attempt counted: the infrastructure fails on it."""


class CurriculumSettings(BaseModel):
    """``[curriculum]`` of a training configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 0
    """Decides the draws."""
    epsilon: float = Field(default=0.02, gt=0)
    """Added to every weight, so that nothing is forgotten."""
    half_life: float = Field(default=256.0, gt=0)
    """Groups after which an observation counts half."""
    prior_strength: float = Field(default=2.0, gt=0)
    """Attempts that a task's prior is worth."""
    retire_above: float = Field(default=0.9, gt=0, lt=1)
    """A task whose pass rate is above this ..."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """... with this probability, is retired."""
    quarantine_after: int = Field(default=32, ge=1)
    """Attempts without one that passed after which a task is set aside."""
    broken_after: int = Field(default=3, ge=1)
    """Groups in a row without an attempt that counts, likewise."""
    max_visits: int = Field(default=1, ge=1)
    """How often a task may be trained on. A group without signal is no visit: nothing is learnt from it."""
    forget_after: int = Field(default=4096, ge=1)
    """A group that was begun and never recorded is given up after so many others: its task may be drawn again."""
    tests_only: bool = True
    """Tasks of which recorded calls tell nothing are trained on, too; code that is written against the grader may win
    there."""
    ask: AskSettings = AskSettings()
    """When to ask for harder tasks."""


@dataclass(slots=True)
class _Entry:
    """One task as the pool knows it."""

    rung: Rung
    loc: int
    record: Record = field(default_factory=Record)
    visits: int = 0
    attempts: int = 0
    passes: int = 0
    without: int = 0
    """Groups in a row without an attempt that counts."""
    standing: Standing = Standing.OPEN


class TaskPool:
    """The curriculum over an arena's tasks. Implements :class:`excise.trainer.interfaces.Curriculum`."""

    def __init__(
        self,
        tasks: Callable[[], Mapping[str, Task]],
        settings: CurriculumSettings | None = None,
        generator: Generator | None = None,
    ) -> None:
        """``tasks`` may have more each time it is called; ``generator`` makes those that are asked for."""
        self.settings = settings or CurriculumSettings()
        self._tasks = tasks
        self._generator = generator
        self._asker = Asker(self.settings.ask, generator) if generator else None
        self._is_behind = True
        """Until a task is drawn, what is recorded may be a journal that happens again: nothing is asked meanwhile."""
        self._rng = random.Random(self.settings.seed)
        self._entries: dict[str, _Entry] = {}
        self._rungs: dict[Rung, Record] = defaultdict(Record)
        self._begun: dict[str, int] = {}
        self._now = 0
        self._drawn = 0
        self._replaced = 0
        self._all = Record()
        self._predictor = Predictor()
        self._priors: dict[tuple[Rung, int | None], float] = {}
        self._known: Mapping[str, Task] = {}
        self._order: list[str] = []
        self._take_up()

    # ------------------------------------------------------------------------------- the protocol
    def next_task(self, replayed: str | None = None) -> str | None:
        """Instance id of the next group; ``None`` if there is none to give now: :meth:`why_empty` says why."""
        self._take_up()
        if replayed is not None:
            self._rng.random()  # as the draw did
            self._drawn += 1
            self._begun[replayed] = self._drawn
            return replayed
        self._catch_up()
        able = [task for task in self._order if self._is_open(task)]
        if not able:
            self._consider(is_empty=not self._begun)
            return None
        self._drawn += 1
        (chosen,) = self._rng.choices(able, [self._weight(task) for task in able])
        self._begun[chosen] = self._drawn
        return chosen

    def record(self, group: Group) -> None:
        """What became of a group. One of a task that the arena no longer has says nothing about those that it has."""
        self._take_up()
        self._now += 1
        self._begun.pop(group.instance_id, None)
        entry = self._entries.get(group.instance_id)
        if entry is None:
            return
        passed = sum(_passed(rollout) for rollout in group.counting)
        failed = len(group.counting) - passed
        entry.without = 0 if group.counting else entry.without + 1
        entry.attempts += passed + failed
        entry.passes += passed
        if group.has_signal:
            entry.visits += 1
        else:
            self._replaced += 1
        for record in (entry.record, self._rungs[entry.rung], self._all):
            record.add(passed, failed, self._now, self.settings.half_life)
        self._fit()
        entry.standing = self._judge(group.instance_id)
        self._consider()

    def state(self) -> dict[str, Any]:
        """Everything to go on from, as JSON has it."""
        version, words, gauss = self._rng.getstate()
        return {
            "format": FORMAT,
            "random": [version, list(words), gauss],
            "now": self._now,
            "drawn": self._drawn,
            "replaced": self._replaced,
            "begun": dict(self._begun),
            "all": asdict(self._all),
            "rungs": {rung.key: asdict(record) for rung, record in self._rungs.items()},
            "tasks": {task: _state_of(entry) for task, entry in self._entries.items()},
            "asked": self._asker.state() if self._asker else None,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there, exactly. Tasks that are gone from the arena are forgotten; a request that was open is made
        again. Raises ``ValueError`` for a state of another format.
        """
        if state.get("format") not in _READABLE:
            raise ValueError(f"the curriculum's state has format {state.get('format')}, not {FORMAT}")
        version, words, gauss = state["random"]
        self._rng.setstate((version, tuple(words), gauss))
        self._now, self._drawn, self._replaced = state["now"], state["drawn"], state["replaced"]
        self._all = Record(**state["all"])
        self._rungs = defaultdict(Record, {rung_from(key): Record(**value) for key, value in state["rungs"].items()})
        self._known = known = self._tasks()
        self._entries = {t: _entry_from(known[t], value) for t, value in state["tasks"].items() if t in known}
        self._begun = {task: when for task, when in state["begun"].items() if task in known}
        self._fit()
        self._is_behind = True
        if self._asker:
            self._asker.restore(state["asked"])

    # ----------------------------------------------------------------------------- what it believes
    def prior(self, rung: Rung, loc: int | None = None) -> float:
        """What a task's pass rate is thought to be before anyone tries it: its rung's, that from a prediction."""
        if (rung, loc) not in self._priors:
            record, strength = self._rungs.get(rung, Record()), self.settings.prior_strength
            seen = record.faded(self._now, self.settings.half_life)
            self._priors[rung, loc] = Beta.of(self._predictor.rate(rung, loc), strength, *seen).mean
        return self._priors[rung, loc]

    def belief(self, instance_id: str) -> Beta:
        """The posterior of one task's pass rate."""
        entry = self._entries[instance_id]
        seen = entry.record.faded(self._now, self.settings.half_life)
        return Beta.of(self.prior(entry.rung, entry.loc), self.settings.prior_strength, *seen)

    @property
    def is_waiting(self) -> bool:
        """Tasks have been asked for and may come."""
        return self._asker is not None and self._asker.open is not None

    def standing(self, instance_id: str) -> Standing:
        """What a task is to the pool."""
        return self._entries[instance_id].standing

    def quarantined(self) -> tuple[str, ...]:
        """Tasks for somebody to look at: never passed, or never gradable."""
        out = {Standing.QUARANTINED, Standing.BROKEN}
        return tuple(sorted(task for task, entry in self._entries.items() if entry.standing in out))

    def why_empty(self) -> str:
        """A sentence that says what the pool consists of, where :meth:`next_task` has nothing to give."""
        counts = Counter(str(entry.standing) for entry in self._entries.values())
        listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "no task at all"
        waits = " Harder ones have been asked for." if self.is_waiting else ""
        aside = self.quarantined()
        more = ", …" if len(aside) > _NAMED else ""
        named = f" Never passed, or never graded: {', '.join(aside[:_NAMED])}{more}." if aside else ""
        return f"No task can be given: {listed}, {len(self._begun)} under way.{waits}{named}"

    def summary(self) -> dict[str, float]:
        """Numbers for the run's metrics: the pool, what is passed, and which level is being drawn."""
        view = self._view()
        standing = Counter(entry.standing for entry in self._entries.values())
        numbers = {f"num_{name}": float(standing[name]) for name in Standing}
        rates = {f"pass_rate/{rung.key}": rate for rung, rate in sorted(view.rates.items(), key=lambda i: i[0].order)}
        return {
            **numbers,
            "num_given": float(self._drawn),
            "num_replaced": float(self._replaced),
            "num_requests": float(self._asker.num_asked if self._asker else 0),
            "pass_rate": view.rate,
            "level": view.level,
            "num_suited": float(view.num_suited),
            **rates,
        }

    # ------------------------------------------------------------------------------------- within
    def _consider(self, *, is_empty: bool = False) -> None:
        """Ask for tasks if it is time to."""
        if self._asker is not None and not self._is_behind:
            came = self._came()
            self._asker.consider(self._view(), came=came, is_empty=is_empty)

    def _catch_up(self) -> None:
        """Take up what was asked for between the checkpoint and an interruption, and judge what came of it."""
        if not self._is_behind:
            return
        self._is_behind = False
        if self._asker is not None and self._generator is not None:
            for request in self._generator.asked(self._asker.num_asked):
                self._asker.close(self._now, self._came())
                self._asker.take_up(request)

    def _came(self) -> int | None:
        """How many tasks came of the open request, if the generator is done with it."""
        asked = self._asker.open if self._asker else None
        made = self._generator.made(asked) if asked and self._generator else None
        if made is None:
            return None
        self._take_up()  # they were published before that question, perhaps after the last look
        return sum(task in self._known for task in made)

    def _take_up(self) -> None:
        """Make the arena's new tasks known; those that it has no more are not drawn."""
        self._known = self._tasks()
        new = self._known.keys() - self._entries.keys()
        for task in sorted(new):
            self._entries[task] = _Entry(rung_of(self._known[task]), self._known[task].difficulty.loc)
        if new or len(self._order) != len(self._entries):
            self._order = sorted(self._entries)

    def _is_open(self, instance_id: str) -> bool:
        begun = self._begun.get(instance_id)
        is_free = begun is None or self._drawn - begun >= self.settings.forget_after
        return is_free and self._entries[instance_id].standing is Standing.OPEN and instance_id in self._known

    def _weight(self, instance_id: str) -> float:
        mean = self.belief(instance_id).mean
        return mean * (1 - mean) + self.settings.epsilon

    def _judge(self, instance_id: str) -> Standing:
        entry, settings = self._entries[instance_id], self.settings
        if entry.without >= settings.broken_after:
            return Standing.BROKEN
        if entry.attempts >= settings.quarantine_after and not entry.passes:
            return Standing.QUARANTINED
        passed, failed = entry.record.faded(self._now, settings.half_life)
        surely = Beta(1 + passed, 1 + failed).quantile(1 - settings.confidence)  # by its own attempts alone
        if surely > settings.retire_above:
            return Standing.RETIRED
        return Standing.USED if entry.visits >= settings.max_visits else Standing.OPEN

    def _fit(self) -> None:
        """Learn from what was recorded: predictions and priors are those of now."""
        half_life = self.settings.half_life
        seen = ((e.rung, e.loc, *e.record.faded(self._now, half_life)) for e in self._entries.values() if e.attempts)
        self._predictor = fitted(seen)
        self._priors.clear()

    def _view(self) -> View:
        half_life, (low, high) = self.settings.half_life, self.settings.ask.pass_rate
        faded = {rung: record.faded(self._now, half_life) for rung, record in self._rungs.items()}
        weights = {rung: sum(counts) for rung, counts in faded.items() if sum(counts) > 0}
        total = sum(weights.values())
        passed, failed = self._all.faded(self._now, half_life)
        return View(
            now=self._now,
            rate=passed / (passed + failed) if passed + failed > 0 else 0.0,
            level=sum(rung.level.order * weight for rung, weight in weights.items()) / total if total else 0.0,
            rates={rung: faded[rung][0] / weight for rung, weight in weights.items()},
            num_suited=sum(low <= self.belief(task).mean <= high for task in self._order if self._is_open(task)),
            predictor=self._predictor,
        )


def _passed(rollout: Rollout) -> bool:
    """Solved: what the grader says, whatever is added to or taken from the reward."""
    return (rollout.grade.reward if rollout.grade else rollout.task_reward) >= 1.0


def _state_of(entry: _Entry) -> dict[str, Any]:
    return {
        "record": asdict(entry.record),
        "visits": entry.visits,
        "attempts": entry.attempts,
        "passes": entry.passes,
        "without": entry.without,
        "standing": str(entry.standing),
    }


def _entry_from(task: Task, state: Mapping[str, Any]) -> _Entry:
    values = {**state, "record": Record(**state["record"]), "standing": Standing(state["standing"])}
    return _Entry(rung_of(task), task.difficulty.loc, **values)
