"""What makes a function a stage: its errors become rows, and answers that would not change are remembered.

Errors of a stage are caught here and nowhere else, and become a :class:`Rejection`: a repository that cannot be had,
built or tested is a row with a reason, and the run goes on. Infrastructure failures are rows too, but never kept, and
so are bugs of ours (``internal_error``), with the place where they showed.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import excise
from excise.config import Settings
from excise.envs.sandbox.host_identity import host_state
from excise.errors import EnvironmentFailure, ExciseError, SandboxError, StageTimeout, StoreError
from excise.pipeline.stages.stage_cache import StageCache, stage_key
from excise.types import Rejection, Worker

P = ParamSpec("P")
R = TypeVar("R")

GRACE_S = 600.0
"""Seconds that a stage may take beyond what its commands may take."""
MENDABLE = frozenset({"python_unavailable", "missing_system_lib"})
"""Reasons that may go away when something is installed on the host (see ``envs/sandbox/host_identity.py``)."""


def stage(
    name: str,
) -> Callable[[Callable[Concatenate[Settings, P], R]], Callable[Concatenate[Settings, str, P], R | Rejection]]:
    """Make a function a stage: whatever it raises becomes a rejection.

    A stage is called with the source as the user wrote it after the settings, for the rows.
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
    """The row for an error; infrastructure failures are marked as such."""
    bug = not isinstance(error, (ExciseError, OSError, RecursionError, MemoryError))
    infra = (
        isinstance(error, (SandboxError, StoreError, OSError, MemoryError)) or getattr(error, "reason", "") == "infra"
    )
    worker = Worker.TIMEOUT if isinstance(error, StageTimeout) else Worker.INFRA_ERROR if infra or bug else Worker.OK
    reason = error.reason if isinstance(error, ExciseError) else "internal_error" if bug else "infra_error"
    detail = bug_of(error) if bug else str(error) or type(error).__name__
    if isinstance(error, OSError) and not isinstance(error, ExciseError):
        what = ": ".join(str(part) for part in (error.strerror or type(error).__name__, error.filename) if part)
        detail = f"{what}. Is the disk of the cache, or of the task set, full or not writable?"
    return Rejection(repo=source, stage=stage_name, subject=source, reason=reason, detail=detail, worker_outcome=worker)


def bug_of(error: BaseException) -> str:
    """A sentence for an error that nobody raised on purpose: its type, message and place."""
    home = Path(excise.__file__).parent
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [(path.relative_to(home), line) for path, line in frames if path.is_relative_to(home)] or frames
    place = f" at {ours[-1][0]}:{ours[-1][1]}" if ours else ""
    return f"{type(error).__name__}{place}: {error}. This is a bug in excise; please report it."


def decided(rejection: Rejection) -> bool:
    """Something was found out about the subject, so that trying again would say the same."""
    return rejection.worker_outcome is Worker.OK


def remember(cache: StageCache, stage_name: str, key: str, name: str, failure: EnvironmentFailure) -> None:
    """Keep a failure that another try would only repeat.

    What the user can mend on this machine is kept for the machine as it is now.
    """
    refused = rejection_of(stage_name, name, failure)
    if decided(refused):
        mendable = refused.reason in MENDABLE
        cache.put(stage_name, stage_key(stage_name, key, host_state()) if mendable else key, refused)


def recall(cls: type[R], cache: StageCache, stage_name: str, key: str) -> R | None:
    """The kept answer; ``None`` if there is none. Raises a kept :class:`EnvironmentFailure` again."""
    known = cache.get(cls, stage_name, key)
    if known is None:
        known = cache.get(cls, stage_name, stage_key(stage_name, key, host_state()))
    if isinstance(known, Rejection):
        raise EnvironmentFailure(known.detail, reason=known.reason)
    return known


def measuring(settings: Settings) -> dict[str, object]:
    """The settings that can change what is measured on the untouched project: all but what is shown of a task."""
    return {name: value for name, value in fingerprint(settings).items() if name != "visibility"}


def fingerprint(settings: Settings) -> dict[str, object]:
    """The settings that can change a verdict, or what its certificate says of how it was found."""
    return settings.verdict.model_dump(mode="json") | {"sandbox": settings.sandbox}
