"""Deadlines ring in the right thread, once, and never late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from excise.errors import StageTimeout
from excise.pipeline.deadline import deadline


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def stubborn() -> None:
    while True:
        try:
            spin(10)
        except Exception:
            continue


def test_code_that_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(StageTimeout, match=r"^Spinning took longer than 0 s\.$"), deadline(0.2, "Spinning"):
        spin(10)
    assert time.monotonic() - began < 2


def test_cautious_handlers_do_not_swallow_it() -> None:
    with pytest.raises(StageTimeout), deadline(0.2, "Stubbornness"):
        stubborn()


def test_code_that_ends_in_time_hears_nothing() -> None:
    with deadline(0.1, "Quick"):
        pass
    spin(0.3)


def test_other_errors_pass_through() -> None:
    with pytest.raises(KeyError), deadline(5, "Errors"):
        raise KeyError


@pytest.mark.parametrize("outer_first", [True, False])
def test_deadlines_may_be_nested(outer_first: bool) -> None:
    outer, inner = (0.2, 5.0) if outer_first else (5.0, 0.2)
    with pytest.raises(StageTimeout), deadline(outer, "Outer"), deadline(inner, "Inner"):
        spin(10)
    spin(0.1)


def test_a_bell_at_the_very_end_never_rings_outside() -> None:
    late = 0
    for _ in range(300):
        try:
            with deadline(0.002, "A race"):
                spin(0.0019)
        except StageTimeout:
            late += 1
        spin(0.0005)
    assert 0 <= late <= 300


def test_each_thread_has_its_own() -> None:
    said: dict[str, str] = {}

    def work(name: str, limit: float) -> Callable[[], None]:
        def run() -> None:
            try:
                with deadline(limit, name):
                    spin(0.6)
                said[name] = "done"
            except StageTimeout as error:
                said[name] = str(error)

        return run

    threads = [threading.Thread(target=work(name, limit)) for name, limit in (("short", 0.1), ("long", 20.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {"short": "short took longer than 0 s.", "long": "done"}
