"""What a job costs, by step and program: every job of a run logs it at its end, as the event ``job measured``.

:func:`measure_job` measures a block. In it, :func:`step` names what is being done, and whatever runs commands in
sandboxes reports them with :func:`count_command`. The current job is part of the context (:mod:`contextvars`), like a
deadline.
``datasets/queries/costs.py`` reads the events of a run's log.
"""

from __future__ import annotations

import logging
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import PurePosixPath

logger = logging.getLogger(__name__)
EXCISE, HOST = "excise", "host commands"
"""Programs of the rows for a job's own process, and for commands that it ran outside sandboxes (git, uv)."""


@dataclass(slots=True)
class _Row:
    """The cost of one program in one step."""

    runs: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(slots=True)
class _JobCosts:
    """The costs of one job so far."""

    step: str = ""
    rows: dict[tuple[str, str], _Row] = field(default_factory=dict)
    """Step and program to cost."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Guards ``rows``: the threads of a job share it."""

    def add(self, step_name: str, program: str, cpu_s: float, wall_s: float) -> None:
        with self.lock:
            row = self.rows.setdefault((step_name, program), _Row())
            row.runs += 1
            row.cpu_s += cpu_s
            row.wall_s += wall_s


current_job: ContextVar[_JobCosts | None] = ContextVar("job_costs", default=None)
on_progress: ContextVar[Callable[[], None] | None] = ContextVar("on_progress", default=None)
"""Called when a command has ended or a step begins: the job is alive. Set by workers that watch their jobs."""


@contextmanager
def measure_job(source: str, stage: str) -> Iterator[None]:
    """Measure a block, and log what it cost; a job within a job belongs to the outer one."""
    if current_job.get() is not None:
        yield
        return
    job = _JobCosts()
    token = current_job.set(job)
    began, children, written = time.monotonic(), _children_cpu_s(), _written_bytes()
    try:
        with step(""):
            yield
    finally:
        current_job.reset(token)
        if (host_cpu_s := _children_cpu_s() - children) > 0:
            job.add("", HOST, host_cpu_s, 0.0)
        facts = {
            "source": source,
            "stage": stage,
            "pid": os.getpid(),
            "wall_s": round(time.monotonic() - began, 4),
            "process_cpu_s": round(time.process_time(), 3),
            "written_bytes": _written_bytes() - written,
            "costs": [
                {"step": name, "program": program, "runs": row.runs}
                | {"cpu_s": round(row.cpu_s, 4), "wall_s": round(row.wall_s, 4)}
                for (name, program), row in job.rows.items()
            ],
        }
        logger.info("job measured", extra=facts)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Name what the job does in this block. The thread's own CPU time in it becomes a row of excise itself.

    The time of a step within a step belongs to the inner one only.
    """
    job = current_job.get()
    _report_progress()
    if job is None:
        yield
        return
    outer, inner_before = job.step, _own(job)
    job.step = name
    cpu, wall = time.thread_time(), time.monotonic()
    try:
        yield
    finally:
        inner_cpu, inner_wall = (after - before for after, before in zip(_own(job), inner_before, strict=True))
        own_wall = max(0.0, time.monotonic() - wall - inner_wall)  # commands in threads of their own overlap
        job.add(name, EXCISE, time.thread_time() - cpu - inner_cpu, own_wall)
        job.step = outer


def _own(job: _JobCosts) -> tuple[float, float]:
    """CPU seconds of all rows of excise itself, and wall seconds of all rows."""
    with job.lock:
        own = sum(row.cpu_s for (_, program), row in job.rows.items() if program == EXCISE)
        return own, sum(row.wall_s for row in job.rows.values())


def count_command(argv: Sequence[str], cpu_s: float, wall_s: float) -> None:
    """Add a command in a sandbox to the current job, if there is one."""
    job = current_job.get()
    _report_progress()
    if job is not None:
        job.add(job.step, program_of(argv), cpu_s, wall_s)


def _report_progress() -> None:
    report = on_progress.get()
    if report is not None:
        report()


def program_of(argv: Sequence[str]) -> str:
    """A short name of a command: that of its script, if it is one, else of the executable with its first option."""
    script = next((word for word in argv[1:] if word.endswith((".py", ".sh"))), None)
    if script is not None:
        return PurePosixPath(script).name
    options = [word for word in argv[1:] if word in ("-c", "-", "-m")]
    return " ".join([PurePosixPath(argv[0]).name, *options[:1]])


def _children_cpu_s() -> float:
    """CPU seconds of all child processes that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _written_bytes() -> int:
    """Bytes that this process has written so far, by the kernel's count; 0 where it keeps none."""
    try:
        with open("/proc/self/io", encoding="ascii") as lines:
            counts = dict(line.split(": ") for line in lines.read().splitlines())
    except OSError:
        return 0
    return int(counts.get("wchar", 0))
