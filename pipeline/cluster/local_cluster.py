"""Opens the worker pool of a run: this process, a Dask cluster on this machine, or the scheduler at an address."""

from __future__ import annotations

import logging
import os
import queue
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from excise.errors import ConfigError
from excise.pipeline.cluster.worker_pool import InProcessPool, JobResult, SharedFiles, WorkerPool
from excise.verifiers.load_stress import load_per_core

SLOT = "slot"
"""Dask resource of which every job uses one; workers of a shared cluster may offer it (`--resources slot=4`)."""

WORKER_MODULES = ["distributed", "excise.pipeline.run.graph"]
"""Modules that import everything that workers run."""

WORKER_SETUP = """
import signal
from excise.system.run_log import join_run_log

def dask_setup(worker):
    signal.signal(signal.SIGINT, lambda *_: None)
    join_run_log()
"""
"""Code that Dask runs in every local worker when it starts: ignore Ctrl-C, and join the log of the run.

Ctrl-C reaches the whole process group, but only the main process may react to it. It is ignored by a handler, because
programs that a worker starts would inherit ``SIG_IGN``.
"""


IDLE_CHECK_S = 10.0
"""Seconds between two looks at whether the machine is idle, while all workers have a job."""
IDLE_CORE_ROUNDING = 0.25
"""A core that is busy for this share of the time counts as idle."""

DASK_SETTINGS = {
    "distributed.scheduler.allowed-failures": 1,
    "distributed.worker.daemon": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.deploy.lost-worker-timeout": "1h",  # a busy machine starts another one slowly
    "distributed.comm.timeouts.connect": "20s",
    # What follows saves CPU time and memory while jobs of seconds and minutes run: no statistics of single functions,
    # no checks many times a second, no long logs, no moving of tasks: workers get only what they can start.
    "distributed.admin.tick.limit": "1h",
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "2s",
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.admin.low-level-log-length": 100,
    "distributed.diagnostics.computations.max-history": 1,
    "distributed.client.heartbeat": "30s",
    "distributed.client.scheduler-info-interval": "10s",
}


@contextmanager
def open_worker_pool(scheduler: str, workers: int) -> Iterator[WorkerPool]:
    """Yield the workers of the Dask scheduler at this address; if it is empty, ``workers`` processes of this machine.

    One worker is this process. Where there are more, half as many again start with them; they get jobs while running
    ones wait (:meth:`DaskPool.num_slots`). Raises :class:`ConfigError` if ``scheduler`` does not answer.
    """
    if workers == 1 and not scheduler:
        yield InProcessPool()
        return
    spare = 0 if scheduler else workers // 2
    with cluster_client(scheduler, workers + spare) as client:
        yield DaskPool(client, spare=spare)


@contextmanager
def cluster_client(scheduler: str, workers: int) -> Iterator[Any]:
    """Yield a ``distributed.Client`` for the scheduler at this address; if it is empty, for a new local cluster.

    Local workers are ``workers`` processes of one thread each, so that each test has a core. Connections are encrypted
    and authenticated, since code of a project may run with access to the host's network while it is installed. A
    worker that exceeds its share of the memory is replaced. Raises :class:`ConfigError` if ``scheduler`` does not
    answer.
    """
    import dask
    from distributed import Client, LocalCluster

    for name in (
        "distributed",
        "distributed.nanny",
        "distributed.scheduler",
        "distributed.worker",
        "tornado.application",
    ):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    dask.config.set(DASK_SETTINGS)
    if scheduler:
        try:
            _require_listener(scheduler)
            client = Client(scheduler, timeout="20s")
        except (OSError, TimeoutError, ValueError) as error:
            raise ConfigError(
                f"No Dask scheduler answers at {scheduler} ({error}). Start one with `dask scheduler`, and workers "
                "that have excise installed and share the cache folder, or leave --scheduler out."
            ) from error
        with client:
            yield client
        return
    _fork_workers_from_a_server()
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        resources={SLOT: 1},
        memory_limit="auto",
        security=True,
        silence_logs=logging.CRITICAL,
        preload=[WORKER_SETUP],
        env=dict(os.environ),  # the process that forks workers has the environment of this process's first run
    )
    client = Client(cluster)
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=5)
        with suppress(Exception):
            cluster.close(timeout=10)


def _require_listener(scheduler: str) -> None:
    """Raise ``OSError`` at once if nothing listens at an address; Dask tries again until its timeout.

    Raises ``ValueError`` if it is no address.
    """
    from distributed.comm.addressing import get_address_host_port

    host, port = get_address_host_port(scheduler)
    socket.create_connection((host, port), timeout=20).close()


def _fork_workers_from_a_server() -> None:
    """Have workers forked from a process that has imported excise, instead of importing it each by itself."""
    import dask
    from distributed.utils import get_mp_context

    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    context = get_mp_context()  # its first call sets modules of its own
    context.set_forkserver_preload(WORKER_MODULES)


def idle_cores() -> float:
    """Cores of this machine that were idle in the last minute, on average; negative where jobs waited for one."""
    return (os.cpu_count() or 1) * (1 - load_per_core())


class DaskPool(SharedFiles):
    """Runs jobs on the workers of a Dask cluster.

    ``spare`` of its slots are used only while cores of this machine have nothing to do: jobs that wait (for a sleeping
    test, a server, a download) would keep others from running.
    """

    def __init__(self, client: Any, *, spare: int = 0, idle: Callable[[], float] = idle_cores) -> None:
        """``idle`` says how many cores have nothing to do."""
        self.client = client
        self.spare, self.idle = spare, idle
        workers = self._workers()
        self._resources = {SLOT: 1} if workers and all(map(_slots, workers)) else None
        self._reported_slots = 0
        self._futures: dict[str, Any] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def _workers(self) -> list[dict[str, Any]]:
        return list(self.client.scheduler_info(n_workers=-1)["workers"].values())

    def num_slots(self) -> int:
        """Return how many jobs the workers should run at once: their slots, or their threads if they offer no slots.

        Of the spare ones there are as many as cores are idle.
        """
        slots = sum(_slots(worker) or worker.get("nthreads", 1) for worker in self._workers())
        if self.spare:
            slots -= self.spare - max(0, min(self.spare, int(self.idle() + IDLE_CORE_ROUNDING)))
        self._reported_slots = max(1, slots)
        return self._reported_slots

    def submit(self, function: Callable[..., Any], args: tuple[Any, ...]) -> str:
        """Give a job to Dask, which tries it once more if its worker dies; a user's scheduler has its own limit."""
        options = {"pure": False, "retries": 0, "resources": self._resources}
        future = self.client.submit(function, *args, **options)
        self._futures[future.key] = future
        future.add_done_callback(self._ended.put)
        return str(future.key)

    def wait(self) -> tuple[str, JobResult] | None:
        """Wait until one of the jobs ends; ``None`` if there are more slots than when their number was last asked."""
        slots = self._reported_slots
        while True:
            try:
                future = self._ended.get(timeout=IDLE_CHECK_S if self.spare else None)
                break
            except queue.Empty:
                if self.num_slots() > slots:
                    return None
        del self._futures[future.key]
        try:
            if future.status == "finished":
                return future.key, JobResult(value=future.result())
            error = future.exception() if future.status == "error" else None
            lost = error is None or type(error).__name__ == "KilledWorker"
            return future.key, JobResult(worker_died=True) if lost else JobResult(error=error)
        finally:
            future.release()

    def cancel(self) -> None:
        """Cancel all jobs that have not ended."""
        self.client.cancel(list(self._futures.values()))


def _slots(worker: dict[str, Any]) -> int:
    return int((worker.get("resources") or {}).get(SLOT, 0))
