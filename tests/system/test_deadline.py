"""Deadlines end a block at a safe point: the right block, in its own thread, and never while a lock is held."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from excise.errors import StageTimeout
from excise.system.commands import CommandTimeout, run_command
from excise.system.deadline import check_deadline, deadline, remaining_s, time_limit, with_context_of_caller


def spin(seconds: float) -> None:
    """Work of many small steps, with a safe point between them."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        check_deadline()


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
    first = "Outer" if outer_first else "Inner"
    with pytest.raises(StageTimeout, match=first), deadline(outer, "Outer"), deadline(inner, "Inner"):
        spin(10)
    spin(0.1)


def test_a_deadline_at_the_very_end_never_fires_outside() -> None:
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


def test_it_never_fires_while_a_lock_is_held() -> None:
    """Time runs out in a critical section: that is finished, the lock is free, and the next check ends the block."""
    lock, steps = threading.Lock(), []

    def work() -> None:
        with lock:
            steps.append("first half")
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                pass
            steps.append("second half")
        steps.append("released")
        check_deadline()
        steps.append("never")

    with pytest.raises(StageTimeout), deadline(0.05, "Holding a lock"):
        work()
    assert steps == ["first half", "second half", "released"]
    assert not lock.locked()


def test_a_command_that_hangs_is_ended_with_its_stage() -> None:
    began = time.monotonic()
    with pytest.raises(StageTimeout, match="Hanging"), deadline(0.5, "Hanging"):
        run_command([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=60)
    assert time.monotonic() - began < 10


def test_a_commands_own_limit_is_not_the_deadlines() -> None:
    with pytest.raises(CommandTimeout), deadline(30, "A command"):
        run_command([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.3)


def test_no_command_is_begun_too_late() -> None:
    with pytest.raises(StageTimeout), deadline(0.0, "Too late"):
        run_command([sys.executable, "-c", "raise SystemExit('begun')"], timeout_s=60)


def test_an_error_of_a_command_that_was_cut_short_is_the_deadlines() -> None:
    def work() -> None:
        with time_limit(60) as limit_s:
            assert limit_s <= 0.05
            time.sleep(0.1)
            raise subprocess.TimeoutExpired("a command", limit_s)

    with pytest.raises(StageTimeout), deadline(0.05, "A command"):
        work()


def test_threads_of_a_pool_can_be_given_the_callers_deadline() -> None:
    with ThreadPoolExecutor(2) as pool, deadline(20, "A pool"):
        bounded = list(pool.map(with_context_of_caller(lambda _: remaining_s()), range(2)))
        unbounded = list(pool.map(lambda _: remaining_s(), range(2)))
    assert all(0 < left <= 20 for left in bounded)
    assert unbounded == [math.inf, math.inf]
