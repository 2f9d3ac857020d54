"""A priority queue in front of the workers: the most urgent job goes first, even if it was added last."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from excise.pipeline.run.worker_pool import JobResult, WorkerPool

T = TypeVar("T")


@dataclass(slots=True)
class _QueuedJob(Generic[T]):
    rank: tuple[float, int]
    """Negative priority, then the number of the job: the smallest goes first."""
    tag: T
    function: Callable[..., Any]
    args: tuple[Any, ...]

    def __lt__(self, other: _QueuedJob[T]) -> bool:
        return self.rank < other.rank


class JobQueue(Generic[T]):
    """Jobs, each with a tag. Iterating yields ``(tag, result)`` when a job ends, until none is left.

    Workers get no more jobs than they can start: Dask does not take back a job that waits behind a long one in a
    worker's own queue. ``on_start`` is called with the tag of each job that is given to a worker.
    """

    def __init__(self, pool: WorkerPool, on_start: Callable[[T], None] = lambda _: None) -> None:
        self.pool, self.on_start = pool, on_start
        self.slots = pool.num_slots()
        self.running: dict[Hashable, T] = {}
        self._queued: list[_QueuedJob[T]] = []
        self._number = 0

    def put(self, tag: T, priority: float, function: Callable[..., Any], *args: Any) -> None:
        """Add a job. Jobs of higher priority go first; among equal ones, the oldest."""
        self._number += 1
        heapq.heappush(self._queued, _QueuedJob((-priority, self._number), tag, function, args))

    def dispatch(self) -> None:
        """Submit the most urgent jobs to free slots."""
        if self._queued and len(self.running) >= self.slots:
            self.slots = self.pool.num_slots()
        while self._queued and len(self.running) < self.slots:
            job = heapq.heappop(self._queued)
            self.running[self.pool.submit(job.function, job.args, -job.rank[0])] = job.tag
            self.on_start(job.tag)

    def __iter__(self) -> Iterator[tuple[T, JobResult]]:
        self.dispatch()
        while self.running:
            number, result = self.pool.wait()
            yield self.running.pop(number), result
            self.dispatch()

    def cancel(self) -> None:
        """Cancel all jobs that have not ended."""
        self._queued.clear()
        self.pool.cancel()
