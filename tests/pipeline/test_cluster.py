"""Local Dask workers: their events reach the folder of the run's log."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from excise.pipeline.run.cluster import cluster_client, slot_resources
from excise.system.run_log import run_log


def test_events_of_workers_are_logged_beside_the_runs_own(tmp_path: Path) -> None:
    for run in ("first", "second"):  # of one process
        with run_log(tmp_path / run) as path, cluster_client("", 1) as client:
            log = logging.getLogger("excise.somewhere").info
            client.submit(log, f"request of the {run} run", resources=slot_resources(client)).result(timeout=60)
        (worker,) = path.parent.glob(f"{path.stem}-worker-*.jsonl")
        assert json.loads(worker.read_text())["event"] == f"request of the {run} run"
