"""Requests of workers to the main process of a run, passed on by the Dask scheduler, which both can reach.

The main process may be behind a firewall or on a laptop, and workers may not reach each other's folders; the
connections to the scheduler exist anyway, with their encryption. A request waits in the scheduler until the main
process fetches it, and so does the worker. Nothing is stored there, and its memory holds at most one request of each
worker's thread.

The plugin tells the main process also which workers come and go.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from distributed import Client, get_worker
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.utils import sync

from excise.errors import StoreError
from excise.system.files import is_disk_full

logger = logging.getLogger(__name__)

POLL_S = 20.0
"""Seconds after which a poll of the main process without a request ends, and the next one begins."""
POLLS = 8
"""Requests that the main process answers at the same time."""

Handler = Callable[[str, dict[str, Any]], Any]
"""Answers a request: its name and arguments to plain data (strings, numbers, bytes, lists, dicts)."""


class Relay(SchedulerPlugin):
    """The part in the scheduler: keeps requests until they are fetched, and worker until they are answered."""

    idempotent = True

    def __init__(self, run: str) -> None:
        self.name, self.run, self.client = f"excise {run}", run, ""
        self._numbers = itertools.count()
        self._scheduler: Any = None

    async def start(self, scheduler: Any) -> None:
        """Add the handlers of this run to the scheduler."""
        self._scheduler = scheduler
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        scheduler.handlers |= {
            f"excise_ask_{self.run}": self.ask,
            f"excise_next_{self.run}": self.next,
            f"excise_answer_{self.run}": self.answer,
            f"excise_end_{self.run}": self.end,
        }

    async def ask(self, request: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """A request of a worker; returns what the main process answers."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait({"number": number, "request": request, "arguments": arguments})
        try:
            return dict(await answer)
        finally:
            self._answers.pop(number, None)

    async def next(self, client: str = "") -> dict[str, Any] | None:
        """The next request for the main process, whose client has this id; ``None`` if there was none for a while."""
        self.client = client or self.client
        try:
            return await asyncio.wait_for(self._waiting.get(), POLL_S)
        except TimeoutError:
            return None

    async def answer(self, number: int, answer: dict[str, Any]) -> None:
        """The main process's answer to a request."""
        waiting = self._answers.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def end(self) -> None:
        """Remove the handlers, and refuse what is waiting."""
        self._end()

    def _end(self) -> None:
        for name in ("ask", "next", "answer", "end"):
            self._scheduler.handlers.pop(f"excise_{name}_{self.run}", None)
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_result({"error": "The run has ended.", "reason": "run_ended"})

    def add_worker(self, scheduler: Any, worker: str) -> None:  # noqa: ARG002
        """Tell the main process that a worker came."""
        self._tell("worker came", worker)

    def remove_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:  # noqa: ARG002
        """Tell the main process that a worker left or died."""
        self._tell("worker left", worker)

    def remove_client(self, scheduler: Any, client: str) -> None:  # noqa: ARG002
        """End the run if its main process is gone."""
        if client == self.client:
            self._end()

    def _tell(self, event: str, worker: str) -> None:
        self._waiting.put_nowait({"number": -1, "request": event, "arguments": {"address": worker}})


class MainProcess:
    """Answers the requests of a run's workers, in the main process, until it is closed."""

    def __init__(self, client: Client, run: str, handler: Handler) -> None:
        """Adds the relay to the scheduler; raises, for example ``ImportError``, if the scheduler has no excise."""
        self._client, self._run, self._handler = client, run, handler
        self._threads = ThreadPoolExecutor(POLLS, thread_name_prefix="excise-relay")
        self._closed = False
        client.register_plugin(Relay(run))
        loop = client.loop
        assert loop is not None, "the client is connected"
        loop.add_callback(self._poll_all)

    def close(self) -> None:
        """Answer no further requests."""
        self._closed = True
        try:
            self._client.sync(getattr(self._client.scheduler, f"excise_end_{self._run}"), callback_timeout=5)
            self._client.unregister_scheduler_plugin(f"excise {self._run}")
        except Exception as error:  # the scheduler may be gone: it is not ours
            logger.info("relay not removed", extra={"detail": str(error)})
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _poll_all(self) -> None:
        await asyncio.gather(*(self._poll() for _ in range(POLLS)))

    async def _poll(self) -> None:
        rpc, loop = self._client.scheduler, asyncio.get_running_loop()
        while not self._closed:
            try:
                asked = await getattr(rpc, f"excise_next_{self._run}")(client=self._client.id)
                if asked is None:
                    continue
                answer = await loop.run_in_executor(self._threads, self._answer, asked)
                if asked["number"] >= 0:
                    await getattr(rpc, f"excise_answer_{self._run}")(number=asked["number"], answer=answer)
            except Exception as error:
                if self._closed:
                    return
                logger.warning("relay interrupted", extra={"detail": f"{type(error).__name__}: {error}"})
                await asyncio.sleep(1.0)

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"value": self._handler(asked["request"], asked["arguments"])}
        except Exception as error:
            logger.warning("request refused", extra={"request": asked["request"], "detail": str(error)})
            full = error.errno == errno.ENOSPC if isinstance(error, OSError) else False
            full = full or is_disk_full(getattr(error, "reason", ""), str(error))
            if full:  # in other words than those of a worker whose own disk is full
                return {"error": "The disk of the run's main process is full.", "reason": "main_disk_full"}
            return {"error": str(error), "reason": getattr(error, "reason", "store_error")}


def ask(run: str, request: str, **arguments: Any) -> Any:
    """Ask the main process of a run, from a job on a Dask worker; waits for the answer.

    Raises :class:`StoreError` if it cannot answer, or is gone.
    """
    worker = get_worker()
    remote = getattr(worker.scheduler, f"excise_ask_{run}")
    try:
        answer = sync(worker.loop, remote, request=request, arguments=arguments)
    except Exception as error:
        text = f"The main process of the run does not answer ({type(error).__name__}: {error})."
        raise StoreError(text, reason="run_ended") from error
    if "error" in answer:
        raise StoreError(str(answer["error"]), reason=str(answer["reason"]))
    return answer["value"]
