"""The curriculum: draws tasks by their expected pass rate, and requests harder ones once most are passed.

The posterior of a task's pass rate has its rung's as its prior, and a rung's has a prediction; observations decay. A
task with expected pass rate ``p`` is drawn with weight ``p(1 - p) + ε``: a task that is always or never passed has no
signal. Time is measured in recorded groups, never in seconds, so runs with the same seed and the same
groups draw the same tasks.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from excise.datasets.difficulty.measures import Measures, measures_of
from excise.datasets.difficulty.pass_rate_model import Observation, PassRateModel, fit
from excise.datasets.difficulty.rungs import Rung, rung_from
from excise.trainer.curriculum.pass_rates import Beta, DecayedCounts
from excise.trainer.curriculum.request_policy import PoolStatus, RequestPolicy, RequestSettings
from excise.trainer.curriculum.task_request import TaskGenerator
from excise.trainer.rollout_types import Group, Rollout
from excise.types import Task, from_dict, to_dict

FORMAT = 4
"""Version of the state's format; increased when older programs cannot read it any more."""
_READABLE = (2, 3, FORMAT)
_MAX_NAMED = 10
"""Maximum number of quarantined tasks that :meth:`TaskPool.why_empty` names."""


class TaskStatus(StrEnum):
    """Status of a task in the pool."""

    OPEN = "open"
    """May be drawn."""
    USED = "used"
    """Was trained on ``max_visits`` times."""
    RETIRED = "retired"
    """Is almost always passed."""
    QUARANTINED = "quarantined"
    """Never passed in many attempts: needs inspection."""
    BROKEN = "broken"
    """Several groups in a row had no valid attempt: the infrastructure fails on it."""


class CurriculumSettings(BaseModel):
    """``[curriculum]``: which tasks are drawn, and when they are retired or quarantined."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 0
    """Random seed of the draws."""
    epsilon: float = Field(default=0.02, gt=0)
    """ε: added to every task's weight, so that each task can be drawn."""
    half_life: float = Field(default=256.0, gt=0)
    """Number of groups after which an observation weighs half."""
    prior_strength: float = Field(default=2.0, gt=0)
    """Weight of a prior, in attempts."""
    retire_above: float = Field(default=0.9, gt=0, lt=1)
    """A task is retired if its pass rate is above this with probability ``confidence``."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Probability for ``retire_above``."""
    quarantine_after: int = Field(default=32, ge=1)
    """Number of failed attempts, without one that passed, after which a task is quarantined."""
    broken_after: int = Field(default=3, ge=1)
    """Number of groups in a row without a valid attempt after which a task counts as broken."""
    max_visits: int = Field(default=1, ge=1)
    """Maximum number of groups of a task that are trained on. A group without signal does not count."""
    forget_after: int = Field(default=4096, ge=1)
    """A task whose group was started but never recorded may be drawn again after this many other draws."""
    tests_only: bool = True
    """Also train on tasks without useful recorded calls, which only tests grade; there, code written to fit the tests
    may succeed."""
    uses_attempts: bool = True
    """Whether expected pass rates begin with the model that ``excise difficulty`` stored with the set, if there is one;
    else with what is plausible without data."""
    ask: RequestSettings = RequestSettings()
    """Requests for tasks."""


@dataclass(slots=True)
class _Entry:
    """State of one task in the pool."""

    measures: Measures
    record: DecayedCounts = field(default_factory=DecayedCounts)
    visits: int = 0
    attempts: int = 0
    passes: int = 0
    num_invalid_groups: int = 0
    """Groups in a row without a valid attempt."""
    status: TaskStatus = TaskStatus.OPEN

    @property
    def rung(self) -> Rung:
        """The task's rung."""
        return self.measures.rung


class TaskPool:
    """The curriculum over an arena's tasks. Implements :class:`excise.trainer.interfaces.Curriculum`."""

    def __init__(
        self,
        tasks: Callable[[], Mapping[str, Task]],
        settings: CurriculumSettings | None = None,
        generator: TaskGenerator | None = None,
        prior: PassRateModel | None = None,
    ) -> None:
        """``tasks`` returns the available tasks, possibly more each time; ``generator`` executes requests for tasks.
        ``prior``: what attempts of others tell of difficulty; a restored pool keeps the one that it began with."""
        self.settings = settings or CurriculumSettings()
        self._tasks = tasks
        self._generator = generator
        self._requests = RequestPolicy(self.settings.ask, generator) if generator else None
        self._is_replaying = True
        """True until the first draw after a restart: a journal may be replayed, and no request is sent meanwhile."""
        self._rng = random.Random(self.settings.seed)
        self._entries: dict[str, _Entry] = {}
        self._rungs: dict[Rung, DecayedCounts] = defaultdict(DecayedCounts)
        self._running: dict[str, int] = {}
        self._now = 0
        self._drawn = 0
        self._replaced = 0
        self._overall = DecayedCounts()
        self._prior_model = (prior or PassRateModel()).as_prior()
        self._predictor = self._prior_model.predictor()
        self._priors: dict[Measures, float] = {}
        self._available: Mapping[str, Task] = {}
        self._order: list[str] = []
        self._add_new_tasks()

    # ---------------------------------------------------------------- Curriculum protocol
    def next_task(self, replayed: str | None = None) -> str | None:
        """Draw the task of the next group; ``None`` if no task is open now (:meth:`why_empty` says why)."""
        self._add_new_tasks()
        if replayed is not None:
            self._rng.random()  # keeps the generator in the state that the original draw left
            self._drawn += 1
            self._running[replayed] = self._drawn
            return replayed
        self._reopen_requests()
        drawable = [task for task in self._order if self._is_open(task)]
        if not drawable:
            self._consider(is_empty=not self._running)
            return None
        self._drawn += 1
        (chosen,) = self._rng.choices(drawable, [self._weight(task) for task in drawable])
        self._running[chosen] = self._drawn
        return chosen

    def record(self, group: Group) -> None:
        """Update the estimates with a group's result; ignored if the arena no longer has the task."""
        self._add_new_tasks()
        self._now += 1
        self._running.pop(group.instance_id, None)
        entry = self._entries.get(group.instance_id)
        if entry is None:
            return
        passed = sum(_passed(rollout) for rollout in group.valid_rollouts)
        failed = len(group.valid_rollouts) - passed
        entry.num_invalid_groups = 0 if group.valid_rollouts else entry.num_invalid_groups + 1
        entry.attempts += passed + failed
        entry.passes += passed
        if group.has_signal:
            entry.visits += 1
        else:
            self._replaced += 1
        for counts in (entry.record, self._rungs[entry.rung], self._overall):
            counts.add(passed, failed, self._now, self.settings.half_life)
        self._refit()
        entry.status = self._status_of(group.instance_id)
        self._consider()

    def state(self) -> dict[str, Any]:
        """The complete state, as JSON values."""
        version, words, gauss = self._rng.getstate()
        return {
            "format": FORMAT,
            "random": [version, list(words), gauss],
            "now": self._now,
            "drawn": self._drawn,
            "replaced": self._replaced,
            "begun": dict(self._running),
            "all": asdict(self._overall),
            "rungs": {rung.key: asdict(record) for rung, record in self._rungs.items()},
            "tasks": {task: _state_of(entry) for task, entry in self._entries.items()},
            "asked": self._requests.state() if self._requests else None,
            "prior": to_dict(self._prior_model),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue exactly from a :meth:`state`; an open request is sent again, tasks that no longer exist are dropped.

        Raises ``ValueError`` for a state of an unknown format.
        """
        if state.get("format") not in _READABLE:
            raise ValueError(f"the curriculum's state has format {state.get('format')}, not {FORMAT}")
        version, words, gauss = state["random"]
        self._rng.setstate((version, tuple(words), gauss))
        self._now, self._drawn, self._replaced = state["now"], state["drawn"], state["replaced"]
        self._prior_model = from_dict(PassRateModel, state["prior"]) if "prior" in state else PassRateModel()
        self._overall = DecayedCounts(**state["all"])
        self._rungs = defaultdict(
            DecayedCounts, {rung_from(key): DecayedCounts(**value) for key, value in state["rungs"].items()}
        )
        self._available = known = self._tasks()
        self._entries = {t: _entry_from(known[t], value) for t, value in state["tasks"].items() if t in known}
        self._running = {task: when for task, when in state["begun"].items() if task in known}
        self._refit()
        self._is_replaying = True
        if self._requests:
            self._requests.restore(state["asked"])

    # ---------------------------------------------------------------- estimates and status
    def prior(self, measures: Measures) -> float:
        """Expected pass rate of a task with these measures that was never attempted."""
        if measures not in self._priors:
            counts, strength = self._rungs.get(measures.rung, DecayedCounts()), self.settings.prior_strength
            observed = counts.decayed(self._now, self.settings.half_life)
            self._priors[measures] = Beta.of(self._predictor.rate(measures), strength, *observed).mean
        return self._priors[measures]

    def posterior(self, instance_id: str) -> Beta:
        """The posterior of one task's pass rate."""
        entry = self._entries[instance_id]
        observed = entry.record.decayed(self._now, self.settings.half_life)
        return Beta.of(self.prior(entry.measures), self.settings.prior_strength, *observed)

    @property
    def has_pending_requests(self) -> bool:
        """Whether a request is open, so that tasks may still arrive."""
        return self._requests is not None and self._requests.open is not None

    def status(self, instance_id: str) -> TaskStatus:
        """The status of a task."""
        return self._entries[instance_id].status

    def quarantined(self) -> tuple[str, ...]:
        """Tasks that need inspection: never passed in many attempts, or no valid attempt in several groups in a row."""
        statuses = {TaskStatus.QUARANTINED, TaskStatus.BROKEN}
        return tuple(sorted(task for task, entry in self._entries.items() if entry.status in statuses))

    def why_empty(self) -> str:
        """A sentence with the number of tasks by status: why :meth:`next_task` returns ``None``."""
        counts = Counter(str(entry.status) for entry in self._entries.values())
        listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "no task at all"
        pending = " Harder ones have been asked for." if self.has_pending_requests else ""
        quarantined = self.quarantined()
        more = ", …" if len(quarantined) > _MAX_NAMED else ""
        named = f" Never passed, or never graded: {', '.join(quarantined[:_MAX_NAMED])}{more}." if quarantined else ""
        return f"No task can be given: {listed}, {len(self._running)} under way.{pending}{named}"

    def summary(self) -> dict[str, float]:
        """Metrics: number of tasks by status, draws, requests, recent pass rates and level."""
        pool = self._pool_status()
        statuses = Counter(entry.status for entry in self._entries.values())
        numbers = {f"num_{name}": float(statuses[name]) for name in TaskStatus}
        rates = {f"pass_rate/{rung.key}": rate for rung, rate in sorted(pool.rates.items(), key=lambda i: i[0].order)}
        return {
            **numbers,
            "num_given": float(self._drawn),
            "num_replaced": float(self._replaced),
            "num_requests": float(self._requests.num_requests if self._requests else 0),
            "pass_rate": pool.rate,
            "level": pool.level,
            "num_suited": float(pool.num_suited),
            **rates,
        }

    # ---------------------------------------------------------------- internals
    def _consider(self, *, is_empty: bool = False) -> None:
        """Send a request for tasks if one is due."""
        if self._requests is not None and not self._is_replaying:
            num_made = self._num_made()
            self._requests.consider(self._pool_status(), num_made=num_made, is_empty=is_empty)

    def _reopen_requests(self) -> None:
        """After a replay, take over the requests that were sent between the checkpoint and the interruption."""
        if not self._is_replaying:
            return
        self._is_replaying = False
        if self._requests is not None and self._generator is not None:
            for request in self._generator.asked(self._requests.num_requests):
                self._requests.close(self._now, self._num_made())
                self._requests.reopen(request)

    def _num_made(self) -> int | None:
        """Number of available tasks made for the open request; ``None`` while the generator works on it."""
        request = self._requests.open if self._requests else None
        made = self._generator.made(request) if request and self._generator else None
        if made is None:
            return None
        self._add_new_tasks()  # they may have been published since the last call
        return sum(task in self._available for task in made)

    def _add_new_tasks(self) -> None:
        """Add the arena's new tasks to the pool. Tasks that the arena no longer has are not drawn."""
        self._available = self._tasks()
        new = self._available.keys() - self._entries.keys()
        for task in sorted(new):
            self._entries[task] = _Entry(measures_of(self._available[task]))
        if new or len(self._order) != len(self._entries):
            self._order = sorted(self._entries)

    def _is_open(self, instance_id: str) -> bool:
        drawn_at = self._running.get(instance_id)
        is_free = drawn_at is None or self._drawn - drawn_at >= self.settings.forget_after
        return is_free and self._entries[instance_id].status is TaskStatus.OPEN and instance_id in self._available

    def _weight(self, instance_id: str) -> float:
        mean = self.posterior(instance_id).mean
        return mean * (1 - mean) + self.settings.epsilon

    def _status_of(self, instance_id: str) -> TaskStatus:
        entry, settings = self._entries[instance_id], self.settings
        if entry.num_invalid_groups >= settings.broken_after:
            return TaskStatus.BROKEN
        if entry.attempts >= settings.quarantine_after and not entry.passes:
            return TaskStatus.QUARANTINED
        passed, failed = entry.record.decayed(self._now, settings.half_life)
        lower_bound = Beta(1 + passed, 1 + failed).quantile(1 - settings.confidence)  # from its own attempts only
        if lower_bound > settings.retire_above:
            return TaskStatus.RETIRED
        return TaskStatus.USED if entry.visits >= settings.max_visits else TaskStatus.OPEN

    def _refit(self) -> None:
        """Fit the predictor to all recorded attempts, and forget priors computed with the old one."""
        half_life = self.settings.half_life
        tried = ((e.measures, e.record.decayed(self._now, half_life)) for e in self._entries.values() if e.attempts)
        observations = (Observation(measures=m, passed=passed, failed=failed) for m, (passed, failed) in tried)
        self._predictor = fit(observations, self._prior_model).predictor()
        self._priors.clear()

    def _pool_status(self) -> PoolStatus:
        half_life, (low, high) = self.settings.half_life, self.settings.ask.pass_rate
        decayed = {rung: counts.decayed(self._now, half_life) for rung, counts in self._rungs.items()}
        weights = {rung: sum(counts) for rung, counts in decayed.items() if sum(counts) > 0}
        total = sum(weights.values())
        passed, failed = self._overall.decayed(self._now, half_life)
        return PoolStatus(
            now=self._now,
            rate=passed / (passed + failed) if passed + failed > 0 else 0.0,
            level=sum(rung.level.order * weight for rung, weight in weights.items()) / total if total else 0.0,
            rates={rung: decayed[rung][0] / weight for rung, weight in weights.items()},
            num_suited=sum(low <= self.posterior(task).mean <= high for task in self._order if self._is_open(task)),
            predictor=self._predictor,
        )


def _passed(rollout: Rollout) -> bool:
    """Whether the grader gave full reward, without penalties or partial credit."""
    return (rollout.grade.reward if rollout.grade else rollout.task_reward) >= 1.0


def _state_of(entry: _Entry) -> dict[str, Any]:
    return {
        "record": asdict(entry.record),
        "visits": entry.visits,
        "attempts": entry.attempts,
        "passes": entry.passes,
        "without": entry.num_invalid_groups,
        "standing": str(entry.status),
    }


def _entry_from(task: Task, state: Mapping[str, Any]) -> _Entry:
    return _Entry(
        measures_of(task),
        record=DecayedCounts(**state["record"]),
        visits=state["visits"],
        attempts=state["attempts"],
        passes=state["passes"],
        num_invalid_groups=state["without"],
        status=TaskStatus(state["standing"]),
    )
