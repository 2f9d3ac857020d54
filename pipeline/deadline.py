"""A deadline for code of ours that runs in a worker's thread: raises :class:`StageTimeout` in it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from excise.errors import StageTimeout


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """End the block with :class:`StageTimeout` if it takes longer.

    The sandbox has limits of its own; this one is for parsing, copying and whatever else a hostile repository
    can make slow. Blocking C calls end first.
    """
    thread = ctypes.c_ulong(threading.get_ident())
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    lock, ended = threading.Lock(), threading.Event()

    def ring() -> None:
        with lock:
            if not ended.is_set():
                raise_in(thread, ctypes.py_object(_Rung))

    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    try:
        try:
            timer.start()
            yield
        finally:  # from here on no bell may ring, and one that rang unheard is taken back
            with lock:
                ended.set()
            timer.cancel()
            raise_in(thread, None)
    except _Rung:
        raise StageTimeout(f"{what} took longer than {seconds:.0f} s.") from None


class _Rung(BaseException):
    """Time is up. No :class:`Exception`, so that no cautious handler below swallows it."""
