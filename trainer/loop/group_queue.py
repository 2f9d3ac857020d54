"""The queue of groups: starts them, retries them, and hands out batches of finished ones.

The states of a group::

    WAITING ─▶ RUNNING ─▶ FINISHED ─▶ READY ─────▶ TRAINING ─▶ (removed)
       ▲          │           │  └──▶ AUXILIARY ──────┘
       └─ retry ──┘           └──▶ (removed: nothing to learn from it, or failed too often)

Groups are started in order and *settled* in the same order: a finished group waits for all older ones, then it is
recorded in the curriculum, and kept if there is something to learn from it or replaced by a new group if not. Up to
``window`` of a batch may overtake an older group that is still running; without such a bound, batches would consist of
short rollouts. A group that is replaced takes no place in a batch and may always overtake. At most ``(staleness + 1) *
batch`` groups are started and not yet trained on, so that their tokens are at most ``staleness`` versions old when
they are trained on, except for groups that ran very long.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from excise.errors import TrainingError
from excise.trainer.interfaces import Curriculum, GroupProgress, RolloutMaker
from excise.trainer.loop.queue_state import Batch, QueueCounts, QueueState, ScheduleSettings
from excise.trainer.loop.run_journal import Begun, Event, Finished, Journal, Made, Settled, Stepped
from excise.trainer.rollout_types import Ending, Group, Rollout

T = TypeVar("T")
GroupTest = Callable[[Group], bool]
"""A predicate on groups."""
MAX_RETRY_DELAY_S = 60.0
"""Upper limit of the delay before a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """How finished groups are processed and what they are used for."""

    fills_batch: GroupTest = lambda group: group.has_signal
    """Whether a group counts towards the batch size; a group that does not is replaced by a new one."""
    is_auxiliary: GroupTest = lambda _: False
    """Whether a group that does not fill a batch is trained on in addition to it, for its lessons."""
    prepare: Callable[[Group], Group] = lambda group: group
    """Applied to each finished group (effort penalty, privileged context)."""


class GroupState(StrEnum):
    """State of a group in the queue; see the module's docstring."""

    WAITING = "waiting"
    """Started in the journal, but no attempt is running: after a restart, until :meth:`GroupQueue.start_waiting`."""
    RUNNING = "running"
    """Attempts are running, or a retry is about to start."""
    FINISHED = "finished"
    """All attempts are finished, or the group was abandoned; it waits for older groups before it is settled."""
    READY = "ready"
    """Settled; will be part of a coming batch."""
    AUXILIARY = "auxiliary"
    """Settled; will be trained on in addition to a batch, for its lessons."""
    TRAINING = "training"
    """In the batch that is being trained on."""


_UNSETTLED = (GroupState.WAITING, GroupState.RUNNING, GroupState.FINISHED)


@dataclass(slots=True)
class _QueuedGroup:
    """One group of the queue."""

    number: int
    instance_id: str
    state: GroupState = GroupState.WAITING
    attempts: dict[str, Rollout] = field(default_factory=dict)
    """Finished attempts by rollout id, until the group is finished."""
    result: Group | None = None
    """The finished group; ``None`` before, and for an abandoned group."""
    task: asyncio.Task[Group] | None = None
    """Makes the attempts while the group is running."""
    deadline: float = math.inf
    """Deadline of the group in monotonic time (seconds); infinite until the first attempt has started."""
    num_failures: int = 0
    """Number of failed tries."""

    @property
    def group(self) -> Group:
        """The result of a settled group."""
        assert self.result is not None, "abandoned groups are removed when they are settled"
        return self.result


class GroupQueue:
    """Starts groups and hands out batches. Used by one asyncio task."""

    def __init__(
        self,
        maker: RolloutMaker,
        curriculum: Curriculum,
        journal: Journal,
        settings: ScheduleSettings,
        rules: GroupRules | None = None,
    ) -> None:
        self.settings = settings
        self.version = 0
        """Version of the policy: optimizer steps made."""
        self.counts = QueueCounts()
        self.last_failure = ""
        self._maker, self._curriculum, self._journal = maker, curriculum, journal
        self._rules = rules or GroupRules()
        self._groups: dict[int, _QueuedGroup] = {}
        self._next_number = 0
        self._failures_in_a_row = 0
        self._failing: set[int] = set()
        """Numbers of the groups that failed since the last success of any group."""
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def num_running(self) -> int:
        """Number of running groups."""
        return len(self._in_state(GroupState.RUNNING))

    def stop(self) -> None:
        """Start no further groups, and let :meth:`next_batch` return at once."""
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def next_batch(self) -> Batch:
        """The next batch. It is not full if the deadline passes, nothing is running, or the queue was stopped.

        Raises :class:`TrainingError` if too many groups fail in a row.
        """
        until = time.monotonic() + self.settings.batch_deadline_s
        while True:
            self._settle_finished()
            self._start_new()
            if self._drop_stale():
                continue
            full = len(self._in_state(GroupState.READY)) >= self.settings.batch
            if full or self._stopped.done() or not self.num_running or time.monotonic() >= until:
                return self._take_batch()
            await self._wait(until, self._stopped)

    async def run_beside(self, work: asyncio.Future[T]) -> T:
        """Return the result of ``work`` (which has its own deadline), and process finished groups while waiting for
        it."""
        while not work.done():
            self._settle_finished()
            self._start_new()
            await self._wait(time.monotonic() + 60, work)
        return work.result()

    def put_back(self, batch: Batch) -> None:
        """Return a batch that is not going to be trained on."""
        for number in batch.numbers:
            group = self._groups[number]
            group.state = GroupState.READY if self._rules.fills_batch(group.group) else GroupState.AUXILIARY

    def start_more(self) -> bool:
        """Start as many groups as allowed. Returns whether any group is running."""
        self._start_new()
        return bool(self.num_running)

    def release_batch(self) -> None:
        """Forget the batch: it was trained on and the engine has the new weights. New groups may be started."""
        self._remove([group.number for group in self._in_state(GroupState.TRAINING)])

    async def close(self) -> None:
        """Cancel running groups; those that do not end within 10 seconds are abandoned to their threads."""
        running = self._in_state(GroupState.RUNNING)
        with contextlib.suppress(OSError):  # a full disk was reported by the first write that failed
            for group in running:
                task = group.task
                if task is not None and task.done() and not task.cancelled() and not task.exception():
                    result = task.result()
                    if result.rollouts and not _infra_failures(result):
                        self._finish(group, self._rules.prepare(result))
        tasks = [group.task for group in running if group.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=10)
        for group in running:
            group.task = None
            if group.state is GroupState.RUNNING:
                group.state = GroupState.WAITING

    # ------------------------------------------------------------------------------------------ starting and retrying
    def _in_state(self, *states: GroupState) -> list[_QueuedGroup]:
        """Groups in these states, by number."""
        return sorted((g for g in self._groups.values() if g.state in states), key=lambda group: group.number)

    def _num_outstanding(self) -> int:
        """Number of groups that are started and not trained on yet, without auxiliary ones."""
        in_training = [g for g in self._in_state(GroupState.TRAINING) if self._rules.fills_batch(g.group)]
        return len(self._in_state(*_UNSETTLED, GroupState.READY)) + len(in_training)

    def _start_new(self) -> None:
        max_outstanding = (self.settings.staleness + 1) * self.settings.batch
        while not self._stopped.done() and self._num_outstanding() < max_outstanding:
            instance_id = self._curriculum.next_task()
            if instance_id is None:
                return
            event = Begun(number=self._next_number, instance_id=instance_id)
            self._journal.write(event)
            self._start(self._apply_begun(event))

    def _start(self, group: _QueuedGroup, delay_s: float = 0.0) -> None:
        group.deadline = math.inf
        group.task = asyncio.ensure_future(self._make(group, delay_s))
        group.state = GroupState.RUNNING

    async def _make(self, group: _QueuedGroup, delay_s: float) -> Group:
        await asyncio.sleep(delay_s)

        def on_start() -> None:
            group.deadline = min(group.deadline, time.monotonic() + self.settings.group_deadline_s)

        def on_attempt(rollout: Rollout) -> None:
            is_new = rollout.rollout_id not in group.attempts and not _is_infra_failure(rollout)
            if group.state is GroupState.RUNNING and is_new:
                self._journal.write(Made(number=group.number, rollout=rollout))
                group.attempts[rollout.rollout_id] = rollout

        return await self._maker.group(
            group.instance_id,
            self.settings.group_size,
            group_id=_group_id(group.number),
            seed=(self.settings.seed << 32) + group.number,
            progress=GroupProgress(finished_attempts=dict(group.attempts), on_start=on_start, on_attempt=on_attempt),
        )

    def start_waiting(self) -> None:
        """Start the groups again that were running when the run was interrupted."""
        for group in self._in_state(GroupState.WAITING):
            self._start(group)

    async def _wait(self, until: float, other: asyncio.Future[T]) -> None:
        """Wait until a group finishes or passes its deadline, ``other`` is done, or it is ``until``."""
        now = time.monotonic()
        running = self._in_state(GroupState.RUNNING)
        deadlines = [min(group.deadline, now + self.settings.group_deadline_s) for group in running]
        timeout = max(0.0, min([until, *deadlines]) - now)
        waited: list[asyncio.Future[Any]] = [*(group.task for group in running if group.task is not None), other]
        await asyncio.wait(waited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        self._collect()

    def _collect(self) -> None:
        """Finish or retry the groups whose attempts are done or whose deadline has passed."""
        now = time.monotonic()
        for group in self._in_state(GroupState.RUNNING):
            task = group.task
            assert task is not None
            if task.done():
                problem = "cancelled" if task.cancelled() else task.exception() or self._problem(group, task.result())
                if not problem:
                    self._failures_in_a_row = 0
                    self._failing.clear()
                    self._finish(group, self._rules.prepare(task.result()))
                else:
                    self._fail(group, str(problem) or type(problem).__name__)
            elif now > group.deadline:
                task.cancel()  # not awaited: attempts that ignore it must not hold up the run
                self._fail(group, f"not finished in {self.settings.group_deadline_s:.0f} s")

    def _problem(self, group: _QueuedGroup, result: Group) -> str:
        """Why a group has to be retried: attempts failed because of the infrastructure. Empty if it is accepted."""
        failures = _infra_failures(result)
        is_last_try = group.num_failures >= self.settings.retries
        if not failures or (is_last_try and 2 * len(failures) <= len(result.rollouts)):
            return "" if result.rollouts else "no attempt was made"
        return f"{len(failures)} of {len(result.rollouts)} attempts were lost: {failures[0].detail or 'no grade'}"

    def _fail(self, group: _QueuedGroup, problem: str) -> None:
        """Retry a running group, or abandon it after its last retry."""
        self.last_failure = f"{group.instance_id}: {problem}"
        self.counts.failed += 1
        self._failures_in_a_row += 1
        group.state, group.task = GroupState.WAITING, None
        group.num_failures += 1
        if self._failures_in_a_row > 3 * self.settings.batch * (self.settings.retries + 1):
            raise TrainingError(f"Group after group fails, the last one with: {self.last_failure}", reason="no_groups")
        self._failing.add(group.number)
        running = {one.number for one in self._in_state(GroupState.RUNNING)}
        is_outage = len(self._failing) > 1 and running <= self._failing  # all groups fail: the task is not the cause
        if group.num_failures > self.settings.retries and not is_outage:
            self._finish(group, None)
        else:
            delay_s = self.settings.retry_delay_s * 2 ** (group.num_failures - 1)
            self._start(group, min(MAX_RETRY_DELAY_S, delay_s))

    def _finish(self, group: _QueuedGroup, result: Group | None) -> None:
        event = Finished(number=group.number, group=result)
        self._journal.write(event)
        self._apply_finished(event)

    # -------------------------------------------------------------------------------------------- settling and batching
    def _settle_finished(self) -> None:
        """Settle finished groups in order; up to ``window`` of a batch may overtake unfinished ones."""
        share = self.settings.window if self.settings.staleness else 0.0
        may_overtake, num_unfinished = int(share * self.settings.batch), 0
        for group in self._in_state(*_UNSETTLED):
            if group.state is not GroupState.FINISHED:
                num_unfinished += 1
            elif num_unfinished <= may_overtake or (self.settings.staleness and not self._fills_batch(group)):
                event = Settled(number=group.number)
                self._journal.write(event)
                self._apply_settled(event)

    def _fills_batch(self, group: _QueuedGroup) -> bool:
        return group.result is not None and self._rules.fills_batch(group.result)

    def _drop_stale(self) -> tuple[int, ...]:
        """Drop groups with tokens that are too old; returns their numbers. The journal records this as a step 0."""
        oldest = self.version - self.settings.drop_after
        ready = self._in_state(GroupState.READY)
        stale = tuple(group.number for group in ready if _oldest_version(group.group) < oldest)
        if stale:
            self._journal.write(Stepped(step=0, numbers=(), stale=stale))
            self._remove(stale)
            self.counts.lost += len(stale)
        return stale

    def _take_batch(self) -> Batch:
        chosen = self._in_state(GroupState.READY)[: self.settings.batch]
        chosen += self._in_state(GroupState.AUXILIARY) if chosen else []
        for group in chosen:
            group.state = GroupState.TRAINING
        return Batch(numbers=tuple(g.number for g in chosen), groups=tuple(g.group for g in chosen))

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._groups.pop(number, None)

    # ------------------------------------------------------------------------- state: changes by journal event, storage
    def _apply_begun(self, event: Begun) -> _QueuedGroup:
        group = self._groups[event.number] = _QueuedGroup(event.number, event.instance_id)
        self._next_number = event.number + 1
        return group

    def _apply_finished(self, event: Finished) -> None:
        group = self._groups[event.number]
        group.state, group.result, group.task = GroupState.FINISHED, event.group, None
        group.attempts.clear()

    def _apply_settled(self, event: Settled) -> None:
        group = self._groups[event.number]
        if group.result is None:
            self.counts.lost += 1
            empty = Group(group_id=_group_id(group.number), instance_id=group.instance_id, rollouts=())
            self._curriculum.record(empty)
            self._remove([group.number])
            return
        self._curriculum.record(group.result)
        self.counts.settled.append(group.result)
        if self._rules.fills_batch(group.result):
            group.state = GroupState.READY
            return
        self.counts.replaced += 1
        if self._rules.is_auxiliary(group.result):
            group.state = GroupState.AUXILIARY
            oldest = self._in_state(GroupState.AUXILIARY)[: -self.settings.batch]
            self._remove([one.number for one in oldest])
        else:
            self._remove([group.number])

    def replay(self, events: Iterable[Event]) -> Iterable[tuple[int, tuple[Group, ...]]]:
        """Apply the events of a journal without making any attempt; yields (step, groups) of each optimizer step.

        The curriculum draws the tasks that the journal names, even if it would choose others now.
        """
        for event in events:
            if isinstance(event, Begun):
                self._curriculum.next_task(replayed=event.instance_id)
                self._apply_begun(event)
            elif isinstance(event, Made):
                self._groups[event.number].attempts[event.rollout.rollout_id] = event.rollout
            elif isinstance(event, Finished):
                self._apply_finished(event)
            elif isinstance(event, Settled):
                self._apply_settled(event)
            elif event.step:
                groups = tuple(self._groups[number].group for number in event.numbers)
                self._remove(event.numbers)
                yield event.step, groups
                self.counts = QueueCounts()
            else:
                self._remove(event.stale)

    def state(self) -> QueueState:
        """The state for a checkpoint. Groups in training are left out: the checkpoint's weights have learned them."""
        unsettled = self._in_state(*_UNSETTLED)
        return QueueState(
            next=self._next_number,
            begun={group.number: group.instance_id for group in unsettled},
            made={group.number: tuple(group.attempts.values()) for group in unsettled if group.attempts},
            finished={group.number: group.result for group in self._in_state(GroupState.FINISHED)},
            ready={group.number: group.group for group in self._in_state(GroupState.READY)},
            along={group.number: group.group for group in self._in_state(GroupState.AUXILIARY)},
            tally=replace(self.counts, settled=list(self.counts.settled)),
        )

    def restore(self, state: QueueState) -> None:
        """Continue from a checkpoint. Then call :meth:`replay`, then :meth:`start_waiting`."""
        self._next_number = state.next
        self._groups = {number: _QueuedGroup(number, instance_id) for number, instance_id in state.begun.items()}
        for number, attempts in state.made.items():
            self._groups[number].attempts = {rollout.rollout_id: rollout for rollout in attempts}
        for number, result in state.finished.items():
            self._groups[number].state, self._groups[number].result = GroupState.FINISHED, result
        for new_state, groups in ((GroupState.READY, state.ready), (GroupState.AUXILIARY, state.along)):
            for number, group in groups.items():
                self._groups[number] = _QueuedGroup(number, group.instance_id, state=new_state, result=group)
        self.counts = replace(state.tally, settled=list(state.tally.settled))


def _group_id(number: int) -> str:
    return f"g{number:06d}"


def _infra_failures(group: Group) -> list[Rollout]:
    """Attempts that failed because of the infrastructure or could not be graded."""
    return [rollout for rollout in group.rollouts if _is_infra_failure(rollout)]


def _is_infra_failure(rollout: Rollout) -> bool:
    return rollout.ending is Ending.INFRA or (rollout.grade is not None and not rollout.grade.decided)


def _oldest_version(group: Group) -> int:
    """The oldest policy version that sampled a token of the group; a very high number if there is none."""
    return min(
        (version for r in group.valid_rollouts for s in r.segments for version in s.versions if version >= 0),
        default=2**62,
    )
