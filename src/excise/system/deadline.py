"""Cooperative deadlines: code checks them at points where it can be ended safely.

:func:`deadline` sets one for a block. Functions called in the block call :func:`check_deadline` between steps that may
be many or slow, and run commands inside :func:`time_limit`, which also shortens their time limits. A passed deadline
raises at these points only, so it never interrupts a critical section or leaves a lock behind.

The deadline is part of the current context (:mod:`contextvars`), so each thread and each task has its own.
:func:`with_context_of_caller` passes it on to the threads of a pool.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from excise.errors import StageTimeout

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class _Deadline:
    ends_at: float
    """Time of :func:`time.monotonic` at which the deadline passes."""
    seconds: float
    """Time that the block may take."""
    action: str
    """What the block does; the error message begins with it."""


_current: ContextVar[_Deadline | None] = ContextVar("deadline", default=None)


class _DeadlinePassed(BaseException):
    """Raised by checks; not an :class:`Exception`, so that no handler between check and :func:`deadline` catches it."""

    def __init__(self, passed: _Deadline) -> None:
        super().__init__(passed.action)
        self.passed = passed


@contextmanager
def deadline(seconds: float, action: str) -> Iterator[None]:
    """Limit a block to ``seconds`` of wall time. Of nested deadlines, the earliest counts.

    Raises :class:`StageTimeout` if a check in the block finds that the time has passed; ``action`` begins its message,
    for example ``Fetching pypi:attrs``. Nothing is raised if no check follows.
    """
    own, outer = _Deadline(time.monotonic() + seconds, seconds, action), _current.get()
    token = _current.set(outer if outer is not None and outer.ends_at <= own.ends_at else own)
    try:
        yield
    except _DeadlinePassed as error:
        if error.passed is not own:
            raise
        raise StageTimeout(f"{action} took longer than {seconds:.0f} s.") from None
    finally:
        _current.reset(token)


def check_deadline() -> None:
    """End the block of the current deadline if its time has passed. Does nothing without a deadline."""
    current = _current.get()
    if current is not None and time.monotonic() >= current.ends_at:
        raise _DeadlinePassed(current)


def remaining_s() -> float:
    """Return the seconds until the current deadline, at least 0; infinity without one."""
    current = _current.get()
    return math.inf if current is None else max(0.0, current.ends_at - time.monotonic())


@contextmanager
def time_limit(timeout_s: float) -> Iterator[float]:
    """Yield the time limit of one command in seconds: ``timeout_s``, or less if the deadline comes earlier.

    Checks the deadline before and after the command, also if the command raises: a command that was cut short by the
    deadline ends the block of the deadline, however it reports that.
    """
    check_deadline()
    try:
        yield min(timeout_s, remaining_s())
    except Exception:
        check_deadline()
        raise
    check_deadline()


def with_context_of_caller(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap ``function`` so that other threads that call it have this thread's context: its deadline, and its job."""
    context = copy_context()

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return run
