"""Things that are dear to make: made once, by name, in threads of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from excise.trainer.concurrency import Threads

T = TypeVar("T")


class Once(Generic[T]):
    """At most ``at_once`` things are made at a time; what failed is not tried again for ``failed_s`` seconds."""

    def __init__(self, at_once: int, name: str, failed_s: float) -> None:
        self._threads = Threads(at_once, name)
        self._failed_s = failed_s
        self._lock = threading.Lock()
        self._made: dict[str, Future[T]] = {}
        self._failed: dict[str, float] = {}

    async def get(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` returns or raises; whoever comes in the meantime waits for the same.

        Making goes on where nobody waits any more.
        """
        with self._lock:
            making = self._made.get(name)
            if making is None or time.monotonic() - self._failed.get(name, float("inf")) >= self._failed_s:
                self._failed.pop(name, None)
                making = self._made[name] = self._threads.submit(self._try, name, make)
        return await asyncio.shield(asyncio.wrap_future(making))

    def shutdown(self, *, within_s: float, cancel_futures: bool = True) -> None:
        """Make nothing more; what is being made is waited for at most ``within_s`` seconds."""
        self._threads.shutdown(cancel_futures=cancel_futures, within_s=within_s)

    def _try(self, name: str, make: Callable[[], T]) -> T:
        try:
            return make()
        except BaseException:
            with self._lock:
                self._failed[name] = time.monotonic()
            raise
