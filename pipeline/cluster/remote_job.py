"""What runs on a worker with folders of its own: a stage, between the layers that it needs and what it gives."""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from distributed import get_worker

from excise.config import Settings, default_cache
from excise.errors import StoreError
from excise.pipeline.cluster.artifacts import artifacts_of
from excise.pipeline.cluster.layer_names import LayerNames, evict_copies, free_bytes
from excise.pipeline.cluster.local_cluster import SLOT
from excise.pipeline.cluster.machines import Machine, describe_machine, disk_problem, required_bytes
from excise.pipeline.cluster.packed_layers import decompress
from excise.pipeline.cluster.relay import ask
from excise.pipeline.stages.run_files import current_run_files
from excise.system.files import is_disk_full, replace_file
from excise.system.job_costs import on_progress
from excise.system.run_log import PACKAGE, JsonLines
from excise.types import Rejection, WorkerOutcome, content_id, from_json, to_json
from excise.verifiers.prove import Proof
from excise.verifiers.workbench import Prepared

logger = logging.getLogger(__name__)
T = TypeVar("T")

HUNG_EXIT = 70
"""Exit code of a worker whose job has shown no sign of life for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFile:
    """An argument in place of the path of a file with a :class:`Prepared` record: the sha256 of its compressed form."""

    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteJob:
    """A job as it is sent to a worker."""

    run: str
    """Id of the run, for :mod:`.relay`."""
    settings: Settings
    """Settings of the run; the worker replaces the folders."""
    function: Callable[..., Any]
    """A stage."""
    args: tuple[Any, ...]
    """Its arguments after the settings; layers are names."""
    max_silence_s: float
    """Wall seconds without a sign of life (a finished command, a step) after which the worker ends itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """What comes back."""

    value: Any = None
    """What the stage returned; layers are names."""
    lost: bool = False
    """Whether a layer of the arguments is nowhere, so that the stage was not called."""
    unfit: str = ""
    """Why this worker can do no job of the run at the moment; the job has to be done elsewhere."""


class WorkerFiles:
    """The files of the run, which are the main process's (:class:`excise.pipeline.stages.run_files.RunFiles`)."""

    def __init__(self, run: str, names: LayerNames) -> None:
        self.run, self.names = run, names

    def read_result(self, stage: str, key: str) -> bytes | None:
        """Ask for a cached result."""
        found: bytes | None = ask(self.run, "read result", stage=stage, key=key)
        return found

    def write_result(self, stage: str, key: str, data: bytes) -> None:
        """Send a result."""
        ask(self.run, "write result", stage=stage, key=key, data=data)

    def leave(self, answer: T) -> T:
        """Store the layers of a record."""
        return self.names.leave(answer)

    def arrive(self, answer: T) -> T | None:
        """Fetch the layers of a record."""
        return self.names.arrive(answer)

    def has_blob(self, sha: str) -> bool:
        """Ask for an archive."""
        return bool(ask(self.run, "has blob", sha=sha))

    def put_blob(self, content: bytes, suffix: str) -> str:
        """Send an archive or a kit."""
        return str(ask(self.run, "put blob", content=content, suffix=suffix))


def join_run(settings: Settings) -> Machine:
    """Describe the machine of the worker that this runs on."""
    worker = get_worker()
    slots = int(worker.state.total_resources.get(SLOT, 0)) or int(worker.state.nthreads)
    return describe_machine(settings, slots)


def run_job(job: RemoteJob) -> JobOutcome:
    """Run a job of a run that another machine leads. Raises what is a bug, or the end of the run."""
    cache = default_cache()
    settings = job.settings.model_copy(update={"cache": cache, "out": cache / "no-task-set"})
    evict_copies(cache, required_bytes(settings))
    if (free := free_bytes(cache)) < required_bytes(settings):
        return JobOutcome(unfit=disk_problem(cache, free, settings))
    names = LayerNames(cache, artifacts_of(settings.artifacts, job.run))
    token = current_run_files.set(WorkerFiles(job.run, names))
    try:
        with _sent_log(job.run), _signs_of_life(job):
            args = [_arrived(names, argument) for argument in job.args]
            if any(argument is _LOST for argument in args):
                return JobOutcome(lost=True)
            value = names.leave(job.function(settings, *args))
        if full := _why_full(value):
            return JobOutcome(unfit=full)
        return JobOutcome(value=value)
    except (OSError, StoreError) as error:
        if getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT) or getattr(error, "reason", "") == "disk_full":
            return JobOutcome(unfit=str(error))
        raise
    finally:
        current_run_files.reset(token)


_LOST = object()
_records: dict[str, Prepared] = {}
"""Prepared repositories of the latest jobs, with names of layers, by digest."""


def _arrived(names: LayerNames, argument: Any) -> Any:
    if isinstance(argument, PreparedFile):
        return _prepared_path(names, argument.digest)
    answer = names.arrive(argument)
    return _LOST if answer is None and argument is not None else answer


def _prepared_path(names: LayerNames, digest: str) -> Path | object:
    """The file with a prepared repository whose layers are this machine's; it is made once for its jobs here."""
    if digest not in _records:
        while len(_records) > 2:
            del _records[next(iter(_records))]
        packed = names.cache / "prepared" / f"{digest}.packed"
        packed.parent.mkdir(parents=True, exist_ok=True)
        if not packed.is_file():
            part = packed.with_name(f".{digest}.{os.getpid()}.{threading.get_ident()}.part")
            try:
                names.artifacts.get(digest, part)
                part.replace(packed)
            except StoreError as error:
                if error.reason != "unknown_artifact":
                    raise
                return _LOST
            finally:
                part.unlink(missing_ok=True)
        _records[digest] = from_json(Prepared, decompress(packed))
    local = names.arrive(_records[digest])
    if local is None:
        return _LOST
    path = names.cache / "prepared" / f"{digest}-{content_id('layers', local.layers)}.json"
    if not path.is_file():
        replace_file(path, to_json(local))
    return path


def _why_full(value: Any) -> str:
    """Why a stage failed for want of disk space; empty if it did not."""
    rows = [proof.rejection for proof in value if isinstance(proof, Proof)] if isinstance(value, list) else [value]
    for row in rows:
        if not isinstance(row, Rejection) or row.worker_outcome is not WorkerOutcome.INFRA_ERROR:
            continue
        if is_disk_full(row.reason, row.detail):
            return row.detail
    return ""


# ------------------------------------------------------------------------------------------------ log, signs of life
_log_of_job: ContextVar[list[str] | None] = ContextVar("log_of_job", default=None)


class _Collector(logging.Handler):
    """Keeps the events of the job that logs them, as lines."""

    def emit(self, record: logging.LogRecord) -> None:
        lines = _log_of_job.get()
        if lines is not None:
            lines.append(self.format(record))


@contextmanager
def _sent_log(run: str) -> Iterator[None]:
    """Send what the job logs to the log of the run, at the end of the job."""
    package = logging.getLogger(PACKAGE)
    if not any(isinstance(handler, _Collector) for handler in package.handlers):
        collector = _Collector()
        collector.setFormatter(JsonLines())
        package.addHandler(collector)
        package.setLevel(logging.INFO)
        package.propagate = False
    lines: list[str] = []
    token = _log_of_job.set(lines)
    try:
        yield
    finally:
        _log_of_job.reset(token)
        if lines:
            ask(run, "log", lines=[f"{socket.gethostname()} {get_worker().address} {os.getpid()}", *lines])


@contextmanager
def _signs_of_life(job: RemoteJob) -> Iterator[None]:
    """End this process if the job is silent for too long: the main process gives its jobs to other workers."""
    latest, ended = [time.monotonic()], threading.Event()

    def sign() -> None:
        latest[0] = time.monotonic()

    def guard() -> None:
        while not ended.wait(min(5.0, job.max_silence_s / 4)):
            if time.monotonic() - latest[0] > job.max_silence_s:
                _end_process(job.max_silence_s)

    token = on_progress.set(sign)
    threading.Thread(target=guard, daemon=True, name="excise-guard").start()
    try:
        yield
    finally:
        on_progress.reset(token)
        ended.set()


def _end_process(silence_s: float) -> None:
    logger.error("job hung", extra={"seconds": silence_s})
    os._exit(HUNG_EXIT)


def max_silence_s(settings: Settings, grace_s: float) -> float:
    """The longest time in which a job may give no sign of life: its longest command, and work of excise's own."""
    verdict = settings.verdict
    return max(verdict.suite_timeout_s, verdict.install_timeout_s, settings.model.call_timeout_s) + grace_s


def sendable(args: Sequence[Any], store: Callable[[Path], str]) -> tuple[Any, ...]:
    """Arguments without paths; ``store`` stores a file with a prepared repository and returns its digest."""
    return tuple(PreparedFile(digest=store(arg)) if isinstance(arg, Path) else arg for arg in args)
