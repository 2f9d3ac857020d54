"""One thread for everything that blocks: steps, checkpoints. The event loop waits for it with a deadline."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from excise.errors import TrainingError

T = TypeVar("T")


class Worker:
    """A thread that ends with the process: work that hangs does not keep the program from ending."""

    def __init__(self, name: str = "excise-trainer") -> None:
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while True:
            self._inbox.get()()

    def start(self, function: Callable[..., T], *arguments: Any, deadline_s: float, what: str) -> asyncio.Future[T]:
        """Begin; the future has the result. Past the deadline it has a :class:`TrainingError` that names ``what``."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

        def work() -> None:
            try:
                result, error = function(*arguments), None
            except BaseException as raised:
                result, error = None, raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, result, error)

        late = TrainingError(f"{what} took longer than {deadline_s:.0f} s.", reason="deadline")
        handle = loop.call_later(deadline_s, settle, None, late)
        future.add_done_callback(lambda _: handle.cancel())
        self._inbox.put(work)
        return future
