"""Which groups are being made, and which are ready to be trained on.

Groups are begun in order and *settled* in order: recorded in the curriculum, kept if there is something to learn from
them, replaced if not. Up to ``window`` of a batch may overtake an older one that is still being made; without such a
bound, batches would be full of short rollouts. What is replaced has no place in a batch to take and waits for nobody.
At most ``(staleness + 1) * batch`` groups are begun and not yet trained on, so that none is older than ``staleness``
steps when its time comes, but for those that took very long.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from excise.errors import TrainingError
from excise.trainer.interfaces import Curriculum, Making, RolloutMaker
from excise.trainer.loop.queue_state import Batch, QueueState, ScheduleSettings, Tally
from excise.trainer.loop.run_journal import Begun, Event, Finished, Journal, Made, Settled, Stepped
from excise.trainer.rollout_types import Ending, Group, Rollout

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
        self._until: dict[int, float] = {}
        self._made: dict[int, dict[str, Rollout]] = {}
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
        with contextlib.suppress(OSError):  # a full disk has been told of by whoever met it first
            for number, task in self._running.items():
                if task.done() and not task.cancelled() and not task.exception():
                    group = task.result()
                    if group.rollouts and not _lost(group):
                        self._finish(number, self._prepare(group))
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
        self._until[number] = math.inf
        self._running[number] = asyncio.ensure_future(self._make(number, delay_s))

    async def _make(self, number: int, delay_s: float) -> Group:
        await asyncio.sleep(delay_s)
        known = self._made.setdefault(number, {})

        def started() -> None:
            self._until[number] = min(self._until[number], time.monotonic() + self.settings.group_deadline_s)

        def made(rollout: Rollout) -> None:
            if number in self._running and rollout.rollout_id not in known and not _is_lost(rollout):
                self._journal.write(Made(number=number, rollout=rollout))
                known[rollout.rollout_id] = rollout

        return await self._maker.group(
            self._begun[number],
            self.settings.group_size,
            group_id=_group_id(number),
            seed=(self.settings.seed << 32) + number,
            making=Making(known=dict(known), started=started, made=made),
        )

    def start_again(self) -> None:
        """Begin everything again that was being made when the run was interrupted."""
        for number in sorted(self._begun.keys() - self._running.keys() - self._finished.keys()):
            self._start(number)

    async def _wait(self, until: float, other: asyncio.Future[T]) -> None:
        """Until a group is finished or overdue, or ``other`` is done."""
        now = time.monotonic()
        overdue = [min(self._until[number], now + self.settings.group_deadline_s) for number in self._running]
        timeout = max(0.0, min([until, *overdue]) - now)
        waited: list[asyncio.Future[Any]] = [*self._running.values(), other]
        await asyncio.wait(waited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        self._gather()

    def _gather(self) -> None:
        now = time.monotonic()
        for number, task in list(self._running.items()):
            if task.done():
                del self._running[number]
                error = "cancelled" if task.cancelled() else task.exception() or self._spoilt(number, task.result())
                if not error:
                    self._failures_in_a_row = 0
                    self._failing.clear()
                    self._finish(number, self._prepare(task.result()))
                else:
                    self._failed(number, str(error) or type(error).__name__)
            elif now > self._until[number]:
                task.cancel()  # and is not waited for: what ignores this must not hold up the run
                del self._running[number]
                self._failed(number, f"not finished in {self.settings.group_deadline_s:.0f} s")

    def _spoilt(self, number: int, group: Group) -> str:
        """Why a group is to be made again, as far as it was lost to the infrastructure; empty if it will do."""
        lost = _lost(group)
        last = self._tries.get(number, 0) >= self.settings.retries
        if not lost or (last and 2 * len(lost) <= len(group.rollouts)):
            return "" if group.rollouts else "no attempt was made"
        return f"{len(lost)} of {len(group.rollouts)} attempts were lost: {lost[0].detail or 'no grade'}"

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
        self._note_finished(number, group)

    def _note_finished(self, number: int, group: Group | None) -> None:
        self._finished[number] = group
        self._made.pop(number, None)

    def _settle(self) -> None:
        """In order; an unfinished group holds up those behind it once enough have overtaken it."""
        share = self.settings.window if self.settings.staleness else 0.0
        most, waiting = int(share * self.settings.batch), 0
        for number in sorted(self._begun):
            if number not in self._finished:
                waiting += 1
            elif waiting <= most or (self.settings.staleness and not self._fills(self._finished[number])):
                event = Settled(number=number)
                self._journal.write(event)
                self._note_settled(event)

    def _fills(self, group: Group | None) -> bool:
        """Whether it takes a place in a batch."""
        return group is not None and self._worth(group)

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
            elif isinstance(event, Made):
                self._made.setdefault(event.number, {})[event.rollout.rollout_id] = event.rollout
            elif isinstance(event, Finished):
                self._note_finished(event.number, event.group)
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
            made={number: tuple(some.values()) for number, some in self._made.items() if some},
            finished=dict(self._finished),
            ready=dict(self._ready),
            along=dict(self._along),
            tally=replace(self.tally, settled=list(self.tally.settled)),
        )

    def restore(self, state: QueueState) -> None:
        """Go on from a checkpoint; then :meth:`replay`, then :meth:`start_again`."""
        self._next, self._begun, self._finished = state.next, dict(state.begun), dict(state.finished)
        self._made = {number: {one.rollout_id: one for one in some} for number, some in state.made.items()}
        self._ready, self._along = dict(state.ready), dict(state.along)
        self.tally = replace(state.tally, settled=list(state.tally.settled))


def _group_id(number: int) -> str:
    return f"g{number:06d}"


def _lost(group: Group) -> list[Rollout]:
    """Attempts that say nothing about the policy."""
    return [rollout for rollout in group.rollouts if _is_lost(rollout)]


def _is_lost(rollout: Rollout) -> bool:
    return rollout.ending is Ending.INFRA or (rollout.grade is not None and not rollout.grade.decided)


def _oldest(group: Group) -> int:
    """The oldest version that drew a token of it; a very high one without any."""
    return min(
        (version for r in group.counting for s in r.segments for version in s.versions if version >= 0),
        default=2**62,
    )
