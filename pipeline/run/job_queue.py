"""A queue in front of the workers: the job that should go first does, even if it was added last."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from excise.pipeline.run.worker_pool import JobResult, WorkerPool

T = TypeVar("T")


class Rank(NamedTuple):
    """When a job should go; see :mod:`excise.pipeline.run.priorities`."""

    task_s: float
    """Expected seconds of work for each task that it leads to. The smallest goes first on one half of the workers."""
    chain_s: float
    """Expected seconds of the chain of jobs that it begins. The largest goes first on the other half."""


@dataclass(slots=True)
class _QueuedJob(Generic[T]):
    tag: T
    function: Callable[..., Any]
    args: tuple[Any, ...]


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
        self._queued: dict[int, _QueuedJob[T]] = {}
        self._by_chain: list[tuple[float, int]] = []
        self._by_task: list[tuple[float, int]] = []
        """Heaps of the numbers of queued jobs, and of some that were taken from the other one."""
        self._number = 0

    def put(self, tag: T, rank: Rank, function: Callable[..., Any], *args: Any) -> None:
        """Add a job."""
        self._number += 1
        self._queued[self._number] = _QueuedJob(tag, function, args)
        heapq.heappush(self._by_chain, (-rank.chain_s, self._number))
        heapq.heappush(self._by_task, (rank.task_s, self._number))

    def dispatch(self) -> None:
        """Give free slots the jobs that should go first."""
        if self._queued and len(self.running) >= self.slots:
            self.slots = self.pool.num_slots()
        while self._queued and len(self.running) < self.slots:
            for_chain = not self.cheapest_only and len(self._chains) < self.slots // 2
            job = self._take(self._by_chain if for_chain else self._by_task)
            number = self.pool.submit(job.function, job.args)
            self.running[number] = job.tag
            if for_chain:
                self._chains.add(number)
            self.on_start(job.tag)

    def _take(self, heap: list[tuple[float, int]]) -> _QueuedJob[T]:
        """Take the first job of a heap: among jobs of equal rank, the oldest. There may be 100,000."""
        while True:
            _, number = heapq.heappop(heap)
            if number in self._queued:
                return self._queued.pop(number)

    def __iter__(self) -> Iterator[tuple[T, JobResult]]:
        self.dispatch()
        while self.running:
            ended = self.pool.wait()
            if ended is None:
                self.slots = self.pool.num_slots()
                self.dispatch()
                continue
            number, result = ended
            self._chains.discard(number)
            yield self.running.pop(number), result
            self.dispatch()

    def drop_queued(self) -> None:
        """Forget the jobs that no worker has begun."""
        for queued in (self._queued, self._by_chain, self._by_task):
            queued.clear()

    def cancel(self) -> None:
        """Cancel all jobs that have not ended."""
        self.drop_queued()
        self.pool.cancel()
