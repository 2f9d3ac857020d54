"""Worker pools: Dask workers of this machine, whose events reach the folder of the run's log, and the main process."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from excise.pipeline.cluster.local_cluster import DaskPool, cluster_client, open_worker_pool
from excise.pipeline.run.job_queue import JobQueue, Rank
from excise.system.run_log import run_log


def test_events_of_workers_are_logged_beside_the_runs_own(tmp_path: Path) -> None:
    for run in ("first", "second"):  # of one process
        with run_log(tmp_path / run) as path, cluster_client("", 1) as client:
            pool = DaskPool(client)
            pool.submit(logging.getLogger("excise.somewhere").info, (f"request of the {run} run",))
            ended = pool.wait()
            assert ended is not None
            assert ended[1].failure("") is None
        (worker,) = path.parent.glob(f"{path.stem}-worker-*.jsonl")
        assert json.loads(worker.read_text())["event"] == f"request of the {run} run"


def test_workers_that_offer_no_slots_run_a_job_on_each_thread() -> None:
    workers = {"a": {"nthreads": 2, "resources": {}}, "b": {"nthreads": 1}}
    assert DaskPool(SimpleNamespace(scheduler_info=lambda n_workers: {"workers": workers})).num_slots() == 3


def test_spare_workers_get_jobs_while_the_machine_is_idle(tmp_path: Path) -> None:
    """Three jobs that wait for a file on two workers and a spare one; the third begins when a core is idle."""
    idle = [0.7]
    released = tmp_path / "released"
    wait = ["sh", "-c", 'until [ -e "$0" ]; do sleep 0.1; done', str(released)]
    with cluster_client("", 3) as client:
        pool = DaskPool(client, spare=1, idle=lambda: idle[0])
        jobs: JobQueue[int] = JobQueue(pool)
        for number in range(3):
            jobs.put(number, Rank(float(number), 0.0), subprocess.run, wait)
        jobs.dispatch()
        assert (sorted(jobs.running.values()), jobs.slots) == ([0, 1], 2)
        idle[0] = 1.0
        assert pool.wait() is None
        jobs.dispatch()
        assert sorted(jobs.running.values()) == [0, 1, 2]
        released.touch()
        assert sorted(number for number, result in jobs if result.failure("") is None) == [0, 1, 2]


def test_one_worker_runs_jobs_in_this_process_in_their_order() -> None:
    with open_worker_pool("", 1) as pool:
        jobs: JobQueue[str] = JobQueue(pool)
        jobs.put("late", Rank(3.0, 0.0), os.getpid)
        jobs.put("wrong", Rank(1.0, 0.0), int, "x")
        jobs.put("early", Rank(2.0, 0.0), divmod, 7, 2)
        results = dict(jobs)
    assert list(results) == ["wrong", "early", "late"]
    assert (results["early"].value, results["late"].value) == ((3, 1), os.getpid())
    reason, text = results["wrong"].failure("try again") or ("", "")
    assert (reason, text.startswith("ValueError: invalid literal")) == ("internal_error", True)


def test_ctrl_c_ends_a_job_in_this_process() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with open_worker_pool("", 1) as pool:
        jobs: JobQueue[str] = JobQueue(pool)
        jobs.put("first", Rank(1.0, 0.0), interrupt)
        jobs.put("second", Rank(2.0, 0.0), os.getpid)
        with pytest.raises(KeyboardInterrupt):
            next(iter(jobs))
        jobs.cancel()
        jobs.running.clear()
        assert list(jobs) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_nothing_is_started_for_a_source_that_is_not_there(tmp_path: Path, workers: str) -> None:
    program = """
import sys
from excise.pipeline.cli.main import main
sys.argv[1:] = ["generate", "/nonexistent", "--workers", sys.argv[2], "-o", sys.argv[1]]
try:
    main()
finally:
    print("distributed" in sys.modules)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "out"), workers]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.split()[-1] == "False", done.stdout + done.stderr
    assert "no such file or folder" in done.stderr
