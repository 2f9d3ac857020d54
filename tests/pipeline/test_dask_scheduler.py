"""A run on an existing Dask cluster, given by its address: a real scheduler and real workers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from excise.datasets.taskset import TaskSet

from .processes import descendants, kill, wait_for

SHAPES = Path(__file__).resolve().parents[1] / "repos" / "shapes"


@contextmanager
def cluster(folder: Path, *worker_options: str) -> Iterator[str]:
    """The address of a scheduler with two workers."""
    facts = folder / "scheduler.json"
    local = ["--no-dashboard", "--scheduler-file", str(facts)]
    with ExitStack() as stack:
        stack.enter_context(dask("scheduler", "--host", "127.0.0.1", "--port", "0", *local))
        assert wait_for(facts.exists, 60)
        workers = ["--nworkers", "2", "--nthreads", "1", "--local-directory", str(folder / "space")]
        stack.enter_context(dask("worker", *local, *workers, *worker_options))
        yield json.loads(facts.read_text())["address"]


@contextmanager
def dask(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "dask", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        for pid in [process.pid, *descendants(process.pid)]:
            kill(pid)
        process.wait()


def test_a_cluster_by_address_gives_the_same_tasks(shapes, excise, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    shapes.copy_cache(cache)
    shutil.rmtree(cache / "stages" / "candidate")
    given = ["generate", SHAPES, "-o", tmp_path / "out", "--cache", cache, "-c", shapes.config, "--limit", "1"]
    given += ["--set", "artifacts=shared"]
    with cluster(tmp_path, "--resources", "slot=1") as address:
        done = excise(*given, "--scheduler", address, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tasks"] == 1
    taskset = TaskSet.open(tmp_path / "out")
    for instance_id in taskset.ids():
        assert taskset.task(instance_id) == shapes.taskset.task(instance_id)


def test_a_scheduler_that_does_not_answer_is_reported(shapes, excise, tmp_path: Path) -> None:
    given = ["generate", SHAPES, "-o", tmp_path / "out", "--cache", tmp_path / "cache"]
    done = excise(*given, "--scheduler", "tcp://127.0.0.1:9", timeout=120)
    assert done.returncode == 2
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert "dask worker" in done.stderr or "workers" in done.stderr
    assert "Traceback" not in done.stderr
