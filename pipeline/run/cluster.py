"""Connects to a Dask cluster: starts one on this machine, or uses the scheduler at a given address."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from excise.errors import ConfigError

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
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": 1,
            "distributed.worker.daemon": False,
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.pause": False,
            "distributed.deploy.lost-worker-timeout": "1h",  # a busy machine starts another one slowly
            "distributed.admin.tick.limit": "1h",
            "distributed.comm.timeouts.connect": "20s",
        }
    )
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


def slot_resources(client: Any) -> dict[str, int] | None:
    """Return the resources of one job: ``{"slot": 1}`` if the workers offer slots, else ``None``."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return {SLOT: 1} if workers and all(SLOT in (w.get("resources") or {}) for w in workers) else None


def num_slots(client: Any) -> int:
    """Return how many jobs the workers can run at once: their slots, or their threads if they offer no slots."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return max(1, sum(int((w.get("resources") or {}).get(SLOT, 0) or w.get("nthreads", 1)) for w in workers))
