"""One thread for everything that blocks: steps, checkpoints. The event loop waits for it with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from excise.errors import TrainingError
from excise.trainer.concurrency import Threads

T = TypeVar("T")


class Worker:
    """A thread that ends with the process: work that hangs does not keep the program from ending."""

    def __init__(self, name: str = "excise-trainer") -> None:
        self._thread = Threads(1, name)

    def start(self, function: Callable[..., T], *arguments: Any, deadline_s: float, what: str) -> asyncio.Future[T]:
        """Begin; the future has the result. Past the deadline it has a :class:`TrainingError` that names ``what``."""
        working = asyncio.wrap_future(self._thread.submit(function, *arguments))

        async def in_time() -> T:
            if not (await asyncio.wait([working], timeout=deadline_s))[0]:
                raise TrainingError(f"{what} took longer than {deadline_s:.0f} s.", reason="deadline")
            return working.result()

        return asyncio.ensure_future(in_time())
