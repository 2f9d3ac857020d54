"""Which groups are being made, and which are ready to be trained on.

Groups are begun in order and *settled* in order: recorded in the curriculum, kept if there is something to learn from
them, replaced if not. Up to ``window`` of a batch may overtake an older one that is still being made; without such a
bound, batches would be full of short rollouts. At most ``(staleness + 1) * batch`` groups are begun and not yet trained
on, so that none is older than ``staleness`` steps when its time comes, but for those that took very long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from excise.errors import TrainingError
from excise.trainer.journal import Begun, Event, Finished, Journal, Settled, Stepped
from excise.trainer.protocols import Curriculum, RolloutMaker
from excise.trainer.records import Ending, Group


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """How many, how old, how long."""

    batch: int = 16
    """Groups of a step."""
    group_size: int = 8
    """Rollouts of a group."""
    staleness: int = 1
    """Steps that sampling may be ahead; 0 samples only from the newest policy, and repeats exactly."""
    window: float = 0.3
    """Share of a batch that may overtake; none does at staleness 0."""
    drop_after: int = 8
    """A group with a token older than this many versions is left out."""
    group_deadline_s: float = 3600.0
    """For one group; beyond, it is given up and tried again."""
    batch_deadline_s: float = 7200.0
    """For one batch; beyond, training goes on with what is there."""
    retries: int = 2
    """A group that failed more often is given up, unless everything fails."""
    retry_delay_s: float = 5.0
    """Wait before the second try, twice as long before each further one, a minute at most."""
    seed: int = 0
    """Makes the groups' seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one step is trained on."""

    numbers: tuple[int, ...]
    """Of the groups."""
    groups: tuple[Group, ...]
    """Those with a signal, and others with lessons alone."""
    stale: tuple[int, ...] = ()
    """Groups that were too old."""


@dataclass(slots=True)
class Tally:
    """Counts since the last batch."""

    settled: list[Group] = field(default_factory=list)
    """Groups, whatever became of them."""
    replaced: int = 0
    """Those without anything to learn from."""
    failed: int = 0
    """Tries that ended in an error or past the deadline."""
    lost: int = 0
    """Groups that were given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """Everything that a checkpoint holds of a queue; groups by number."""

    next: int = 0
    """Number of the next group."""
    begun: dict[int, str] = field(default_factory=dict)
    """Number to task of groups that are not settled: those that are not finished, either, begin again."""
    finished: dict[int, Group | None] = field(default_factory=dict)
    """Finished, their turn not yet come."""
    ready: dict[int, Group] = field(default_factory=dict)
    """Wait to be trained on."""
    along: dict[int, Group] = field(default_factory=dict)
    """Wait to go along, for their lessons."""
    tally: Tally = field(default_factory=Tally)
    """For the next report."""


T = TypeVar("T")
Worth = Callable[[Group], bool]
"""A question about a group."""


class GroupQueue:
    """Begins groups and hands out batches. One asyncio task uses it."""

    def __init__(
        self,
        maker: RolloutMaker,
        curriculum: Curriculum,
        journal: Journal,
        settings: ScheduleSettings,
        *,
        worth: Worth = lambda group: group.has_signal,
        lessons: Worth | None = None,
        prepare: Callable[[Group], Group] | None = None,
    ) -> None:
        """``worth``: fills a place in a batch; ``lessons``: goes along with one; ``prepare``: done to finished ones."""
        self.settings = settings
        self.version = 0
        self.tally = Tally()
        self.last_failure = ""
        self._maker, self._curriculum, self._journal = maker, curriculum, journal
        self._worth = worth
        self._lessons = lessons or (lambda _: False)
        self._prepare = prepare or (lambda group: group)
        self._next = 0
        self._begun: dict[int, str] = {}
        self._running: dict[int, asyncio.Task[Group]] = {}
        self._since: dict[int, float] = {}
        self._tries: dict[int, int] = {}
        self._failing: set[int] = set()
        self._finished: dict[int, Group | None] = {}
        self._ready: dict[int, Group] = {}
        self._along: dict[int, Group] = {}
        self._in_training = 0
        self._failures_in_a_row = 0
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def num_running(self) -> int:
        """Groups that are being made."""
        return len(self._running)

    def stop(self) -> None:
        """Let :meth:`batch` return at once."""
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def batch(self) -> Batch:
        """The next batch: full, or what there is when nothing more comes, the deadline passes, or it is told to stop.

        Empty, if there is nothing at all. Raises :class:`TrainingError` if group after group fails.
        """
        until = time.monotonic() + self.settings.batch_deadline_s
        while True:
            self._settle()
            self._fill()
            stale = self._drop_stale()
            if stale:
                continue
            full = len(self._ready) >= self.settings.batch
            if full or self._stopped.done() or not self._running or time.monotonic() >= until:
                return self._take()
            await self._wait(until, self._stopped)

    async def attend(self, work: asyncio.Future[T]) -> T:
        """What ``work`` comes to; groups go on being begun and written down meanwhile. Its deadline is its own."""
        while not work.done():
            self._settle()
            self._fill()
            await self._wait(time.monotonic() + 60, work)
        return work.result()

    def put_back(self, batch: Batch) -> None:
        """The batch is not going to be trained on now."""
        for number, group in zip(batch.numbers, batch.groups, strict=True):
            (self._ready if self._worth(group) else self._along)[number] = group
        self._in_training = 0

    def more(self) -> bool:
        """Begin what can be begun; whether anything is being made."""
        self._fill()
        return bool(self._running)

    def release(self) -> None:
        """The batch is trained on and the engine has the new weights: others may be begun."""
        self._in_training = 0

    async def close(self) -> None:
        """Give up what is being made; what does not let go within a few seconds is left alone."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=10)
        self._running.clear()

    def _outstanding(self) -> int:
        return len(self._begun) + len(self._ready) + self._in_training

    def _fill(self) -> None:
        most = (self.settings.staleness + 1) * self.settings.batch
        while not self._stopped.done() and self._outstanding() < most:
            instance_id = self._curriculum.next_task()
            if instance_id is None:
                return
            event = Begun(number=self._next, instance_id=instance_id)
            self._journal.write(event)
            self._note_begun(event)
            self._start(event.number)

    def _note_begun(self, event: Begun) -> None:
        self._begun[event.number] = event.instance_id
        self._next = event.number + 1

    def _start(self, number: int, delay_s: float = 0.0) -> None:
        self._running[number] = asyncio.ensure_future(self._make(number, delay_s))
        self._since[number] = time.monotonic() + delay_s

    async def _make(self, number: int, delay_s: float) -> Group:
        await asyncio.sleep(delay_s)
        return await self._maker.group(
            self._begun[number],
            self.settings.group_size,
            group_id=_group_id(number),
            seed=(self.settings.seed << 32) + number,
        )

    def start_again(self) -> None:
        """Begin everything again that was being made when the run was interrupted."""
        for number in sorted(self._begun.keys() - self._running.keys() - self._finished.keys()):
            self._start(number)

    async def _wait(self, until: float, other: asyncio.Future[T]) -> None:
        """Until a group is finished or overdue, or ``other`` is done."""
        overdue = [self._since[number] + self.settings.group_deadline_s for number in self._running]
        timeout = max(0.0, min([until, *overdue]) - time.monotonic())
        waited: list[asyncio.Future[Any]] = [*self._running.values(), other]
        await asyncio.wait(waited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        self._gather()

    def _gather(self) -> None:
        now = time.monotonic()
        for number, task in list(self._running.items()):
            if task.done():
                del self._running[number]
                error = "cancelled" if task.cancelled() else task.exception() or _spoilt(task.result())
                if not error:
                    self._failures_in_a_row = 0
                    self._failing.clear()
                    self._finish(number, self._prepare(task.result()))
                else:
                    self._failed(number, str(error) or type(error).__name__)
            elif now - self._since[number] > self.settings.group_deadline_s:
                task.cancel()  # and is not waited for: what ignores this must not hold up the run
                del self._running[number]
                self._failed(number, f"not finished in {self.settings.group_deadline_s:.0f} s")

    def _failed(self, number: int, why: str) -> None:
        self.last_failure = f"{self._begun[number]}: {why}"
        self.tally.failed += 1
        self._failures_in_a_row += 1
        tries = self._tries.get(number, 0)
        self._tries[number] = tries + 1
        if self._failures_in_a_row > 3 * self.settings.batch * (self.settings.retries + 1):
            raise TrainingError(f"Group after group fails, the last one with: {self.last_failure}", reason="no_groups")
        self._failing.add(number)
        outage = len(self._failing) > 1 and self._running.keys() <= self._failing
        if tries >= self.settings.retries and not outage:
            self._finish(number, None)
        else:  # where everything fails, it is not the task's fault
            self._start(number, min(60.0, self.settings.retry_delay_s * 2**tries))

    def _finish(self, number: int, group: Group | None) -> None:
        self._journal.write(Finished(number=number, group=group))
        self._finished[number] = group

    def _settle(self) -> None:
        """In order; an unfinished group holds up those behind it once enough have overtaken it."""
        share = self.settings.window if self.settings.staleness else 0.0
        most, waiting = int(share * self.settings.batch), 0
        for number in sorted(self._begun):
            if number in self._finished:
                event = Settled(number=number)
                self._journal.write(event)
                self._note_settled(event)
            else:
                waiting += 1
                if waiting > most:
                    return

    def _note_settled(self, event: Settled) -> None:
        instance_id = self._begun.pop(event.number)
        self._tries.pop(event.number, None)
        group = self._finished.pop(event.number)
        if group is None:
            self.tally.lost += 1
            self._curriculum.record(Group(group_id=_group_id(event.number), instance_id=instance_id, rollouts=()))
            return
        self._curriculum.record(group)
        self.tally.settled.append(group)
        if self._worth(group):
            self._ready[event.number] = group
            return
        self.tally.replaced += 1
        if self._lessons(group):
            self._along[event.number] = group
            for number in sorted(self._along)[: -self.settings.batch]:
                del self._along[number]

    def _drop_stale(self) -> tuple[int, ...]:
        """Leave out what is too old; true to the journal, which has it as a step without groups."""
        oldest = self.version - self.settings.drop_after
        stale = tuple(number for number, group in self._ready.items() if _oldest(group) < oldest)
        if stale:
            self._journal.write(Stepped(step=0, numbers=(), stale=stale))
            self._note_stepped(stale)
            self.tally.lost += len(stale)
        return stale

    def _take(self) -> Batch:
        numbers = tuple(sorted(self._ready)[: self.settings.batch])
        numbers += tuple(sorted(self._along)) if numbers else ()
        groups = self._groups(numbers)
        self._note_stepped(numbers)
        self._in_training = sum(1 for group in groups if self._worth(group))
        return Batch(numbers=numbers, groups=groups)

    def _groups(self, numbers: Iterable[int]) -> tuple[Group, ...]:
        return tuple(self._ready[number] if number in self._ready else self._along[number] for number in numbers)

    def _note_stepped(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._ready.pop(number, None)
            self._along.pop(number, None)

    def replay(self, events: Iterable[Event]) -> Iterable[tuple[int, tuple[Group, ...]]]:
        """Let a journal happen again, nothing being made; gives (step, groups) where one was trained on.

        What the curriculum drew is what the journal says even if it would now choose another.
        """
        for event in events:
            if isinstance(event, Begun):
                self._curriculum.next_task(replayed=event.instance_id)
                self._note_begun(event)
            elif isinstance(event, Finished):
                self._finished[event.number] = event.group
            elif isinstance(event, Settled):
                self._note_settled(event)
            elif event.step:
                groups = self._groups(event.numbers)
                self._note_stepped(event.numbers)
                yield event.step, groups
                self.tally = Tally()
            else:
                self._note_stepped(event.stale)

    def state(self) -> QueueState:
        """For a checkpoint."""
        return QueueState(
            next=self._next,
            begun=dict(self._begun),
            finished=dict(self._finished),
            ready=dict(self._ready),
            along=dict(self._along),
            tally=replace(self.tally, settled=list(self.tally.settled)),
        )

    def restore(self, state: QueueState) -> None:
        """Go on from a checkpoint; then :meth:`replay`, then :meth:`start_again`."""
        self._next, self._begun, self._finished = state.next, dict(state.begun), dict(state.finished)
        self._ready, self._along = dict(state.ready), dict(state.along)
        self.tally = replace(state.tally, settled=list(state.tally.settled))


def _group_id(number: int) -> str:
    return f"g{number:06d}"


def _spoilt(group: Group) -> str:
    """Why a group says nothing about the policy: not one attempt got through; empty, if one did."""
    failed = [r for r in group.rollouts if r.ending is Ending.INFRA or (r.grade is not None and not r.grade.decided)]
    if len(failed) < len(group.rollouts):
        return ""
    return failed[0].detail or "no attempt got through" if failed else "no attempt was made"


def _oldest(group: Group) -> int:
    """The oldest version that drew a token of it; a very high one without any."""
    return min(
        (version for r in group.counting for s in r.segments for version in s.versions if version >= 0),
        default=2**62,
    )
