"""A thread pool that neither shutdown nor the end of the process waits for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from excise.trainer.concurrency import DaemonThreadPool


def test_the_pool_runs_work_in_its_number_of_threads() -> None:
    threads = DaemonThreadPool(3, "test")
    together = threading.Barrier(3)
    assert sum(done.result(10) >= 0 for done in [threads.submit(together.wait, 5) for _ in range(3)]) == 3
    failed = threads.submit(lambda: 1 / 0)
    assert isinstance(failed.exception(10), ZeroDivisionError)
    names = {threads.submit(lambda: threading.current_thread().name).result(10) for _ in range(20)}
    assert names <= {"test-0", "test-1", "test-2"}
    threads.shutdown()
    with pytest.raises(RuntimeError, match="closed"):
        threads.submit(print)


def test_shutdown_does_not_wait_for_a_hanging_thread() -> None:
    threads, hang = DaemonThreadPool(1, "test"), threading.Event()
    hanging, waiting = threads.submit(hang.wait), threads.submit(print)
    began = time.monotonic()
    threads.shutdown(cancel_futures=True, within_s=0.2)
    assert 0.2 <= time.monotonic() - began < 5
    assert waiting.cancelled()
    assert hanging.running()
    hang.set()
    assert hanging.result(10) is True


def test_a_process_ends_though_a_thread_hangs() -> None:
    code = """
import time
from excise.trainer.concurrency import DaemonThreadPool
threads = DaemonThreadPool(2, "test")
threads.submit(time.sleep, 1000)
threads.shutdown(wait=False)
print("bye")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert done.stdout == b"bye\n"
