"""What runs the jobs of a run: this process, or the workers of a Dask cluster."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a job ended: with a value, with an exception, or with the death of its worker."""

    value: Any = None
    """What the job returned."""
    error: BaseException | None = None
    """What the job raised."""
    worker_died: bool = False
    """Whether the process that ran the job ended, as often as the job was tried."""
    unavailable: str = ""
    """Why the job could not be done at all; empty if it was."""

    def failure(self, retry_advice: str) -> tuple[str, str] | None:
        """Return the reason and a sentence for a job without a value; ``None`` if it has one.

        ``retry_advice`` ends the sentence; it says how the job is tried again.
        """
        if self.worker_died:
            text = f"The worker process died repeatedly at this stage (out of memory, or killed); {retry_advice}."
            return "worker_died", text
        if self.unavailable:
            return "infra_error", f"{self.unavailable}; {retry_advice}."
        if self.error is not None:
            return (
                "internal_error",
                f"{type(self.error).__name__}: {self.error}. This is a bug in excise; {retry_advice}.",
            )
        return None


class WorkerPool(Protocol):
    """Runs jobs."""

    @property
    def has_machines(self) -> bool:
        """Whether its machines have files of their own, so that it matters which jobs they get."""
        ...

    def prefer(self, groups: Sequence[Hashable]) -> int:
        """Return which of these groups' next jobs to start next: 0, or one whose files a free machine has."""
        ...

    def num_slots(self) -> int:
        """Return how many jobs can run at once."""
        ...

    def submit(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Hashable:
        """Start a job, or let it wait for a slot; return an id of the job."""
        ...

    def wait(self) -> tuple[Hashable, JobResult] | None:
        """Wait until one of the jobs ends; return its id and how it ended; ``None`` if there are more slots now."""
        ...

    def cancel(self) -> None:
        """Cancel all jobs that have not ended."""
        ...


class SharedFiles:
    """Base of pools whose workers all see the same files."""

    has_machines = False

    def prefer(self, groups: Sequence[Hashable]) -> int:  # noqa: ARG002
        """Return 0."""
        return 0


class InProcessPool(SharedFiles):
    """Runs one job at a time, in this process, while somebody waits for it."""

    def __init__(self) -> None:
        self._ids = itertools.count()
        self._jobs: deque[tuple[int, Callable[..., Any], tuple[Any, ...]]] = deque()

    def num_slots(self) -> int:
        """Return 1."""
        return 1

    def submit(self, function: Callable[..., Any], args: tuple[Any, ...]) -> int:
        """Keep a job for :meth:`wait`."""
        number = next(self._ids)
        self._jobs.append((number, function, args))
        return number

    def wait(self) -> tuple[int, JobResult]:
        """Run the oldest job. Its exceptions are returned, but Ctrl-C is raised."""
        number, function, args = self._jobs.popleft()
        try:
            return number, JobResult(value=function(*args))
        except Exception as error:
            return number, JobResult(error=error)

    def cancel(self) -> None:
        """Forget the jobs that have not run."""
        self._jobs.clear()
