"""Deadlines that code checks by itself, at points where it can be ended safely.

``deadline`` sets one for a block of code; code below calls :func:`check_deadline` between steps that may be many or
slow, and runs commands inside :func:`time_limit`, which also shortens their time limits. Nothing is raised anywhere
else, so a deadline never interrupts a critical section or leaves a lock behind.

The deadline belongs to the current context (:mod:`contextvars`), so threads and tasks have one each; for functions
that are given to a pool of threads, :func:`with_deadline_of_caller` carries it over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from excise.errors import StageTimeout

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class _Deadline:
    ends_at: float
    """As :func:`time.monotonic` counts."""
    seconds: float
    """How long the block may take."""
    action: str
    """What the block does; the beginning of the message."""


_current: ContextVar[_Deadline | None] = ContextVar("deadline", default=None)


class _DeadlinePassed(BaseException):
    """Not an :class:`Exception`, so that no handler between the check and the block's end swallows it."""

    def __init__(self, passed: _Deadline) -> None:
        super().__init__(passed.action)
        self.passed = passed


@contextmanager
def deadline(seconds: float, action: str) -> Iterator[None]:
    """Give a block ``seconds`` of wall time. Inside another deadline, the earlier one counts.

    Raises :class:`StageTimeout` at the first check after that time; ``action`` begins its message, for example
    ``Fetching pypi:attrs``. A block that ends without another check is not late.
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
    """End the block of the current deadline if its time has passed; a safe point. Does nothing without a deadline."""
    current = _current.get()
    if current is not None and time.monotonic() >= current.ends_at:
        raise _DeadlinePassed(current)


def remaining_s() -> float:
    """Seconds until the current deadline, at least 0; infinite without one."""
    current = _current.get()
    return math.inf if current is None else max(0.0, current.ends_at - time.monotonic())


@contextmanager
def time_limit(timeout_s: float) -> Iterator[float]:
    """The time limit in seconds for one command: ``timeout_s``, or less where the deadline comes earlier.

    A safe point before the command and after it: a command that is cut short by the deadline, however it reports that,
    ends the block of the deadline.
    """
    check_deadline()
    try:
        yield min(timeout_s, remaining_s())
    except Exception:
        check_deadline()
        raise
    check_deadline()


def with_deadline_of_caller(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, to be called by other threads under the deadline of this one."""
    current = _current.get()

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _current.set(current)
        try:
            return function(*args, **kwargs)
        finally:
            _current.reset(token)

    return run
