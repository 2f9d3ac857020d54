"""The workers of a Dask scheduler as a worker pool, whose machines share no folders with this one.

The main process chooses the worker of each job: one with a free slot on a machine of the run's kind, if possible one
that has the repository's layers. Workers may come and go at any time. A job whose worker died or became unfit (no disk
space) goes to another one; a worker that hangs ends itself (:mod:`.remote_job`), one whose machine hangs is given up by
Dask.
"""

from __future__ import annotations

import itertools
import logging
import queue
import secrets
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from excise.config import Settings
from excise.errors import ConfigError
from excise.extractors.fetch.source_archive import ArchiveSource
from excise.extractors.fetch.source_directory import DirectorySource
from excise.extractors.fetch.source_git import parse_git_spec
from excise.extractors.sources import find_source
from excise.pipeline.cluster.artifacts import artifacts_of, check_setting
from excise.pipeline.cluster.layer_names import LayerNames
from excise.pipeline.cluster.local_cluster import cluster_client
from excise.pipeline.cluster.machines import Machine, Traits, differing_traits, traits
from excise.pipeline.cluster.packed_layers import compress
from excise.pipeline.cluster.relay import MainProcess
from excise.pipeline.cluster.remote_job import JobOutcome, RemoteJob, join_run, max_silence_s, run_job, sendable
from excise.pipeline.cluster.run_answers import RunAnswers
from excise.pipeline.cluster.worker_pool import JobResult
from excise.pipeline.stages.error_boundary import STAGE_GRACE_S
from excise.pipeline.stages.fetch_stage import fetch_stage
from excise.types import SourceSpec, content_id

logger = logging.getLogger(__name__)

MAX_TRIES = 4
"""Workers that may die of a job before it is given up."""
MAX_MOVES = 20
"""How often a job may go to another worker because one is unfit."""
NO_WORKER_S = 900.0
"""Seconds without any worker of use after which a run gives up: clusters may start workers late."""
PROBE_S = 120.0
"""Seconds that a run waits for the first workers to describe themselves."""
RESULT_CHECK_S = 5.0
"""Seconds without a result after which its worker is looked for."""
NO_SANDBOX = frozenset({fetch_stage})
"""Stages that run nothing, so that a worker of any kind can do them."""


@dataclass(slots=True)
class _Worker:
    """A worker of the cluster."""

    address: str
    machine: Machine
    jobs: set[int] = field(default_factory=set)
    """Numbers of its jobs."""
    unfit: str = ""
    """Why it gets no jobs; empty if it does."""


@dataclass(slots=True)
class _Job:
    """A job of the run."""

    number: int
    function: Callable[..., Any]
    args: tuple[Any, ...]
    """Without the settings."""
    source: str
    """The source that it works on."""
    deaths: int = 0
    """Workers that died while they did it."""
    moves: int = 0
    """Workers that turned out to be unfit."""
    attempt: int = 0
    """Number of the current try; answers of earlier ones are ignored."""
    worker: str = ""
    """Address of the worker that does it."""
    future: Any = None


@contextmanager
def open_cluster(settings: Settings, notify: Callable[[str], None] = lambda _: None) -> Iterator[ClusterPool]:
    """Yield the workers of the scheduler that the settings name; ``notify`` gets messages for the user.

    Raises :class:`ConfigError` if it does not answer or cannot be used.
    """
    check_setting(settings.artifacts)
    with cluster_client(settings.scheduler, 0) as client:
        pool = ClusterPool(client, settings, notify)
        try:
            yield pool
        finally:
            pool.close()


class ClusterPool:
    """Runs jobs on machines that share no folders (:class:`excise.pipeline.cluster.worker_pool.WorkerPool`)."""

    has_machines = True

    def __init__(self, client: Any, settings: Settings, notify: Callable[[str], None]) -> None:
        self.client, self.settings, self.notify = client, settings, notify
        self.run = secrets.token_hex(8)
        self.names = LayerNames(settings.cache, artifacts_of(settings.artifacts, cache=settings.cache))
        self._events: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._workers: dict[str, _Worker] = {}
        self._asked: set[str] = set()
        """Addresses of workers that have not described themselves yet."""
        self._jobs: dict[int, _Job] = {}
        self._waiting: list[_Job] = []
        """Jobs without a worker, the next first."""
        self._ended: deque[tuple[int, JobResult]] = deque()
        """Jobs that have ended, with their results, which nobody has taken yet."""
        self._homes: dict[Hashable, set[str]] = {}
        """Source to the machines that have worked on it, and so have its layers."""
        self._kind = ""
        """Kind of the machines that work on this run; empty until it is chosen."""
        self._traits: Traits = ()
        """What distinguishes this kind."""
        self._told: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="excise-local")
        self._useless_since = time.monotonic()
        answers = RunAnswers(settings, self.names)
        try:
            self._main = MainProcess(client, self.run, lambda name, given: self._answer(answers, name, given))
        except Exception as error:
            raise ConfigError(
                f"The scheduler at {settings.scheduler} cannot be used ({type(error).__name__}: {error}). Scheduler, "
                "workers and this process need the same versions of Python, dask and excise."
            ) from error
        for address in client.scheduler_info(n_workers=-1)["workers"]:
            self._ask_machine(address)

    def close(self) -> None:
        """Leave the scheduler and its workers as they were."""
        self._main.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _answer(self, answers: RunAnswers, request: str, arguments: dict[str, Any]) -> Any:
        if request in ("worker came", "worker left"):
            self._events.put((request, arguments["address"]))
            return None
        return answers.answer(request, arguments)

    # ------------------------------------------------------------------------------------------------ the interface
    def num_slots(self) -> int:
        """Return how many jobs can run at once; at the beginning, wait for workers that describe themselves."""
        if not self._kind:
            self._await_workers()
        return max(1, sum(worker.machine.slots for worker in self._workers.values() if self._is_of_use(worker)))

    def prefer(self, groups: Sequence[Hashable]) -> int:
        """Return the first source whose layers a machine with a free slot has; 0 if there is none."""
        free = {w.machine.name for w in self._workers.values() if self._is_of_use(w) and self._is_free(w)}
        return next((n for n, source in enumerate(groups) if not free.isdisjoint(self._homes.get(source, ()))), 0)

    def submit(self, function: Callable[..., Any], args: tuple[Any, ...]) -> int:
        """Start a stage, or let it wait for a slot. A source on this machine's disk is fetched by this process."""
        number, given = next(self._numbers), args[1:]
        job = _Job(number, function, given, source=given[0] if given and isinstance(given[0], str) else "")
        self._jobs[number] = job
        if function is fetch_stage and _is_local(given[1]):
            self._threads.submit(self._do_here, job)
        else:
            job.args = sendable(given, self._store_prepared)
            self._waiting.append(job)
            self._place()
        return number

    def wait(self) -> tuple[int, JobResult] | None:
        """Wait until one of the jobs ends; ``None`` if the number of slots has grown before that."""
        slots = self.num_slots()
        while not self._ended:
            try:
                self._handle(self._events.get(timeout=5.0))
            except queue.Empty:
                self._give_up()
            self._place()
            if self.num_slots() > slots and not self._ended:
                return None
        return self._ended.popleft()

    def cancel(self) -> None:
        """Cancel all jobs that have not ended."""
        self.client.cancel([job.future for job in self._jobs.values() if job.future is not None])
        self._jobs.clear()
        self._waiting.clear()

    # ------------------------------------------------------------------------------------------------ jobs
    def _do_here(self, job: _Job) -> None:
        try:
            result = JobResult(value=self.names.leave(job.function(self.settings, *job.args)))
        except Exception as error:
            result = JobResult(error=error)
        self._events.put(("done here", job.number, result))

    def _store_prepared(self, path: Path) -> str:
        with tempfile.TemporaryDirectory(dir=path.parent) as work:
            digest = compress(path.read_bytes(), Path(work, "packed"))
            if not self.names.artifacts.has(digest):
                self.names.artifacts.put(digest, Path(work, "packed"))
        return digest

    def _place(self) -> None:
        """Give waiting jobs to free workers, in their order."""
        still: list[_Job] = []
        for job in self._waiting:
            worker = self._worker_for(job)
            if worker is None:
                still.append(job)
            else:
                self._start(job, worker)
        self._waiting = still

    def _worker_for(self, job: _Job) -> _Worker | None:
        """The free worker for a job: on the machine that has the repository, if possible, else the idlest."""
        anyone = job.function in NO_SANDBOX
        free = [
            worker
            for worker in self._workers.values()
            if self._is_free(worker)
            and not worker.unfit
            and (self._is_of_use(worker) or (anyone and not worker.machine.problem))
        ]
        homes = self._homes.get(job.source, ())
        return min(free, key=lambda worker: (worker.machine.name not in homes, len(worker.jobs)), default=None)

    def _start(self, job: _Job, worker: _Worker) -> None:
        job.attempt += 1
        job.worker = worker.address
        worker.jobs.add(job.number)
        if job.source:
            self._homes.setdefault(job.source, set()).add(worker.machine.name)
        remote = RemoteJob(
            run=self.run,
            settings=self.settings,
            function=job.function,
            args=job.args,
            max_silence_s=max_silence_s(self.settings, STAGE_GRACE_S),
        )
        job.future = self._submit(run_job, remote, worker.address, ("done", job.number, job.attempt))

    def _submit(self, function: Callable[..., Any], argument: Any, address: str, event: tuple[Any, ...]) -> Any:
        """Run a function on one worker; the event is queued, with the future, when it ends."""
        options = {"pure": False, "retries": 0, "workers": [address], "allow_other_workers": False}
        future = self.client.submit(function, argument, **options)
        future.add_done_callback(lambda ended: self._events.put((*event, ended)))
        return future

    # ------------------------------------------------------------------------------------------------ events
    def _handle(self, event: tuple[Any, ...]) -> None:
        match event:
            case ("worker came", address):
                self._ask_machine(address)
            case ("worker left", address):
                self._lose(address)
            case ("machine", address, future):
                self._add_worker(address, future)
            case ("done here", number, result) if number in self._jobs:
                self._finish(self._jobs[number], result)
            case ("done", number, attempt, future):
                job = self._jobs.get(number)
                if job is not None and job.attempt == attempt:
                    self._end(job, future)

    def _finish(self, job: _Job, result: JobResult) -> None:
        del self._jobs[job.number]
        self._ended.append((job.number, result))

    def _ask_machine(self, address: str) -> None:
        if address in self._asked or address in self._workers:
            return
        self._asked.add(address)
        self._submit(join_run, self.settings, address, ("machine", address))

    def _add_worker(self, address: str, future: Any) -> None:
        if address not in self._asked:  # it is gone
            return
        self._asked.discard(address)
        if future.status != "finished":
            error = future.exception() if future.status == "error" else None
            self._tell(f"The worker {address} cannot work on this run: {error or future.status}.")
            return
        machine: Machine | None = self._value_of(future, address)
        if machine is None:
            return
        worker = self._workers[address] = _Worker(address, machine)
        if machine.problem:
            self._tell(f"The worker {address} is not used: {machine.problem}.")
        elif self._kind and machine.kind != self._kind:
            self._tell_kind(worker)
        logger.info("worker joined", extra={"worker": address, "machine": machine.name, "problem": machine.problem})

    def _tell_kind(self, worker: _Worker) -> None:
        why = differing_traits(worker.machine, self._traits)
        self._tell(f"The worker {worker.address} only fetches, since its machine is of another kind: {why}.")

    def _lose(self, address: str) -> None:
        """Forget a worker that is gone; its jobs go to others."""
        if address in self._asked:
            self._asked.discard(address)
            self._tell(f"The worker {address} left when it was asked for its machine. Does it have this excise?")
        worker = self._workers.pop(address, None)
        if worker is not None:
            logger.warning("worker left", extra={"worker": address, "jobs": len(worker.jobs)})
            for number in sorted(worker.jobs & self._jobs.keys()):
                self._retry(self._jobs[number], died=True)

    def _end(self, job: _Job, future: Any) -> None:
        """Note how a job ended on a worker."""
        worker = self._workers.get(job.worker)
        if worker is not None:
            worker.jobs.discard(job.number)
        if future.status == "error" and type(error := future.exception()).__name__ != "KilledWorker":
            self._finish(job, JobResult(error=error))
            return
        if future.status != "finished":
            self._retry(job, died=True)
            return
        outcome: JobOutcome | None = self._value_of(future, job.worker)
        if outcome is None:
            self._retry(job, died=True)
        elif outcome.unfit:
            if worker is not None:
                worker.unfit = outcome.unfit
                self._tell(f"The worker {worker.address} gets no more jobs: {outcome.unfit}.")
            self._retry(job, died=False)
        elif outcome.lost:
            self._finish(job, JobResult(unavailable="A layer of the repository is in no cache any more"))
        else:
            self._finish(job, JobResult(value=outcome.value))

    def _value_of(self, future: Any, address: str) -> Any:
        """The result of a finished job; ``None`` if its worker is gone, and the result with it.

        Dask would wait for ever, since no other worker may make it again.
        """
        while True:
            try:
                return future.result(timeout=RESULT_CHECK_S)
            except TimeoutError:
                if address not in self.client.scheduler_info(n_workers=-1)["workers"]:
                    return None

    def _retry(self, job: _Job, *, died: bool) -> None:
        """Put a job in front of the others, unless it was tried too often."""
        if job.future is not None:
            job.future.cancel()
        job.attempt += 1
        job.deaths, job.moves = job.deaths + died, job.moves + (not died)
        if job.deaths >= MAX_TRIES:
            self._finish(job, JobResult(worker_died=True))
        elif job.moves >= MAX_MOVES:
            self._finish(job, JobResult(unavailable=f"{job.moves} workers had no room for the job"))
        else:
            self._waiting.insert(0, job)

    # ------------------------------------------------------------------------------------------------ workers
    @staticmethod
    def _is_free(worker: _Worker) -> bool:
        return len(worker.jobs) < worker.machine.slots

    def _is_of_use(self, worker: _Worker) -> bool:
        return not worker.unfit and not worker.machine.problem and worker.machine.kind == self._kind

    def _await_workers(self) -> None:
        """Wait until the first workers have described themselves, then choose the kind that has most slots.

        Between equals, the kind of this machine is chosen. Raises :class:`ConfigError` if none of them can be used.
        """
        began = time.monotonic()
        while (waited := time.monotonic() - began) < NO_WORKER_S:
            usable = any(not worker.machine.problem for worker in self._workers.values())
            if self._workers and (waited > PROBE_S or (usable and not self._asked)):
                break
            if not self._asked and not self._workers:
                self._tell(f"No worker is connected to {self.settings.scheduler} yet; waiting for the first.")
            with suppress(queue.Empty):
                self._handle(self._events.get(timeout=1.0))
        slots: Counter[str] = Counter()
        for worker in self._workers.values():
            if not worker.machine.problem:
                slots[worker.machine.kind] += worker.machine.slots
        if not slots:
            reasons = {worker.machine.problem for worker in self._workers.values()} or {"none has come"}
            raise ConfigError(f"No worker of {self.settings.scheduler} can be used: {'; '.join(sorted(reasons))}.")
        own = content_id("kind", traits(self.settings)) if len(slots) > 1 else ""
        self._kind = max(slots, key=lambda kind: (slots[kind], kind == own))
        self._traits = next(w.machine.traits for w in self._workers.values() if w.machine.kind == self._kind)
        for worker in self._workers.values():
            if not worker.machine.problem and worker.machine.kind != self._kind:
                self._tell_kind(worker)

    def _give_up(self) -> None:
        """End the waiting jobs if there has been no worker for them for too long."""
        if self._asked or any(self._is_of_use(worker) for worker in self._workers.values()):
            self._useless_since = time.monotonic()
        elif time.monotonic() - self._useless_since > NO_WORKER_S:
            for job in self._waiting:
                self._finish(job, JobResult(unavailable="The cluster has had no worker that can be used for too long"))
            self._waiting.clear()

    def _tell(self, text: str) -> None:
        """Tell the user something, once."""
        self._told[text] += 1
        if self._told[text] == 1:
            logger.warning("cluster", extra={"detail": text})
            self.notify(text)


def _is_local(spec: SourceSpec) -> bool:
    """Whether a source lies on the disk of this machine."""
    source = find_source(spec)
    if isinstance(source, (DirectorySource, ArchiveSource)):
        return True
    git = parse_git_spec(spec.spec) if source is not None and source.name == "git" else None
    return git is not None and (git.url.startswith(("/", "file://")))
