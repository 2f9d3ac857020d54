"""A queue of jobs in front of a Dask cluster: the most urgent goes first, also when it came last."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from excise.pipeline.run.cluster import num_slots, slot_resources

T = TypeVar("T")


@dataclass(slots=True)
class _Waiting(Generic[T]):
    rank: tuple[float, int]
    tag: T
    function: Callable[..., Any]
    args: tuple[Any, ...]

    def __lt__(self, other: _Waiting[T]) -> bool:
        return self.rank < other.rank


class Jobs(Generic[T]):
    """Jobs with a tag each. Iterating yields ``(tag, future)`` as they end, until none is left.

    Workers get no more than they can begin: a worker keeps what it is given, and behind one long job of a full
    queue everything else would wait. ``begun`` is told each job that leaves the queue.
    """

    def __init__(self, client: Any, begun: Callable[[T], None] = lambda _: None) -> None:
        self.client, self.begun = client, begun
        self.resources = slot_resources(client)
        self.slots = num_slots(client)
        self.running: dict[Any, T] = {}
        self._waiting: list[_Waiting[T]] = []
        self._number = 0

    def put(self, tag: T, priority: float, function: Callable[..., Any], *args: Any) -> None:
        """Add a job; a higher priority goes first, and among equals the older."""
        self._number += 1
        heapq.heappush(self._waiting, _Waiting((-priority, self._number), tag, function, args))

    def dispatch(self) -> list[Any]:
        """Hand the most urgent jobs to free slots; the new futures."""
        if self._waiting and len(self.running) >= self.slots:
            self.slots = num_slots(self.client)
        new = []
        while self._waiting and len(self.running) < self.slots:
            job = heapq.heappop(self._waiting)
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
            self.begun(job.tag)
        return new

    def __iter__(self) -> Iterator[tuple[T, Any]]:
        from distributed import as_completed

        completed = as_completed(self.dispatch())
        for future in completed:
            yield self.running.pop(future), future
            future.release()
            completed.update(self.dispatch())

    def cancel(self) -> None:
        """Drop everything that has not ended."""
        self._waiting.clear()
        self.client.cancel(list(self.running))


def failure_of(future: Any, again: str) -> tuple[str, str]:
    """Reason and sentence for a future without an answer: its worker died, or it met a bug.

    ``again`` says who tries again.
    """
    error = future.exception() if future.status == "error" else None
    if error is None or type(error).__name__ == "KilledWorker":
        return "worker_died", f"The worker process died twice at this stage (out of memory, or killed); {again}."
    return "internal_error", f"{type(error).__name__}: {error}. This is a bug in excise; {again}."
