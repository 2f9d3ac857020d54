"""Workers that share no folders with the main process: they die, hang, lack space, come late, are of another kind."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from excise.config import Settings, VerdictSettings
from excise.errors import ConfigError
from excise.pipeline.cluster import cluster_pool
from excise.pipeline.cluster.cluster_pool import ClusterPool, open_cluster
from excise.pipeline.cluster.remote_job import HUNG_EXIT
from excise.pipeline.cluster.worker_pool import JobResult
from excise.pipeline.stages.fetch_stage import FetchedSources, fetch_stage
from excise.types import SourceSpec

from . import cluster_jobs
from .machine import machines

SHAPES = Path(__file__).resolve().parents[1] / "repos" / "shapes"


def settings_for(address: str, base: Path, memory_mb: int = 64) -> Settings:
    return Settings(
        scheduler=address,
        cache=base / "main" / "cache",
        out=base / "main" / "out",
        verdict=VerdictSettings(memory_mb=memory_mb, disk_mb=16),
    )


def result_of(pool: ClusterPool) -> JobResult:
    """The result of the next job that ends."""
    while (ended := pool.wait()) is None:
        continue
    return ended[1]


def with_interpreter(root: Path) -> Path:
    """A folder of pyenv with what says that it is an interpreter."""
    executable = root / "versions" / "3.9.99" / "bin" / "python3.9"
    executable.parent.mkdir(parents=True)
    facts = {"version": "3.9.99", "implementation": "CPython", "executable": str(executable), "unusual": False}
    answer = json.dumps({**facts, "prefix": str(executable.parents[1])})
    executable.write_text(f"#!/bin/sh\necho '{answer}'\n")
    executable.chmod(0o755)
    return root


def test_jobs_go_on_whatever_happens_to_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_pool, "max_silence_s", lambda *_: 15.0)
    monkeypatch.setattr(cluster_pool, "PROBE_S", 1.0)
    messages: list[str] = []
    seen = tmp_path / "seen"
    seen.mkdir()
    with machines(tmp_path / "machines") as cluster:
        cluster.start("first", "--no-nanny")
        settings = settings_for(cluster.address, tmp_path)
        with open_cluster(settings, messages.append) as pool:
            assert pool.num_slots() == 1
            pool.submit(cluster_jobs.where, (settings, "place", ""))
            home, _, cache = result_of(pool).value
            assert (home, cache) == tuple(str(cluster.base / "first" / part) for part in ("home", "cache"))
            with (
                pytest.raises(ConfigError, match=r"No worker .* has \d+ MiB of memory, one sandbox may take 100000000"),
                open_cluster(settings_for(cluster.address, tmp_path, memory_mb=100_000_000)) as greedy,
            ):
                greedy.num_slots()

            # The worker hangs and ends itself. The job waits for others, which come late; one is of another kind.
            pool.submit(cluster_jobs.hangs_once, (settings, "hangs", str(seen)))
            cluster.start("other", PYENV_ROOT=str(with_interpreter(tmp_path / "pyenv")))
            cluster.start("second")
            assert result_of(pool).value == str(cluster.base / "second" / "home")
            assert cluster.processes["first"].wait(60) == HUNG_EXIT
            cluster.start("third")
            assert pool.wait() is None
            assert pool.num_slots() == 2

            # A worker without disk space gets no more jobs.
            pool.submit(cluster_jobs.has_no_space_once, (settings, "space", str(seen)))
            left = result_of(pool).value
            assert pool.num_slots() == 1

            # The other one dies; its nanny starts it again, and it does the job.
            pool.submit(cluster_jobs.dies_once, (settings, "dies", str(seen)))
            assert result_of(pool).value == left

            # Fetching needs no sandbox: a machine of another kind may do it. What is on this machine is fetched here.
            pool.submit(fetch_stage, (settings, str(SHAPES), SourceSpec(spec=str(SHAPES))))
            fetched = result_of(pool).value
            assert isinstance(fetched, FetchedSources)
            assert fetched.layer.startswith("layer:")
    text = "\n".join(messages)
    assert "only fetches, since its machine is of another kind: Python 3" in text
    assert "gets no more jobs: [Errno 28] No space left on device" in text


class LostFuture:
    """A job that has ended, whose worker was killed before anybody had the result."""

    status = "finished"

    def result(self, timeout: float) -> None:
        raise TimeoutError(timeout)

    def cancel(self) -> None:
        """Nothing is left."""


def test_a_result_that_is_lost_with_its_worker_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ClusterPool.__new__(ClusterPool)
    pool.client = SimpleNamespace(scheduler_info=lambda **_: {"workers": {"tcp://other": {}}})
    job = cluster_pool._Job(1, cluster_jobs.where, (), source="", worker="tcp://gone", future=LostFuture(), attempt=1)
    pool._workers, pool._jobs, pool._waiting, pool._asked = {}, {1: job}, [], {"tcp://gone"}
    pool._handle(("machine", "tcp://gone", LostFuture()))
    assert not pool._workers
    assert not pool._asked
    pool._handle(("done", 1, 1, LostFuture()))
    assert pool._waiting == [job]
    assert job.deaths == 1
