"""A priority queue in front of a Dask cluster: the most urgent job goes first, even if it was added last."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from excise.pipeline.run.cluster import num_slots, slot_resources

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
    """Jobs, each with a tag. Iterating yields ``(tag, future)`` when a job ends, until none is left.

    Workers get no more jobs than they can start, since Dask does not take back jobs that wait in a worker's own queue
    behind a long one. ``on_start`` is called with the tag of each job that is given to a worker.
    """

    def __init__(self, client: Any, on_start: Callable[[T], None] = lambda _: None) -> None:
        self.client, self.on_start = client, on_start
        self.resources = slot_resources(client)
        self.slots = num_slots(client)
        self.running: dict[Any, T] = {}
        self._queued: list[_QueuedJob[T]] = []
        self._number = 0

    def put(self, tag: T, priority: float, function: Callable[..., Any], *args: Any) -> None:
        """Add a job. Jobs of higher priority go first; among equal ones, the oldest."""
        self._number += 1
        heapq.heappush(self._queued, _QueuedJob((-priority, self._number), tag, function, args))

    def dispatch(self) -> list[Any]:
        """Submit the most urgent jobs to free slots; return their futures."""
        if self._queued and len(self.running) >= self.slots:
            self.slots = num_slots(self.client)
        new = []
        while self._queued and len(self.running) < self.slots:
            job = heapq.heappop(self._queued)
            future = self.client.submit(
                job.function,
                *job.args,
                pure=False,
                priority=-job.rank[0],
                resources=self.resources,
                retries=0,
            )
            self.running[future] = job.tag
            new.append(future)
            self.on_start(job.tag)
        return new

    def __iter__(self) -> Iterator[tuple[T, Any]]:
        from distributed import as_completed

        completed = as_completed(self.dispatch())
        for future in completed:
            yield self.running.pop(future), future
            future.release()
            completed.update(self.dispatch())

    def cancel(self) -> None:
        """Cancel all jobs that have not ended."""
        self._queued.clear()
        self.client.cancel(list(self.running))


def job_failure(future: Any, retry_advice: str) -> tuple[str, str]:
    """Return the reason and a sentence for a future without a result: its worker died, or the job raised.

    ``retry_advice`` ends the sentence; it says how the job is tried again.
    """
    error = future.exception() if future.status == "error" else None
    if error is None or type(error).__name__ == "KilledWorker":
        return "worker_died", f"The worker process died twice at this stage (out of memory, or killed); {retry_advice}."
    return "internal_error", f"{type(error).__name__}: {error}. This is a bug in excise; {retry_advice}."
