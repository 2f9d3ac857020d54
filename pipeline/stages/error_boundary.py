"""The error boundary of stages: the decorator :func:`stage` catches all exceptions and turns them into rejections.

A repository that cannot be fetched, built or tested becomes a :class:`Rejection` with a reason, and the run continues.
Failures of the infrastructure become rejections too, which are never cached. The same holds for bugs in excise
(``internal_error``); their detail names the line that raised.

The stages, in their order: :mod:`.fetch_stage`, :mod:`.environment_stage` (and :mod:`.model_stage` where it fails),
:mod:`.baseline_stage`, :mod:`.coverage_stage`, :mod:`.find_stage`, :mod:`.propose_stage`, :mod:`.prove_stage`;
beside them :mod:`.surface_stage`.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import excise
from excise.config import Settings
from excise.errors import AgentError, ExciseError, SandboxError, StageTimeout, StoreError
from excise.system.files import tells_full_disk
from excise.system.job_costs import measure_job
from excise.types import Rejection, WorkerOutcome

P = ParamSpec("P")
R = TypeVar("R")

STAGE_GRACE_S = 600.0
"""Seconds added to the time limits of a stage's commands for its own work: parsing, copying, hashing."""


def stage(
    name: str,
) -> Callable[[Callable[Concatenate[Settings, P], R]], Callable[Concatenate[Settings, str, P], R | Rejection]]:
    """Decorate a function as a stage, which returns a rejection instead of raising an exception, and is measured.

    The decorated function has one more parameter, after the settings: the source as the user wrote it, for the
    rejection.
    """

    def wrap(
        function: Callable[Concatenate[Settings, P], R],
    ) -> Callable[Concatenate[Settings, str, P], R | Rejection]:
        @functools.wraps(function)
        def run(settings: Settings, source: str, /, *args: P.args, **kwargs: P.kwargs) -> R | Rejection:
            with measure_job(source, name):
                try:
                    return function(settings, *args, **kwargs)
                except Exception as error:
                    return rejection_of(name, source, error)

        return run

    return wrap


def rejection_of(stage_name: str, source: str, error: BaseException) -> Rejection:
    """Make the rejection for an error; its ``worker_outcome`` says whether the infrastructure failed."""
    bug = not isinstance(error, (ExciseError, OSError, RecursionError, MemoryError))
    infra = (
        isinstance(error, (AgentError, SandboxError, StoreError, OSError, MemoryError))
        or getattr(error, "reason", "") == "infra"
    )
    worker = (
        WorkerOutcome.TIMEOUT
        if isinstance(error, StageTimeout)
        else WorkerOutcome.INFRA_ERROR
        if infra or bug
        else WorkerOutcome.OK
    )
    reason = error.reason if isinstance(error, ExciseError) else "internal_error" if bug else "infra_error"
    detail = bug_report(error) if bug else str(error) or type(error).__name__
    if isinstance(error, OSError) and not isinstance(error, ExciseError):
        what = ": ".join(str(part) for part in (error.strerror or type(error).__name__, error.filename) if part)
        detail = f"{what}. Is the disk of the cache, or of the task set, full or not writable?"
    elif infra and tells_full_disk(detail):
        reason = "disk_full"
        detail = f"The disk is full; free some space and run the same command again. {detail}"
    return Rejection(repo=source, stage=stage_name, subject=source, reason=reason, detail=detail, worker_outcome=worker)


def bug_report(error: BaseException) -> str:
    """Describe an unexpected error: its type, its message and the innermost line of excise in the traceback."""
    home = Path(excise.__file__).parent
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [(path.relative_to(home), line) for path, line in frames if path.is_relative_to(home)] or frames
    place = f" at {ours[-1][0]}:{ours[-1][1]}" if ours else ""
    return f"{type(error).__name__}{place}: {error}. This is a bug in excise; please report it."


def is_conclusive(rejection: Rejection) -> bool:
    """Whether the rejection has its cause in the subject, not in the infrastructure, so that a retry is useless."""
    return rejection.worker_outcome is WorkerOutcome.OK
