"""Runs that are interrupted, killed or lose workers: finished work is kept, and the next run completes the rest."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.types import WorkerOutcome

from .processes import descendants, kill, parents, started, wait_for, workers_in_sandboxes

SHAPES = Path(__file__).resolve().parents[1] / "repos" / "shapes"


@dataclass(frozen=True)
class Job:
    """A run on ``shapes`` that has everything but its candidates in the cache."""

    out: Path
    cache: Path
    config: Path

    @property
    def arguments(self) -> list[str | Path]:
        return ["generate", SHAPES, "-o", self.out, "--cache", self.cache, "-c", self.config, "--limit", "2", "--json"]

    def candidates(self) -> dict[Path, int]:
        """Finished candidates in the cache, with the times when they were written."""
        return {path: path.stat().st_mtime_ns for path in (self.cache / "stages" / "candidate").rglob("[!.]*.json")}

    def finish(self, *more: str) -> dict:
        """Run to the end, with more arguments."""
        command = [sys.executable, "-m", "excise.pipeline.cli", *map(str, self.arguments), *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2400)
        assert done.returncode == 0, done.stderr
        result: dict = json.loads(done.stdout)
        return result


@pytest.fixture
def job(shapes, tmp_path: Path) -> Job:
    cache = tmp_path / "cache"
    shapes.copy_cache(cache)
    shutil.rmtree(cache / "stages" / "candidate")
    return Job(out=tmp_path / "out", cache=cache, config=shapes.config)


@pytest.fixture(scope="module")
def undisturbed(shapes, tmp_path_factory: pytest.TempPathFactory) -> TaskSet:
    """The set of the same job, undisturbed: all its candidates are in the cache of the run on ``shapes``."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    job = Job(out=out, cache=shapes.cache, config=shapes.config)
    assert job.finish()["tasks"] == 2
    taskset = TaskSet.open(out)
    for task in taskset.tasks():
        assert task == shapes.taskset.task(task.instance_id)
    return taskset


def check_complete(job: Job, undisturbed: TaskSet, result: dict) -> None:
    """The same tasks as in any other run."""
    taskset = TaskSet.open(job.out)
    ids = taskset.ids()
    assert (result["tasks"], len(ids), result["interrupted"]) == (2, 2, False)
    assert set(ids) == set(undisturbed.ids())
    for instance_id in ids:
        assert taskset.task(instance_id) == undisturbed.task(instance_id)


def interrupted(job: Job, number: signal.Signals, *, group: bool) -> dict[Path, int]:
    """Interrupt a run early, once a candidate is done; what was in the cache by then.

    One worker: two would be through with the rest before the signal.
    """
    with started(*job.arguments, "--workers", "1") as process:
        assert wait_for(lambda: job.candidates())
        time.sleep(0.2)
        before = job.candidates()
        below = descendants(process.pid)
        (os.killpg if group else os.kill)(process.pid, number)
        stdout, stderr = process.communicate(timeout=60)
        assert process.returncode == 130, stderr
        assert "Traceback" not in stderr
        assert json.loads(stdout)["interrupted"]
        assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), 20)
    kept = TaskSet.open(job.out)
    assert kept.reports()[0].status == "ok"
    assert len(kept.ids()) == 1
    return before


def test_an_interrupted_run_keeps_finished_work_and_resumes(job: Job, undisturbed: TaskSet) -> None:
    before = interrupted(job, signal.SIGINT, group=True)
    check_complete(job, undisturbed, job.finish())
    after = job.candidates()
    assert {path: after[path] for path in before} == before, "what was done is not done again"


def test_a_run_ends_with_enough_tasks_and_is_continued(job: Job, undisturbed: TaskSet) -> None:
    ended = job.finish("--total", "1")
    assert (ended["interrupted"], len(TaskSet.open(job.out).ids())) == (False, ended["tasks"])
    assert ended["tasks"] == 1
    check_complete(job, undisturbed, job.finish())


def test_a_stopped_service_keeps_finished_work(job: Job) -> None:
    interrupted(job, signal.SIGTERM, group=False)


def test_a_killed_worker_loses_no_work(job: Job, undisturbed: TaskSet) -> None:
    with started(*job.arguments) as process:
        assert wait_for(lambda: workers_in_sandboxes(process.pid))
        kill(workers_in_sandboxes(process.pid)[0])
        stdout, stderr = process.communicate(timeout=300)
        assert process.returncode == 0, stderr
    check_complete(job, undisturbed, json.loads(stdout))


def test_workers_that_die_repeatedly_lose_only_their_own_rows(job: Job, undisturbed: TaskSet) -> None:
    with started(*job.arguments) as process:
        for _ in range(6):
            assert wait_for(lambda: process.poll() is not None or workers_in_sandboxes(process.pid))
            killed = workers_in_sandboxes(process.pid)
            for pid in killed:
                kill(pid)
            assert wait_for(lambda gone=set(killed): not gone & set(parents()))
        stdout, stderr = process.communicate(timeout=400)
        assert process.returncode == 0, stderr
    result = json.loads(stdout)
    lost = [row for row in TaskSet.open(job.out).rejections() if row.reason == "worker_died"]
    assert lost
    assert {row.worker_outcome for row in lost} == {WorkerOutcome.KILLED}
    assert all(row.symbols and row.stage == "prove" for row in lost)
    assert result["sources"][0]["status"] == "ok"
    check_complete(job, undisturbed, job.finish())
    assert not [row for row in TaskSet.open(job.out).rejections() if row.reason == "worker_died"]


def test_a_run_that_is_killed_leaves_no_process_and_no_lock(job: Job) -> None:
    with started(*job.arguments) as process:
        assert wait_for(lambda: len(job.candidates()) >= 1)
        below = descendants(process.pid)
        assert below
        kill(process.pid)
        process.wait()
        assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), 30)
    with Store(job.out).writer() as writer:
        assert set(writer.names()) <= {str(SHAPES)}


def test_two_runs_into_one_set_are_refused(job: Job) -> None:
    with started(*job.arguments) as process:
        assert wait_for(lambda: (job.out / ".lock").exists() and (job.out / ".lock").read_text())
        command = [sys.executable, "-m", "excise.pipeline.cli", *map(str, job.arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 1
        assert f"being written by process {process.pid}" in done.stderr
        assert "Traceback" not in done.stderr
