"""A pool of threads that ends with the process: work that hangs does not keep the program from ending."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Threads(Executor):
    """At most ``size`` threads, begun as they are needed; they are daemons, which Python does not wait for."""

    def __init__(self, size: int, name: str) -> None:
        self._size, self._name = size, name
        self._inbox: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have it done. Raises ``RuntimeError`` after :meth:`shutdown`."""
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
        """Take nothing more; ``wait`` for what runs, at most ``within_s`` seconds."""
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
            del job, future, work  # whatever they hold may go
            self._idle.release()
