"""Daemon threads with deadlines, and coroutines that are cancelled together.

Python waits for ordinary threads when it exits; it does not wait for daemon threads. So a blocking call that hangs
(a sandbox, a grader, an optimizer step) cannot keep the program from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

from excise.errors import TrainingError

T = TypeVar("T")
P = ParamSpec("P")


class DaemonThreadPool(Executor):
    """A pool of at most ``size`` daemon threads, started as needed."""

    def __init__(self, size: int, name: str) -> None:
        self._size, self._name = size, name
        self._inbox: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``fn`` in a thread of the pool. Raises ``RuntimeError`` after :meth:`shutdown`."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name} is closed.")
            self._inbox.put((future, partial(fn, *args, **kwargs)))
            if not self._idle.acquire(blocking=False) and len(self._threads) < self._size:
                name = f"{self._name}-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                self._threads[-1].start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False, within_s: float | None = None) -> None:
        """Accept no more work. With ``wait``, wait for running work, for at most ``within_s`` seconds."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                with contextlib.suppress(queue.Empty):
                    while job := self._inbox.get_nowait():
                        job[0].cancel()
            for _ in self._threads:
                self._inbox.put(None)
        until = None if within_s is None else time.monotonic() + within_s
        for thread in self._threads if wait else ():
            thread.join(None if until is None else max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        while job := self._inbox.get():
            future, work = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            del job, future, work  # an idle thread must not keep their objects alive
            self._idle.release()


class BackgroundWorker:
    """One daemon thread for the blocking calls of an event loop, each with a deadline."""

    def __init__(self, name: str = "excise-trainer") -> None:
        self._thread = DaemonThreadPool(1, name)

    def start(self, function: Callable[..., T], *arguments: Any, deadline_s: float, what: str) -> asyncio.Future[T]:
        """Call ``function`` in the thread; the future has its result.

        After ``deadline_s`` seconds the future raises :class:`TrainingError` (reason ``deadline``) that names ``what``.
        """
        working = asyncio.wrap_future(self._thread.submit(function, *arguments))

        async def result_in_time() -> T:
            if not (await asyncio.wait([working], timeout=deadline_s))[0]:
                raise TrainingError(f"{what} took longer than {deadline_s:.0f} s.", reason="deadline")
            return working.result()

        return asyncio.ensure_future(result_in_time())


async def gather_or_cancel(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results, in order. If one raises, the others are cancelled and awaited, and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in coroutines]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
