"""A queue in front of the workers: the job that should go first does, even if it was added last."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from excise.pipeline.cluster.worker_pool import JobResult, WorkerPool

T = TypeVar("T")


class Rank(NamedTuple):
    """When a job should go; see :mod:`excise.pipeline.run.priorities`."""

    task_s: float
    """Expected seconds of work for each task that it leads to. The smallest goes first on one half of the workers."""
    chain_s: float
    """Expected seconds of the chain of jobs that it begins. The largest goes first on the other half."""


LOOKAHEAD = 64
"""Number of groups of jobs among which a pool may choose: those whose next jobs should go first."""


@dataclass(slots=True)
class _QueuedJob(Generic[T]):
    tag: T
    group: Hashable
    function: Callable[..., Any]
    args: tuple[Any, ...]


class _Order:
    """Numbers of queued jobs in one order; among jobs of equal rank, the oldest goes first.

    There may be 100,000. Jobs that were taken elsewhere are skipped when they are met.
    """

    def __init__(self, queued: Mapping[int, _QueuedJob[Any]]) -> None:
        self._queued = queued
        self._groups: dict[Hashable, list[tuple[float, int]]] = {}
        """Heap of the jobs of each group."""
        self._first: list[tuple[float, int]] = []
        """Heap of the first jobs of all groups, and of some that were first once."""

    def put(self, key: float, number: int, group: Hashable) -> None:
        """Add a job; small keys go first."""
        heap = self._groups.setdefault(group, [])
        heapq.heappush(heap, (key, number))
        if heap[0] == (key, number):
            heapq.heappush(self._first, heap[0])

    def next_jobs(self, most: int) -> list[int]:
        """The first jobs of the groups that should go first, in order; they stay."""
        found: list[tuple[float, int]] = []
        while self._first and len(found) < most:
            entry = heapq.heappop(self._first)
            if entry[1] in self._queued and entry not in found:
                found.append(entry)
        for entry in found:
            heapq.heappush(self._first, entry)
        return [number for _, number in found]

    def taken(self, group: Hashable) -> None:
        """Note that a job of a group was taken, so that another one may be its first."""
        heap = self._groups[group]
        while heap and heap[0][1] not in self._queued:
            heapq.heappop(heap)
        if heap:
            heapq.heappush(self._first, heap[0])
        else:
            del self._groups[group]


class JobQueue(Generic[T]):
    """Jobs, each with a tag. Iterating yields ``(tag, result)`` when a job ends, until none is left.

    Workers get no more jobs than they can start: Dask does not take back a job that waits behind a long one in a
    worker's own queue. ``on_start`` is called with the tag of each job that is given to a worker. ``cheapest_only``: no
    worker is kept for the longest chains.
    """

    def __init__(
        self, pool: WorkerPool, on_start: Callable[[T], None] = lambda _: None, *, cheapest_only: bool = False
    ) -> None:
        self.pool, self.on_start, self.cheapest_only = pool, on_start, cheapest_only
        self.slots = pool.num_slots()
        self.running: dict[Hashable, T] = {}
        self._chains: set[Hashable] = set()
        """Running jobs that were chosen for their chain."""
        self._number = 0
        self._queued: dict[int, _QueuedJob[T]] = {}
        self._orders = _Order(self._queued), _Order(self._queued)
        """By rank of a task, and of a chain."""

    def put(self, tag: T, rank: Rank, function: Callable[..., Any], *args: Any, group: Hashable = None) -> None:
        """Add a job. Jobs of one ``group`` need the same files: the pool may give them to the same machine."""
        self._number += 1
        group = (self._number,) if group is None else group
        self._queued[self._number] = _QueuedJob(tag, group, function, args)
        for order, key in zip(self._orders, (rank.task_s, -rank.chain_s), strict=True):
            order.put(key, self._number, group)

    def dispatch(self) -> None:
        """Give free slots the jobs that should go first."""
        if self._queued:
            self.slots = self.pool.num_slots()
        while self._queued and len(self.running) < self.slots:
            for_chain = not self.cheapest_only and len(self._chains) < self.slots // 2
            job = self._take(self._orders[for_chain])
            number = self.pool.submit(job.function, job.args)
            self.running[number] = job.tag
            if for_chain:
                self._chains.add(number)
            self.on_start(job.tag)

    def _take(self, order: _Order) -> _QueuedJob[T]:
        """Take the job that the pool prefers among the first ones."""
        numbers = order.next_jobs(LOOKAHEAD if self.pool.has_machines else 1)
        preferred = self.pool.prefer([self._queued[number].group for number in numbers]) if len(numbers) > 1 else 0
        job = self._queued.pop(numbers[preferred])
        for each in self._orders:
            each.taken(job.group)
        return job

    def __iter__(self) -> Iterator[tuple[T, JobResult]]:
        self.dispatch()
        while self.running:
            ended = self.pool.wait()
            if ended is None:
                self.dispatch()
                continue
            number, result = ended
            self._chains.discard(number)
            yield self.running.pop(number), result
            self.dispatch()

    def drop_queued(self) -> None:
        """Forget the jobs that no worker has begun."""
        self._queued.clear()
        self._orders = _Order(self._queued), _Order(self._queued)

    def cancel(self) -> None:
        """Cancel all jobs that have not ended."""
        self.drop_queued()
        self.pool.cancel()
