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
    thread = threading.get_ident()
    late = threading.Event()

    def ring() -> None:
        late.set()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(StageTimeout))

    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    try:
        yield
    except StageTimeout:
        raise StageTimeout(f"{what} took longer than {seconds:.0f} s.") from None
    finally:
        timer.cancel()
