"""What makes a function a stage: the one place where errors are caught and become rows.

Whatever a stage raises becomes a :class:`Rejection`: a repository that cannot be fetched, built or tested is a row with
a reason, and the run goes on. Failures of the infrastructure are rows too, but are never cached, and neither are bugs
in excise (``internal_error``), whose rows name the line that raised.

The stages, in their order: :mod:`.fetch_stage`, :mod:`.environment_stage` (and :mod:`.model_stage` where it fails),
:mod:`.baseline_stage`, :mod:`.coverage_stage`, :mod:`.find_stage`, :mod:`.prove_stage`.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import excise
from excise.config import Settings
from excise.errors import ExciseError, SandboxError, StageTimeout, StoreError
from excise.types import Rejection, WorkerOutcome

P = ParamSpec("P")
R = TypeVar("R")

STAGE_GRACE_S = 600.0
"""Seconds that a stage may take beyond the time limits of its commands, for parsing, copying and hashing."""


def stage(
    name: str,
) -> Callable[[Callable[Concatenate[Settings, P], R]], Callable[Concatenate[Settings, str, P], R | Rejection]]:
    """Make a function a stage: whatever it raises becomes a rejection.

    The stage takes one more argument than the function, after the settings: the source as the user wrote it, for the
    rejection.
    """

    def wrap(
        function: Callable[Concatenate[Settings, P], R],
    ) -> Callable[Concatenate[Settings, str, P], R | Rejection]:
        @functools.wraps(function)
        def run(settings: Settings, source: str, /, *args: P.args, **kwargs: P.kwargs) -> R | Rejection:
            try:
                return function(settings, *args, **kwargs)
            except Exception as error:
                return rejection_of(name, source, error)

        return run

    return wrap


def rejection_of(stage_name: str, source: str, error: BaseException) -> Rejection:
    """The rejection for an error; its ``worker_outcome`` says whether the infrastructure failed."""
    bug = not isinstance(error, (ExciseError, OSError, RecursionError, MemoryError))
    infra = (
        isinstance(error, (SandboxError, StoreError, OSError, MemoryError)) or getattr(error, "reason", "") == "infra"
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
    return Rejection(repo=source, stage=stage_name, subject=source, reason=reason, detail=detail, worker_outcome=worker)


def bug_report(error: BaseException) -> str:
    """A sentence for an unexpected error: its type, its message and the last line of excise that it passed through."""
    home = Path(excise.__file__).parent
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [(path.relative_to(home), line) for path, line in frames if path.is_relative_to(home)] or frames
    place = f" at {ours[-1][0]}:{ours[-1][1]}" if ours else ""
    return f"{type(error).__name__}{place}: {error}. This is a bug in excise; please report it."


def is_conclusive(rejection: Rejection) -> bool:
    """Whether the rejection is a fact about its subject, so that another try would end the same way."""
    return rejection.worker_outcome is WorkerOutcome.OK
